"""Chop: every lifetime cut at the points of a grid. Stateless: a row changes only the pieces at its ends."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, assemble
from cedr.columnar.times import Times, earlier, later, since_grid
from cedr.operators.base import Operator
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF, as_duration

MOST = 100_000_000
"""Pieces of one event; more would not fit into memory."""


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
        changed = np.maximum(low, vs + 1) - 1
        since = since_grid(changed, self.period, self.offset)
        first_end = later(changed, self.period - since)
        pieces = self._pieces(chunk, first_end, high)
        row = np.repeat(np.arange(len(chunk)), pieces)
        number = np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        begins = number == 0
        cell = np.where(begins, earlier(changed, since)[row], first_end[row] + (number - 1) * self.period)
        end = np.where(begins, first_end[row], later(cell, self.period))
        start = np.maximum(cell, vs[row])
        before, after = np.clip(old[row], start, end), np.clip(new[row], start, end)
        kept = before != after
        out = assemble(start[kept], before[kept], after[kept], chunk.payload[row[kept]], self.cti)
        return replace(out, promises=chunk.promises)

    def _pieces(self, chunk: Chunk, first_end: Times, high: Times) -> Times:
        """How many cells each row changes: the first one, and those from its end up to the last end."""
        more = (high.astype(np.float64) - first_end) / self.period
        if len(more) and more.max() > MOST:
            longest = chunk.payload.row(int(np.argmax(more)), named=True)
            raise QueryError(
                f"chop by {self.period}: {longest} would become {more.max():,.0f} pieces, more than {MOST:,}; "
                "choose a longer period, or clip or window it first"
            )
        return 1 + np.maximum(-((first_end - high) // self.period), 0)
