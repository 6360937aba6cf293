"""The live tuples behind min, max, first, last, quantile and user-defined aggregates."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import polars as pl

from cedr.columnar.chunk import Times
from cedr.columnar.index import RowIndex
from cedr.kernels import tuples as tu
from cedr.operators import aggregates as agg
from cedr.operators.base import State


class LiveTuples:
    """Tuples `(g, vs, ve, row number)` with copies, and the distinct rows by number."""

    def __init__(self, schema: Mapping[str, pl.DataType]) -> None:
        self.index = RowIndex(dict(schema))
        self.tuples = tu.empty_tuples()

    def take(self, rows: pl.DataFrame, g: Times, vs: Times, old: Times, new: Times) -> None:
        numbers = self.index.ids(rows.select(list(self.index.schema)))
        self.tuples = tu.merge_tuples(*self.tuples, *tu.tuple_changes(g, vs, old, new, numbers))

    def forget(self, before: int) -> None:
        keep = self.tuples[2] >= before
        if not keep.all():
            self.tuples = tuple(a[keep] for a in self.tuples)
        numbers = self.index.compact(self.tuples[3])
        if numbers is not None:
            self.tuples = (*self.tuples[:3], numbers[self.tuples[3]], self.tuples[4])

    def renumber(self, numbers: Times) -> None:
        self.tuples = (numbers[self.tuples[0]], *self.tuples[1:])

    def save(self) -> State:
        return {"rows": self.index.snapshot(), "tuples": self.tuples}

    def load(self, state: State) -> None:
        self.index.restore(state["rows"])
        self.tuples = state["tuples"]


class LiveColumn(LiveTuples):
    """The known values of one column."""

    def __init__(self, name: str, dtype: pl.DataType) -> None:
        super().__init__({name: dtype})
        self.name = name

    def take(self, rows: pl.DataFrame, g: Times, vs: Times, old: Times, new: Times) -> None:
        if rows[self.name].null_count():
            known = rows[self.name].is_not_null().to_numpy()
            rows, g, vs, old, new = rows.filter(pl.Series(known)), g[known], vs[known], old[known], new[known]
        super().take(rows, g, vs, old, new)

    def evaluate(self, aggregate: agg.Aggregate, g: Times, t: Times, starts: Times) -> pl.Series:
        """The aggregate of the values live at each of these end points."""
        tg, vs, ve, number, copies = self.tuples
        rank = self.index.rows[self.name].rank("dense").cast(pl.Int64).to_numpy()[number]
        if isinstance(aggregate, agg.Quantile):
            chosen = tu.kth(*tu.members(g, t, starts, tg, vs, ve, copies), rank, aggregate.q)
        else:
            chosen = tu.foremost(g, t, tg, vs, ve, self._priority(aggregate, rank))[starts]
        found = np.where(chosen >= 0, number[chosen] if len(number) else -1, -1)
        values = self.index.rows[self.name].gather(np.maximum(found, 0)) if len(self.index) else None
        if values is None:
            return pl.Series([None] * len(starts), dtype=self.index.schema[self.name])
        return values.set(pl.Series(found < 0), None) if (found < 0).any() else values

    def _priority(self, aggregate: agg.Aggregate, rank: Times) -> Times:
        match aggregate:
            case agg.Max():
                return rank
            case agg.Min():
                return -rank
        _, vs, ve, *_ = self.tuples
        place = np.empty(len(rank), dtype=np.int64)
        place[np.lexsort((rank, ve, vs))] = np.arange(len(rank))
        return place if isinstance(aggregate, agg.Last) else -place


class LiveRows(LiveTuples):
    """Whole rows, for functions of the user."""

    def evaluate(self, aggregate: agg.UserDefined, g: Times, t: Times, starts: Times) -> pl.Series:
        tg, vs, ve, number, copies = self.tuples
        offsets, found = tu.members(g, t, starts, tg, vs, ve, copies)
        rows = self.index.rows.select(aggregate.names)
        values = [aggregate.function(rows[number[found[first:last]]]) for first, last in pairwise(offsets)]
        return pl.Series(values, dtype=aggregate.result)
