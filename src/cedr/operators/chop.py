"""Chop: every lifetime cut at the points of a grid. Stateless: a row changes only the pieces at its ends."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from cedr.columnar.calendar import cells_of, instants
from cedr.columnar.chunk import Chunk, assemble
from cedr.columnar.times import Times, earlier, later, since_grid
from cedr.operators.base import Operator
from cedr.temporal.calendar import Calendar
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF, as_duration

MOST = 100_000_000
"""Pieces of one event; more would not fit into memory."""


Cut = tuple[Times, Times, Times]
"""Of each piece its row, and where its cell begins and ends."""


class ChopOperator(Operator):
    def __init__(
        self, schema: Mapping[str, pl.DataType], period: int, offset: int = 0, calendar: Calendar | None = None
    ) -> None:
        super().__init__()
        self.schema, self.period, self.offset = dict(schema), as_duration(period, "period"), offset
        self.calendar = calendar

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        vs, old, new = chunk.vs, chunk.old, chunk.new
        low, high = np.minimum(old, new), np.maximum(old, new)
        if (high == INF).any():
            endless = chunk.payload.row(int(np.argmax(high == INF)), named=True)
            raise QueryError(
                f"{self.text}: {endless} has no end, so its pieces cannot be counted; clip or window it first"
            )
        changed = np.maximum(low, vs + 1) - 1
        row, cell, end = (self._on_grid if self.calendar is None else self._on_calendar)(chunk, changed, high)
        start = np.maximum(cell, vs[row])
        before, after = np.clip(old[row], start, end), np.clip(new[row], start, end)
        kept = before != after
        out = assemble(start[kept], before[kept], after[kept], chunk.payload[row[kept]], self.cti)
        return replace(out, promises=chunk.promises)

    def _on_grid(self, chunk: Chunk, changed: Times, high: Times) -> Cut:
        since = since_grid(changed, self.period, self.offset)
        first_end = later(changed, self.period - since)
        self._check((high.astype(np.float64) - first_end) / self.period, chunk)
        row, number = piece_numbers(1 + np.maximum(-((first_end - high) // self.period), 0))
        begins = number == 0
        cell = np.where(begins, earlier(changed, since)[row], first_end[row] + (number - 1) * self.period)
        return row, cell, np.where(begins, first_end[row], later(cell, self.period))

    def _on_calendar(self, chunk: Chunk, changed: Times, high: Times) -> Cut:
        assert self.calendar is not None
        first = cells_of(self.calendar, changed)
        pieces = cells_of(self.calendar, high - 1) - first + 1
        self._check(pieces, chunk)
        row, number = piece_numbers(pieces)
        cell = first[row] + number
        return row, instants(self.calendar, cell), instants(self.calendar, cell + 1)

    def _check(self, pieces: np.ndarray, chunk: Chunk) -> None:
        if len(pieces) and pieces.max() > MOST:
            longest = chunk.payload.row(int(np.argmax(pieces)), named=True)
            raise QueryError(
                f"{self.text}: {longest} would become {pieces.max():,.0f} pieces, more than {MOST:,}; "
                "choose a longer period, or clip or window it first"
            )

    @property
    def text(self) -> str:
        return f"chop by {self.period if self.calendar is None else self.calendar}"


def piece_numbers(pieces: Times) -> tuple[Times, Times]:
    """The row of each piece, and its number within the row."""
    row = np.repeat(np.arange(len(pieces)), pieces)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
