"""The live tuples behind min, max, first, last, quantile, count_distinct, mode and user-defined aggregates."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from cedr.columnar.chunk import Times
from cedr.columnar.index import RowIndex
from cedr.columnar.state import PART, Stateful, columns, fields
from cedr.kernels import tuples as tu
from cedr.operators.front import still_matters
from cedr.operators.tuple_store import TupleStore
from cedr.operators.values import fits_one_word, from_sortable, sortable
from cedr.plan import aggregates as agg
from cedr.temporal.errors import QueryError


class LiveTuples(Stateful):
    """Tuples `(g, vs, ve, row number)` with copies, and the distinct rows by number."""

    state = fields(index=PART, tuples=columns(TupleStore))

    def __init__(self, schema: Mapping[str, pl.DataType]) -> None:
        self.index = RowIndex(dict(schema))
        self.tuples = TupleStore.empty()

    def take(self, rows: pl.DataFrame, g: Times, vs: Times, old: Times, new: Times) -> None:
        numbers = self.index.ids(rows.select(list(self.index.schema)))
        self.tuples = self.tuples.merge(TupleStore.changes(g, vs, old, new, numbers))

    def forget(self, before: Times) -> None:
        """Drop tuples that ended before a settled time, by group or for all."""
        self._drop(before)
        numbers = self.index.compact(self.tuples.value)
        if numbers is not None:
            self.tuples = self.tuples.renumber_values(numbers)

    def _drop(self, before: Times) -> None:
        self.tuples = self.tuples.where(still_matters(self.tuples.key, self.tuples.ve, before))

    def renumber(self, numbers: Times) -> None:
        self.tuples = self.tuples.renumber_keys(numbers)


class LiveColumn(LiveTuples):
    """The known values of one column. Values of one word represent themselves, others have a number."""

    def __init__(self, name: str, dtype: pl.DataType) -> None:
        super().__init__({name: dtype})
        self.name, self.dtype = name, dtype
        self.one_word = fits_one_word(dtype)

    def take(self, rows: pl.DataFrame, g: Times, vs: Times, old: Times, new: Times) -> None:
        values = rows[self.name]
        if values.null_count():
            known = values.is_not_null().to_numpy()
            values, g, vs, old, new = values.filter(pl.Series(known)), g[known], vs[known], old[known], new[known]
        words = sortable(values) if self.one_word else self.index.ids(values.to_frame())
        self.tuples = self.tuples.merge(TupleStore.changes(g, vs, old, new, words))

    def evaluate(self, aggregate: agg.ColumnAggregate, g: Times, t: Times, entries: Times) -> pl.Series:
        """The aggregate of the values live at each of these end points."""
        tg, vs, ve, word, copies = self.tuples
        if aggregate.counting:  # words are equal where values are
            counts = getattr(tu, aggregate.kernel)(g, t, entries, tg, vs, ve, copies, tu.by_end(tg, ve), word)
            return pl.Series(counts)
        if not len(word):
            return pl.Series([None] * len(entries), dtype=self.dtype)
        rank = word if self.one_word else self._ranks()[word]
        if aggregate.kernel:
            kernel = getattr(tu, aggregate.kernel)
            chosen = kernel(g, t, entries, tg, vs, ve, copies, tu.by_end(tg, ve), rank)
        elif isinstance(aggregate, agg.Quantile):
            ends = tu.by_end(tg, ve)
            sizes = np.unique(tu.live_counts(g, t, entries, tg, vs, ve, copies, ends))
            places = np.array([aggregate.place(int(n)) for n in sizes], dtype=np.int64)
            chosen = tu.kth(g, t, entries, tg, vs, ve, copies, ends, rank, sizes, places)
        else:
            chosen = tu.foremost(g, t, tg, vs, ve, self._priority(aggregate, rank))[entries]
        words = word[np.maximum(chosen, 0)]
        values = from_sortable(words, self.dtype) if self.one_word else self.index.rows[self.name].gather(words)
        return values.set(pl.Series(chosen < 0), None) if (chosen < 0).any() else values

    def _ranks(self) -> Times:
        return self.index.rows[self.name].rank("dense").cast(pl.Int64).to_numpy()

    def _priority(self, aggregate: agg.ColumnAggregate, rank: Times) -> Times:
        match aggregate:
            case agg.Max():
                return rank
            case agg.Min():
                return ~rank
        place = np.empty(len(rank), dtype=np.int64)
        place[np.lexsort((rank, self.tuples.vs))] = np.arange(len(rank))
        return place if isinstance(aggregate, agg.Last) else -place

    def forget(self, before: Times) -> None:
        if self.one_word:
            self._drop(before)
        else:
            super().forget(before)


class LiveExtreme(LiveColumn):
    """Where nothing is retracted, only the best value of each lifetime can ever matter."""

    def __init__(self, aggregate: agg.Min | agg.Max, dtype: pl.DataType) -> None:
        super().__init__(aggregate.column, dtype)
        self.largest = isinstance(aggregate, agg.Max)

    def take_words(self, g: Times, vs: Times, new: Times, words: Times) -> None:
        self.tuples = self.tuples.merge(TupleStore.changes(g, vs, vs, new, words))
        tg, tvs, tve, *_ = self.tuples
        if len(tg) > 1:
            same = (tg[1:] == tg[:-1]) & (tvs[1:] == tvs[:-1]) & (tve[1:] == tve[:-1])
            best = np.append(~same, True) if self.largest else np.append(True, ~same)
            self.tuples = self.tuples.where(best)


class LiveRows(LiveTuples):
    """Whole rows, for functions of the user.

    A function gets rows by start, then by value: never by arrival, nor by end, which may change after an answer is
    settled.
    """

    def evaluate(self, aggregate: agg.UserDefined, g: Times, t: Times, entries: Times) -> pl.Series:
        tg, vs, ve, number, copies = self.tuples
        offsets, found = tu.members(g, t, entries, tg, vs, ve, copies)
        rows = self.index.rows.select(aggregate.names)
        rank = np.zeros(max(rows.height, 1), dtype=np.int64)
        rank[rows.with_row_index("_row").sort(list(rows.columns))["_row"].to_numpy()] = np.arange(rows.height)
        snapshot = np.repeat(np.arange(len(entries)), np.diff(offsets))
        numbers = number[found][np.lexsort((rank[number[found]], vs[found], snapshot))]
        values = [aggregate.function(rows[numbers[first:last]]) for first, last in pairwise(offsets)]
        return results_of(aggregate, values)


def results_of(aggregate: agg.UserDefined, values: list[Any]) -> pl.Series:
    """What the function returned, in the type it was declared to return."""
    try:
        return pl.Series(values, dtype=aggregate.result).cast(aggregate.result)
    except (PolarsError, TypeError, ValueError, OverflowError):
        wrong = next((v for v in values if not fits_type(v, aggregate.result)), values)
        raise QueryError(
            f"{aggregate} returned {wrong!r} of type {type(wrong).__name__}, which is not {aggregate.result}; "
            "return such a value, or declare another dtype in cedr.aggregate(..., dtype=...)"
        ) from None


def fits_type(value: Any, dtype: pl.DataType) -> bool:
    try:
        pl.Series([value], dtype=dtype).cast(dtype)
    except (PolarsError, TypeError, ValueError, OverflowError):
        return False
    return True
