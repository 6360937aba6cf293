"""The answer so far: which tuples are there and how often, kept up to date from chunks.

Each row of a chunk takes one tuple away (unless it is an insert) and puts one in its place (unless it removes), so
the history is the sum of all rows, whatever their order. A sum below zero means that an adjust named a tuple that is
not there; only a query without state can put such a thing out, and `unknown` tells them.
"""

from collections.abc import Mapping

import polars as pl

from cedr.columnar.chunk import NEW, OLD, VS, Chunk

VE, COUNT = "_ve", "_n"
MANY_ROWS = 200_000
"""So many rows wait before they are summed up, or every chunk would pay for the whole answer."""


class Tally:
    """`patience` is how many rows may wait before they are summed up."""

    def __init__(self, schema: Mapping[str, pl.DataType], patience: int = MANY_ROWS) -> None:
        self.schema, self.patience = dict(schema), patience
        self._sums = pl.DataFrame(schema={VS: pl.Int64, VE: pl.Int64, COUNT: pl.Int64, **self.schema})
        self._waiting: list[pl.DataFrame] = []
        self._rows = 0

    def add(self, chunk: Chunk) -> None:
        self._waiting.append(chunk.rows)
        self._rows += len(chunk)
        if self._rows > self.patience + self._sums.height:
            self._sum_up()

    def copy(self) -> "Tally":
        """The answer as it is now."""
        twin = Tally(self.schema, self.patience)
        twin._sums, twin._waiting, twin._rows = self._sums, list(self._waiting), self._rows
        return twin

    def table(self) -> pl.DataFrame:
        """All tuples, copies included: `_vs`, `_ve` and the payload, sorted by start, end and payload."""
        self._sum_up()
        sums = self._sums.filter(pl.col(COUNT) > 0)
        copies = sums.select(pl.all().repeat_by(COUNT).explode()) if (sums[COUNT] > 1).any() else sums
        return in_order(copies.drop(COUNT))

    def unknown(self) -> pl.DataFrame:
        """Tuples that adjusts took away although they were not there."""
        self._sum_up()
        return self._sums.filter(pl.col(COUNT) < 0).drop(COUNT)

    def _sum_up(self) -> None:
        if not self._waiting:
            return
        rows = pl.concat(self._waiting)
        gone, come = self._tuples(rows, OLD, -1), self._tuples(rows, NEW, 1)
        told = pl.concat([self._sums, come])
        if gone.height:  # only tuples with the start of one that is gone need summing up
            concerned = pl.col(VS).is_in(gone[VS].unique().implode())
            summed = pl.concat([told.filter(concerned), gone]).group_by([VS, VE, *self.schema]).agg(pl.col(COUNT).sum())
            told = pl.concat([told.filter(~concerned), summed.filter(pl.col(COUNT) != 0).select(told.columns)])
        self._sums, self._waiting, self._rows = told, [], 0

    def _tuples(self, rows: pl.DataFrame, end: str, count: int) -> pl.DataFrame:
        """The tuples with this end, where there is one."""
        there = rows.filter(pl.col(end) > pl.col(VS))
        return there.select(VS, pl.col(end).alias(VE), pl.lit(count, pl.Int64).alias(COUNT), *self.schema)


def in_order(frame: pl.DataFrame) -> pl.DataFrame:
    sortable = [name for name, kind in frame.schema.items() if not kind.is_nested()]
    return frame.sort(sortable, nulls_last=False, maintain_order=True)
