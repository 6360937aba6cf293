"""Nodes about the events that live together: aggregates and top-k, per group."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

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
class TopK(Speculative, Unary):
    """Of each snapshot of each group the k rows that come first; ties by payload."""

    k: int
    order: tuple[str, ...]
    descending: tuple[bool, ...]
    by: tuple[str, ...] = ()
    rank: str | None = None

    @cached_property
    def schema(self) -> Schema:
        columns = self.input.schema
        check_columns(self.order, columns, f"top_k(by={list(self.order)})")
        check_columns(self.by, columns, f"group_by({', '.join(map(repr, self.by))})")
        if not isinstance(self.k, int) or self.k < 1:
            raise QueryError(f"top_k({self.k!r}): k must be a whole number, at least 1")
        if self.rank in columns:
            raise QueryError(f"top_k(rank={self.rank!r}): there is a column of that name; choose another")
        return {**columns, self.rank: pl.Int64()} if self.rank else columns
