"""Sort: events in the order of some columns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from cedr.plan.aspects import text
from cedr.plan.aspects.loops import WAITS
from cedr.plan.aspects.partitioning import PartitionRequirement
from cedr.plan.aspects.progress import (
    NodeContext,
    ProgressRequirements,
    RequiredPromise,
)
from cedr.plan.aspects.promises import Schemes
from cedr.plan.aspects.properties import Properties
from cedr.plan.node import Columns, Unary, Work
from cedr.plan.schema import Schema, check_columns
from cedr.temporal.errors import QueryError


@dataclass(frozen=True, eq=False)
class Sort(Unary):
    """Rows in the order of some columns, each emitted when no row can come that belongs before it."""

    work = Work.STATEFUL

    by: tuple[str, ...]
    descending: tuple[bool, ...]

    @cached_property
    def schema(self) -> Schema:
        columns = self.input.schema
        if not self.by:
            raise QueryError('sort() names no column; write for example sort("price")')
        check_columns(self.by, columns, f"sort({', '.join(map(repr, self.by))})")
        if nested := [name for name in self.by if columns[name].is_nested()]:
            raise QueryError(
                f"sort({nested[0]!r}): its values are {columns[nested[0]]}, which have no order; sort by a part"
            )
        return columns

    def reads(self, needed: Columns) -> list[Columns]:
        return [needed | set(self.by)]

    def describe(self) -> str:
        return f"Sort by {text.ordering(self.by, self.descending)}"

    def describe_state(self, inputs: Sequence[Properties]) -> str:
        return f"rows until promises without end cover all values of {self.by[0]} that come before theirs"

    def derive_properties(self, *inputs: Properties) -> Properties:
        """By value, not by time; and every end is final."""
        return replace(inputs[0], ordered=False, insert_only=True)

    def progress_requirements(self, context: NodeContext) -> ProgressRequirements:
        promise = RequiredPromise((0,), True, done="when a value and all before it are done")
        return ProgressRequirements(promise, (promise,))

    def derive_schemes(self, *inputs: Schemes) -> Schemes:
        """Nothing is settled beyond the first row that is held, and only promises without end release rows."""
        return inputs[0] if inputs[0].get(self.by[:1]) else {}

    @property
    def promised_by_port(self) -> list[dict[str, str]]:
        return [{self.by[0]: self.by[0]}]

    @property
    def promised_columns(self) -> dict[str, str]:
        return {name: name for name in self.schema}

    def partition_requirement(self) -> PartitionRequirement:
        return PartitionRequirement([], "sorted as a whole")

    def loop_refusal(self, of_loop: list[bool]) -> str:
        return WAITS
