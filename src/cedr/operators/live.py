"""The live tuples behind min, max, first, last, quantile, count_distinct, mode and user-defined aggregates.

They are in arrays or in blocks, as the end points of the operator are. In arrays all of them are swept for an answer.
In blocks min, max, first and last are searched for each time; for other aggregates the tuples of the groups are read.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from cedr.columnar.chunk import Times
from cedr.columnar.compacting import compact
from cedr.columnar.index import RowIndex
from cedr.columnar.state import BLOCKS, PART, columns, fields
from cedr.kernels import tuples as tu
from cedr.operators.front import still_matters
from cedr.operators.live_blocks import BY_START, BY_VALUE, VALUE, LiveBlocks, Order
from cedr.operators.tuple_store import Mask, TupleStore
from cedr.operators.two_layouts import TwoLayouts, Views
from cedr.operators.values import fits_one_word, from_sortable, sortable
from cedr.plan import aggregates as agg
from cedr.temporal.errors import QueryError


class LiveTuples(TwoLayouts):
    """Tuples `(g, vs, ve, row number)` with copies, and the distinct rows by number."""

    state = fields(index=PART, tuples=columns(TupleStore), blocks=BLOCKS)
    fields_in_blocks = ("tuples",)

    def __init__(self, schema: Mapping[str, pl.DataType]) -> None:
        self.index = RowIndex(dict(schema))
        self.tuples = TupleStore.empty()
        self.orders: set[Order] = set()
        """The orders in which tuples are searched if they are in blocks."""
        self.blocks: LiveBlocks | None = None
        """The tuples in blocks; then `tuples` is empty."""

    def use_blocks(self, wanted: bool) -> None:
        """Keep the tuples in blocks, or in arrays."""
        if wanted and self.blocks is None:
            self.blocks, self.tuples = LiveBlocks(self.tuples, self.orders), TupleStore.empty()
        elif not wanted and self.blocks is not None:
            self.tuples, self.blocks = self.blocks.flat(), None

    def take(self, rows: pl.DataFrame, g: Times, vs: Times, old: Times, new: Times) -> None:
        numbers = self.index.ids(rows.select(list(self.index.schema)))
        self._add(TupleStore.changes(g, vs, old, new, numbers))

    def _add(self, changes: TupleStore) -> None:
        if self.blocks is None:
            self.tuples = self.tuples.merge(changes)
        else:
            self.blocks.add(changes)

    def tuples_of(self, g: Times) -> TupleStore:
        """At least the tuples of these groups, by group and start."""
        return self.tuples if self.blocks is None else self.blocks.of_groups(np.unique(g))

    def forget(self, before: Times) -> None:
        """Drop tuples that ended before a settled time, by group or for all."""
        self.drop(before)
        numbers = self.index.compact(self.tuples.value)
        if numbers is not None:
            self.tuples = self.tuples.renumber_values(numbers)

    def drop(self, before: Times) -> None:
        """The same, without their rows."""
        self.use_blocks(False)
        self.tuples = self.tuples.where(still_matters(self.tuples.key, self.tuples.ve, before))

    def compact_in_blocks(self) -> None:
        """Drop rows that no tuple in blocks has."""
        if self.blocks is not None:
            compact(self.index, (self.blocks.tuples.blocks, VALUE))

    def renumber(self, numbers: Times) -> None:
        if self.blocks is None:
            self.tuples = self.tuples.renumber_keys(numbers)
        else:
            self.blocks.renumber_groups(numbers)

    def restored(self) -> None:
        self.blocks = None

    def block_views(self) -> Views | None:
        return None if self.blocks is None else {"tuples": self.blocks.tuples.view()}

    def fill_arrays(self) -> None:
        assert self.blocks is not None
        self.tuples = self.blocks.flat()

    def clear_arrays(self) -> None:
        self.tuples = TupleStore.empty()

    def move_to_blocks(self) -> None:
        self.use_blocks(True)


class LiveColumn(LiveTuples):
    """The known values of one column. Values of one word represent themselves, others have a number.

    `ahead`: answers are about times in the future, too.
    """

    def __init__(self, name: str, dtype: pl.DataType, ahead: bool = False) -> None:
        super().__init__({name: dtype})
        self.name, self.dtype, self.ahead = name, dtype, ahead
        self.one_word = fits_one_word(dtype)

    def answers(self, aggregate: agg.ColumnAggregate) -> None:
        """Will be asked for this aggregate."""
        if order := self._searched(aggregate):
            self.orders.add(order)

    def _searched(self, aggregate: agg.ColumnAggregate) -> Order | None:
        """The order, if any, in which an answer is the first live tuple. In the future many others come before it."""
        if self.ahead or not self.one_word:
            return None
        match aggregate:
            case agg.Min() | agg.Max():
                return BY_VALUE
            case agg.First() | agg.Last():
                return BY_START
        return None

    def take(self, rows: pl.DataFrame, g: Times, vs: Times, old: Times, new: Times) -> None:
        values = rows[self.name]
        if values.null_count():
            known = values.is_not_null().to_numpy()
            values, g, vs, old, new = values.filter(pl.Series(known)), g[known], vs[known], old[known], new[known]
        words = sortable(values) if self.one_word else self.index.ids(values.to_frame())
        self._add(TupleStore.changes(g, vs, old, new, words))

    def evaluate(self, aggregate: agg.ColumnAggregate, g: Times, t: Times, entries: Times) -> pl.Series:
        """The aggregate of the values live at each of these end points."""
        if self.blocks is not None and (order := self._searched(aggregate)):
            backwards = isinstance(aggregate, agg.Max | agg.Last)
            return self._values(*self.blocks.first_live(order, g[entries], t[entries], backwards))
        tuples = self.tuples_of(g[entries])
        tg, vs, ve, word, copies = tuples
        if aggregate.counting:  # words are equal where values are
            counts = getattr(tu, aggregate.kernel)(g, t, entries, tg, vs, ve, copies, tu.by_end(tg, ve), word)
            return pl.Series(counts)
        if not len(word):
            return pl.Series([None] * len(entries), dtype=self.dtype)
        rank = word if self.one_word else self._ranks(word)
        if aggregate.kernel:
            kernel = getattr(tu, aggregate.kernel)
            chosen = kernel(g, t, entries, tg, vs, ve, copies, tu.by_end(tg, ve), rank)
        elif isinstance(aggregate, agg.Quantile):
            ends = tu.by_end(tg, ve)
            sizes = np.unique(tu.live_counts(g, t, entries, tg, vs, ve, copies, ends))
            places = np.array([aggregate.place(int(n)) for n in sizes], dtype=np.int64)
            chosen = tu.kth(g, t, entries, tg, vs, ve, copies, ends, rank, sizes, places)
        else:
            chosen = tu.foremost(g, t, tg, vs, ve, priorities(aggregate, rank, vs))[entries]
        return self._values(word[np.maximum(chosen, 0)], chosen >= 0)

    def _values(self, words: Times, known: Mask) -> pl.Series:
        """The values of these words, where there are any."""
        values = from_sortable(words, self.dtype) if self.one_word else self.index.rows[self.name].gather(words)
        return values if known.all() else values.set(pl.Series(~known), None)

    def _ranks(self, words: Times) -> Times:
        """The place of each value in the order of values."""
        values = self.index.rows[self.name]
        if self.blocks is None:
            return values.rank("dense").cast(pl.Int64).to_numpy()[words]
        numbers, place = np.unique(words, return_inverse=True)
        return values.gather(numbers).rank("dense").cast(pl.Int64).to_numpy()[place]

    def forget(self, before: Times) -> None:
        if self.one_word:
            self.drop(before)
        else:
            super().forget(before)

    def compact_in_blocks(self) -> None:
        if not self.one_word:
            super().compact_in_blocks()


def priorities(aggregate: agg.ColumnAggregate, rank: Times, vs: Times) -> Times:
    """A number for each tuple, the highest for the one that is the answer if it is live."""
    match aggregate:
        case agg.Max():
            return rank
        case agg.Min():
            return ~rank
    place = np.empty(len(rank), dtype=np.int64)
    place[np.lexsort((rank, vs))] = np.arange(len(rank))
    return place if isinstance(aggregate, agg.Last) else -place


class LiveExtreme(LiveColumn):
    """Where nothing is retracted, only the best value of each lifetime can ever matter."""

    def __init__(self, aggregate: agg.Min | agg.Max, dtype: pl.DataType, ahead: bool = False) -> None:
        super().__init__(aggregate.column, dtype, ahead)
        self.largest = isinstance(aggregate, agg.Max)
        self.answers(aggregate)

    def take_words(self, g: Times, vs: Times, new: Times, words: Times) -> None:
        """Take the best value of each lifetime in a chunk."""
        changes = TupleStore.changes(g, vs, vs, new, words)
        if self.blocks is not None:
            self._replace_worse(self.blocks, changes)
            return
        self.tuples = self.tuples.merge(changes)
        tg, tvs, tve, *_ = self.tuples
        if len(tg) > 1:
            same = (tg[1:] == tg[:-1]) & (tvs[1:] == tvs[:-1]) & (tve[1:] == tve[:-1])
            best = np.append(~same, True) if self.largest else np.append(True, ~same)
            self.tuples = self.tuples.where(best)

    def _replace_worse(self, blocks: LiveBlocks, changes: TupleStore) -> None:
        which, there = blocks.with_lifetimes(changes.key, changes.vs, changes.ve)
        better = changes.value[which] > there.value if self.largest else changes.value[which] < there.value
        stays = np.ones(changes.rows, dtype=np.bool_)
        stays[which[~better]] = False
        blocks.add(there.take(better).negated())
        blocks.add(changes.take(stays))


class LiveRows(LiveTuples):
    """Whole rows, for functions of the user.

    A function gets rows by start, then by value: never by arrival, nor by end, which may change after an answer is
    settled.
    """

    def evaluate(self, aggregate: agg.UserDefined, g: Times, t: Times, entries: Times) -> pl.Series:
        tg, vs, ve, number, copies = self.tuples_of(g[entries])
        offsets, found = tu.members(g, t, entries, tg, vs, ve, copies)
        rows = self.index.rows.select(aggregate.names)
        if self.blocks is not None:  # not more rows than were read
            numbers, number = np.unique(number, return_inverse=True)
            rows = rows[numbers]
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
