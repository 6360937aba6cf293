"""Aggregate: one row for each snapshot of each group."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cedr.plan.node import Speculative, Unary
from cedr.plan.schema import Schema, check_columns
from cedr.temporal.errors import QueryError


@dataclass(frozen=True, eq=False)
class Aggregate(Speculative, Unary):
    """One row per snapshot of each group: the group's columns, then the aggregates by name."""

    by: tuple[str, ...]
    aggregates: tuple[tuple[str, Any], ...]

    @cached_property
    def schema(self) -> Schema:
        columns = self.input.schema
        check_columns(self.by, columns, f"group_by({', '.join(map(repr, self.by))})")
        if not self.aggregates:
            raise QueryError('agg() names no aggregate; write for example agg(n=cedr.count(), load=cedr.avg("load"))')
        results: Schema = {name: columns[name] for name in self.by}
        for name, aggregate in self.aggregates:
            if name in results:
                raise QueryError(f"agg({name}={aggregate}): {name!r} is a group column too; rename one")
            check_columns(aggregate.columns, columns, f"agg({name}={aggregate})")
            results[name] = aggregate.dtype(columns)
        return results

    def reads(self) -> set[str]:
        return {*self.by, *(c for _, aggregate in self.aggregates for c in aggregate.columns)}


@dataclass(frozen=True, eq=False)
class PartialAggregate(Aggregate):
    """The aggregate of the rows at hand, whichever these are."""
