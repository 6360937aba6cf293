"""Places: the position of each event among those of its key, by which a loop finds the event that follows.

Columns are added to each row:

    _run_at      its place: its start, or the number in the column `order`
    _run_after   the place before its own: by starts that of the last event of the key before it, by number one less
    _run_rank    separates it from the other events at its place

Without `linked`, rows have no neighbours: `_run_after` has no meaning, but rows do not change when others come.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from cedr.plan.aspects import text
from cedr.plan.aspects.partitioning import PartitionRequirement, columns_as_keys, grouped_by
from cedr.plan.aspects.progress import (
    AT_ONCE,
    NodeContext,
    ProgressRequirements,
)
from cedr.plan.aspects.promises import CTI, CTI_ONLY, Schemes
from cedr.plan.aspects.properties import Properties
from cedr.plan.automata.compiled import ADDED
from cedr.plan.node import Columns, Unary, Work
from cedr.plan.schema import Schema


@dataclass(frozen=True, eq=False)
class Places(Unary):
    """Events with their places."""

    work = Work.STATEFUL

    by: tuple[str, ...] = ()
    order: str | None = None
    linked: bool = True

    @cached_property
    def schema(self) -> Schema:
        return {**self.input.schema, **ADDED}

    def reads(self, needed: Columns) -> list[Columns]:
        return [set(i.schema) for i in self.inputs]

    def describe(self) -> str:
        return f"Places{text.by(self.by)}{'' if self.order is None else f', in order of {self.order}'}"

    def describe_state(self, inputs: Sequence[Properties]) -> str:
        return text.bounded("events past the CTI", inputs)

    def derive_properties(self, *inputs: Properties) -> Properties:
        """A late event changes the row of the next one."""
        return Properties(finite=inputs[0].finite, remember=inputs[0].remember)

    def progress_requirements(self, context: NodeContext) -> ProgressRequirements:
        return ProgressRequirements(AT_ONCE, (self.until_settled(context),))

    def derive_schemes(self, *inputs: Schemes) -> Schemes:
        """It understands CTIs only."""
        return CTI_ONLY if CTI in inputs[0] else {}

    def partition_requirement(self) -> PartitionRequirement:
        return PartitionRequirement(columns_as_keys(self.by, self.input.schema), grouped_by(self.by))
