"""Punctuations among the rows of a table.

A row that the source's `punctuation` column marks is none of its events. Its payload says which rows will not come any
more, where a missing value means any, and its start the time before which; without one they will never come.
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
class Alike:
    """Punctuations that name the same columns, in arrival order; `places` are how many rows came before each."""

    values: pl.DataFrame
    before: Times
    places: Times

    def told(self, first: int, last: int) -> Promises:
        """Those that came before row `last`, but not before row `first`."""
        start, end = np.searchsorted(self.places, (first, last + 1))
        return point_promises(self.values[start:end], self.before[start:end]) if start < end else NONE

    def broken(self, payload: pl.DataFrame, sync: Times) -> Times:
        """For each row the place of the last one about it, if an earlier one forbids the row; else -1."""
        index = RowIndex(dict(self.values.schema))
        about = pl.DataFrame({"id": index.ids(self.values), "place": self.places, "before": self.before})
        known = about.sort("id", "place", maintain_order=True).with_columns(pl.col("before").cum_max().over("id"))
        ids, rows = index.ids(payload, add=False), np.arange(len(sync))
        width = len(sync) + 2
        stops = known["id"].to_numpy() * width + known["place"].to_numpy()
        at = np.searchsorted(stops, ids * width + rows, side="right") - 1
        last = np.maximum(at, 0)
        same = (at >= 0) & (ids >= 0) & (known["id"].to_numpy()[last] == ids)
        return np.where(same & (sync < known["before"].to_numpy()[last]), known["place"].to_numpy()[last], -1)


def marked(source: Source, frame: pl.DataFrame) -> pl.Series | None:
    """Which rows are punctuations; None when there is none."""
    if source.punctuation is None:
        return None
    column = frame[source.punctuation]
    if column.dtype not in (pl.Boolean, pl.Null):
        raise QueryError(
            f"table for source {source.name!r}: column {source.punctuation!r} marks the rows that are punctuations, "
            f"so it must be true or false, but it is of type {column.dtype}"
        )
    found = column.cast(pl.Boolean).fill_null(False)
    return found if found.any() else None


def alike(source: Source, payload: pl.DataFrame, before: Times, places: Times) -> list[Alike]:
    """Punctuations by the columns they name. Those that name none are CTIs and not among them."""
    columns = [name for name in payload.columns if name != source.punctuation]
    named = payload.select(pl.col(columns).is_not_null())
    found = []
    for pattern in named.unique(maintain_order=True).iter_rows(named=True):
        names = [name for name, said in pattern.items() if said]
        if names:
            rows = named.select(pl.all_horizontal(pl.col(n) == said for n, said in pattern.items()).alias("one"))["one"]
            which = rows.to_numpy()
            found.append(Alike(payload.filter(rows).select(names), before[which], places[which]))
    return found


def about_everything(source: Source, payload: pl.DataFrame) -> pl.Series:
    """Which payloads name no column."""
    columns = [name for name in payload.columns if name != source.punctuation]
    if not columns:
        return pl.repeat(True, payload.height, eager=True)
    return payload.select(pl.all_horizontal(pl.col(columns).is_null()).alias("all"))["all"]
