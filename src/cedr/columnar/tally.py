"""The answer so far: which tuples are there and how often, kept up to date from chunks.

Each row of a chunk takes one tuple away (unless it is an insert) and puts one in its place (unless it removes), so
the history is the sum of all rows, whatever their order. A sum below zero means that an adjust named a tuple that is
not there; only a query without state can put such a thing out, and `unknown` tells them.
"""

from collections.abc import Mapping, Sequence

import numpy as np
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
        return in_order(repeated(self._sums.filter(pl.col(COUNT) > 0)))

    def unknown(self) -> pl.DataFrame:
        """Tuples that adjusts took away although they were not there."""
        self._sum_up()
        return self._sums.filter(pl.col(COUNT) < 0).drop(COUNT)

    def _sum_up(self) -> None:
        if not self._waiting:
            return
        self._sums = changed(self._sums, pl.concat(self._waiting), self.schema)
        self._waiting, self._rows = [], 0


def net_changes(rows: pl.DataFrame, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """How often each tuple comes, or below zero goes, by these rows of chunks: `_vs`, `_ve`, `_n` and the payload."""
    return summed([tuples(rows, NEW, 1, schema), tuples(rows, OLD, -1, schema)])


def changed(counted: pl.DataFrame, rows: pl.DataFrame, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """The counted tuples after these rows of chunks. Equal ones may stand there several times, if none of them goes."""
    gone, come = tuples(rows, OLD, -1, schema), tuples(rows, NEW, 1, schema)
    told = pl.concat([counted, come])
    if gone.height:  # only tuples with the start of one that is gone need summing up
        concerned = pl.col(VS).is_in(gone[VS].unique().implode())
        told = pl.concat([told.filter(~concerned), summed([told.filter(concerned), gone])])
    return told


def tuples(rows: pl.DataFrame, end: str, count: int, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """The tuples with this end, where there is one, each counted so often."""
    there = rows.filter(pl.col(end) > pl.col(VS))
    return there.select(VS, pl.col(end).alias(VE), pl.lit(count, pl.Int64).alias(COUNT), *schema)


def summed(counted: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Equal tuples as one, with the sum of their counts; what comes and goes equally often is gone."""
    told = pl.concat(counted)
    sums = told.group_by(pl.exclude(COUNT)).agg(pl.col(COUNT).sum())
    return sums.filter(pl.col(COUNT) != 0).select(told.columns)


def repeated(counted: pl.DataFrame) -> pl.DataFrame:
    """Each tuple as often as it is counted, without the count."""
    counts, tuples_alone = counted[COUNT].to_numpy(), counted.drop(COUNT)
    return tuples_alone[np.repeat(np.arange(len(counts)), counts)] if (counts > 1).any() else tuples_alone


def in_order(frame: pl.DataFrame) -> pl.DataFrame:
    sortable = [name for name, kind in frame.schema.items() if not kind.is_nested()]
    return frame.sort(sortable, nulls_last=False, maintain_order=True)
