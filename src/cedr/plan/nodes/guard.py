"""Guard: what remains of Finalize where nothing above keeps state."""

from dataclasses import dataclass
from typing import Literal

from cedr.plan.aspects.properties import Properties
from cedr.plan.node import Node, RowByRow, Work


@dataclass(frozen=True, eq=False)
class Guard(RowByRow):
    """What remains of Finalize where nothing above keeps state: rows that come below a CTI are put aside."""

    work = Work.ANY_SHARD
    keeps_lifetimes = True

    late: Literal["collect", "raise"] = "collect"

    def describe(self) -> str:
        return "Guard"

    def derive_properties(self, *inputs: Properties) -> Properties:
        return inputs[0]

    @property
    def lifetimes_from(self) -> Node:
        return self.input
