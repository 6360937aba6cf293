"""Rows joined with a table that is part of the query, and never changes."""

from dataclasses import dataclass
from functools import cached_property

import polars as pl

from cedr.plan.node import Unary
from cedr.plan.schema import Schema


@dataclass(frozen=True, eq=False)
class Lookup(Unary):
    table: pl.DataFrame
    left_on: str
    right_on: str

    @cached_property
    def schema(self) -> Schema:
        return {**self.input.schema, **self.added}

    @property
    def added(self) -> Schema:
        return {name: kind for name, kind in self.table.schema.items() if name != self.right_on}
