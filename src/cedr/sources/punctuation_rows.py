"""Punctuations among the rows of a table.

A row that the source's `punctuation` column marks is not an event. Its payload describes which rows will not arrive any
more, where a missing value matches any; its start is the time before which, and without a start they never arrive.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from cedr.columnar.index import RowIndex
from cedr.columnar.promises import NONE, Promises, point_promises
from cedr.columnar.times import Times
from cedr.plan.nodes.source import Source
from cedr.temporal.errors import QueryError


@dataclass(frozen=True)
class PunctuationGroup:
    """Punctuations about the same columns, in arrival order; `places` are the numbers of rows before each."""

    values: pl.DataFrame
    before: Times
    places: Times

    def promises(self, first: int, last: int) -> Promises:
        """Those before row `last`, but not before row `first`."""
        start, end = np.searchsorted(self.places, (first, last + 1))
        return point_promises(self.values[start:end], self.before[start:end]) if start < end else NONE

    def broken(self, payload: pl.DataFrame, sync: Times) -> Times:
        """For each row the place of the last punctuation about it, if an earlier one forbids the row; else -1."""
        index = RowIndex(dict(self.values.schema))
        about = pl.DataFrame({"id": index.ids(self.values), "place": self.places, "before": self.before})
        sorted_ = about.sort("id", "place", maintain_order=True).with_columns(pl.col("before").cum_max().over("id"))
        ids, rows = index.ids(payload, add=False), np.arange(len(sync))
        width = len(sync) + 2
        stops = sorted_["id"].to_numpy() * width + sorted_["place"].to_numpy()
        at = np.searchsorted(stops, ids * width + rows, side="right") - 1
        last = np.maximum(at, 0)
        same = (at >= 0) & (ids >= 0) & (sorted_["id"].to_numpy()[last] == ids)
        return np.where(same & (sync < sorted_["before"].to_numpy()[last]), sorted_["place"].to_numpy()[last], -1)


def marked(source: Source, frame: pl.DataFrame) -> pl.Series | None:
    """Which rows are punctuations; None if there are none."""
    if source.punctuation is None:
        return None
    column = frame[source.punctuation]
    if column.dtype not in (pl.Boolean, pl.Null):
        raise QueryError(
            f"table for source {source.name!r}: column {source.punctuation!r} marks the rows that are punctuations, "
            f"so it must be Boolean, but it is of type {column.dtype}"
        )
    found = column.cast(pl.Boolean).fill_null(False)
    return found if found.any() else None


def grouped(source: Source, payload: pl.DataFrame, before: Times, places: Times) -> list[PunctuationGroup]:
    """Punctuations grouped by their columns. Those without columns are CTIs and not included."""
    columns = [name for name in payload.columns if name != source.punctuation]
    named = payload.select(pl.col(columns).is_not_null())
    found = []
    for pattern in named.unique(maintain_order=True).iter_rows(named=True):
        names = [name for name, present in pattern.items() if present]
        if names:
            rows = named.select(pl.all_horizontal(pl.col(n) == present for n, present in pattern.items()).alias("one"))[
                "one"
            ]
            which = rows.to_numpy()
            found.append(PunctuationGroup(payload.filter(rows).select(names), before[which], places[which]))
    return found


def about_everything(source: Source, payload: pl.DataFrame) -> pl.Series:
    """Which payloads have no values at all."""
    columns = [name for name in payload.columns if name != source.punctuation]
    if not columns:
        return pl.repeat(True, payload.height, eager=True)
    return payload.select(pl.all_horizontal(pl.col(columns).is_null()).alias("all"))["all"]
