"""Chop: every lifetime cut at the points of a grid. Stateless: a row changes only the pieces at its ends."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, assemble
from cedr.operators.base import Operator
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF, as_duration


class Chop(Operator):
    def __init__(self, schema: Mapping[str, pl.DataType], period: int, offset: int = 0) -> None:
        super().__init__()
        self.schema, self.period, self.offset = dict(schema), as_duration(period, "period"), offset

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        vs, old, new = chunk.vs, chunk.old, chunk.new
        low, high = np.minimum(old, new), np.maximum(old, new)
        if (high == INF).any():
            endless = chunk.payload.row(int(np.argmax(high == INF)), named=True)
            raise QueryError(
                f"chop by {self.period}: {endless} has no end, so its pieces have none; clip or window it first"
            )
        first = (np.maximum(low - 1, vs) - self.offset) // self.period
        pieces = (high - 1 - self.offset) // self.period - first + 1
        row = np.repeat(np.arange(len(chunk)), pieces)
        number = np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        cell = (first[row] + number) * self.period + self.offset
        start = np.maximum(cell, vs[row])
        before = np.clip(old[row], start, cell + self.period)
        after = np.clip(new[row], start, cell + self.period)
        changed = before != after
        out = assemble(start[changed], before[changed], after[changed], chunk.payload[row[changed]], self.cti)
        return replace(out, promises=chunk.promises)
