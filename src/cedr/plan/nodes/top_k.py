"""TopK: the first rows of each snapshot of each group."""

from dataclasses import dataclass
from functools import cached_property

import polars as pl

from cedr.plan.node import Speculative, Unary
from cedr.plan.schema import Schema, check_columns
from cedr.temporal.errors import QueryError


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


@dataclass(frozen=True, eq=False)
class PartialTopK(TopK):
    """The first rows of those at hand."""
