"""Lookup: each row with all rows of a table that have the same value in a column. The table never changes."""

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from cedr.columnar.chunk import Chunk
from cedr.columnar.promises import NONE
from cedr.operators.base import Operator
from cedr.operators.feedback import PassesFeedback


class LookupOperator(PassesFeedback, Operator):
    keeps_files = True

    def __init__(self, schema: Mapping[str, pl.DataType], table: pl.DataFrame, left_on: str, right_on: str) -> None:
        super().__init__()
        self.table, self.left_on, self.right_on = table, left_on, right_on
        self.schema = {**schema, **{name: kind for name, kind in table.schema.items() if name != right_on}}

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        rows = chunk.rows.join(self.table, left_on=self.left_on, right_on=self.right_on, maintain_order="left")
        return replace(chunk, rows=rows, promises=NONE)
