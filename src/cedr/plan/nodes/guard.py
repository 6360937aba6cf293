"""Guard: what remains of Finalize where nothing above keeps state."""

from dataclasses import dataclass
from typing import Literal

from cedr.plan.node import Unary


@dataclass(frozen=True, eq=False)
class Guard(Unary):
    """What remains of Finalize where nothing above keeps state: rows that come below a CTI are put aside."""

    late: Literal["collect", "raise"] = "collect"
