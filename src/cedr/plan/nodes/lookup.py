"""Rows joined with a table that is part of the query, and never changes."""

from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl

from cedr.plan.aspects.properties import Properties
from cedr.plan.node import Columns, RowByRow, Work
from cedr.plan.schema import Schema


@dataclass(frozen=True, eq=False)
class Lookup(RowByRow):
    work = Work.OTHER

    table: pl.DataFrame
    left_on: str
    right_on: str

    @cached_property
    def schema(self) -> Schema:
        return {**self.input.schema, **self.added}

    @property
    def added(self) -> Schema:
        return {name: kind for name, kind in self.table.schema.items() if name != self.right_on}

    def reads(self, needed: Columns) -> list[Columns]:
        return [needed - set(self.added) | {self.left_on}]

    def describe(self) -> str:
        return f"Lookup of {self.left_on} in {self.table.height} rows"

    def derive_properties(self, *inputs: Properties) -> Properties:
        return replace(inputs[0], key=None, duplicate_free=False)

    def loop_refusal(self, of_loop: list[bool]) -> None:
        return None
