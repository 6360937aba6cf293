"""Sort: events in the order of some columns, each told once nothing can come that belongs before it."""

from dataclasses import dataclass
from functools import cached_property

from cedr.plan.node import Unary
from cedr.plan.schema import Schema, check_columns
from cedr.temporal.errors import QueryError


@dataclass(frozen=True, eq=False)
class Sort(Unary):
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
