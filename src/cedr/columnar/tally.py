"""The answer so far: the tuples and their counts, updated from chunks.

Each row of a chunk removes one tuple (unless it is an insert) and adds one (unless it removes), so the history is the
sum of all rows, whatever their order. A negative count means that an adjust named a tuple that does not exist; only a
query without state can emit such an adjust, and `unknown` returns them.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from cedr.columnar.chunk import NEW, OLD, VS, Chunk

VE, COUNT = "_ve", "_n"
MANY_ROWS = 200_000
"""Number of rows that wait before they are summed up; otherwise every chunk would cost as much as the whole answer."""


class Tally:
    """`patience` is the number of rows that may wait before they are summed up."""

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
        """The current answer."""
        twin = Tally(self.schema, self.patience)
        twin._sums, twin._waiting, twin._rows = self._sums, list(self._waiting), self._rows
        return twin

    def table(self) -> pl.DataFrame:
        """All tuples, copies included: `_vs`, `_ve` and the payload, sorted by start, end and payload."""
        self._sum_up()
        return in_order(repeated(self._sums.filter(pl.col(COUNT) > 0)))

    def unknown(self) -> pl.DataFrame:
        """Tuples that adjusts removed although they did not exist."""
        self._sum_up()
        return self._sums.filter(pl.col(COUNT) < 0).drop(COUNT)

    def drop_unknown(self) -> None:
        """Forget that they were removed."""
        self._sum_up()
        self._sums = self._sums.filter(pl.col(COUNT) > 0)

    def _sum_up(self) -> None:
        if not self._waiting:
            return
        self._sums = changed(self._sums, pl.concat(self._waiting), self.schema)
        self._waiting, self._rows = [], 0


def net_changes(rows: pl.DataFrame, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """How often each tuple is added, or if negative removed, by these rows of chunks: `_vs`, `_ve`, `_n`, payload."""
    return summed([tuples(rows, NEW, 1, schema), tuples(rows, OLD, -1, schema)])


def changed(counted: pl.DataFrame, rows: pl.DataFrame, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """The counted tuples after these rows of chunks. Equal ones may occur several times, if none of them is removed."""
    removed, added = tuples(rows, OLD, -1, schema), tuples(rows, NEW, 1, schema)
    found = pl.concat([counted, added])
    if removed.height:  # only tuples with the start of a removed one need summing up
        concerned = pl.col(VS).is_in(removed[VS].unique().implode())
        found = pl.concat([found.filter(~concerned), summed([found.filter(concerned), removed])])
    return found


def tuples(rows: pl.DataFrame, end: str, count: int, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """The tuples with this end, where there is one, each with this count."""
    there = rows.filter(pl.col(end) > pl.col(VS))
    return there.select(VS, pl.col(end).alias(VE), pl.lit(count, pl.Int64).alias(COUNT), *schema)


def summed(counted: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Equal tuples as one, with the sum of their counts; a tuple whose sum is zero is omitted."""
    found = pl.concat(counted)
    sums = found.group_by(pl.exclude(COUNT)).agg(pl.col(COUNT).sum())
    return sums.filter(pl.col(COUNT) != 0).select(found.columns)


def repeated(counted: pl.DataFrame) -> pl.DataFrame:
    """Each tuple as often as its count, without the count."""
    counts, tuples_alone = counted[COUNT].to_numpy(), counted.drop(COUNT)
    return tuples_alone[np.repeat(np.arange(len(counts)), counts)] if (counts > 1).any() else tuples_alone


def in_order(frame: pl.DataFrame) -> pl.DataFrame:
    sortable = [name for name, kind in frame.schema.items() if not kind.is_nested()]
    return frame.sort(sortable, nulls_last=False, maintain_order=True)
