"""The weights of a row in the running sums behind count, sum, avg and stddev, and the values of those sums.

All weights are whole numbers. Sums are exact, as digits (`exact_sums`), and rounded once, when they are read. NaN and
infinities are counted apart from the sum, so that one that is taken out again leaves a finite sum behind.
"""

from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.state import LIST, NUMBER, PARTS, Stateful, fields
from cedr.operators.exact_sums import PARTIAL, ExactSum, Ints, Numbers, Parts, partial
from cedr.operators.values import MISSING, Words, float_words
from cedr.plan import aggregates as agg

Floats = np.ndarray[Any, np.dtype[np.float64]]
Key = tuple[str, str, int]
"""What a column counts, of which column of the rows, and at which place if it is a digit."""

LIVE: Key = ("live", "", 0)
SPECIAL = ("nan", "plus", "minus")
CARRY_AFTER = 2**28
"""Number of rows after which digits are carried: far fewer than would make a column overflow."""


WIDE = Context(prec=100)


class OverflowingSum(Exception):  # noqa: N818
    """A sum that its type cannot hold: in which snapshot, and how large it is."""

    def __init__(self, row: int, value: Any, dtype: pl.DataType) -> None:
        self.row, self.dtype = row, dtype
        self.remedy = "cast the column to Decimal(38, 0) or Float64 before"
        if isinstance(dtype, pl.Decimal):
            value, self.remedy = Decimal(int(value)).scaleb(-dtype.scale, WIDE), "cast the column to Float64 before"
        super().__init__(str(value))


class Weights(Stateful):
    """Which columns of the end points' weights hold what.

    Columns for missing values ("known"), for NaN and infinities, and for digits come with the first value that needs
    them: until then every live value is known, none is special, and all digits at that place are 0.
    """

    state = fields(columns=LIST, sums=PARTS, rows=NUMBER)

    def __init__(self, schema: Mapping[str, pl.DataType], aggregates: Sequence[agg.ColumnAggregate]) -> None:
        self.columns: list[Key] = [LIVE]
        self.sums: dict[tuple[str, str], ExactSum] = {}
        self.inputs = {a.column: a.input_type(schema) for a in aggregates if a.column}
        self.rows = 0
        for a in aggregates:
            if not isinstance(a, agg.Count):
                self.sums.setdefault(("sum", a.column), ExactSum(self.inputs[a.column]))
                if a.column and self.inputs[a.column] == PARTIAL and ("known", a.column, 0) not in self.columns:
                    self.columns.append(("known", a.column, 0))
            if a.squares:
                self.sums.setdefault(("square", a.column), ExactSum(self.inputs[a.column], square=True))

    def __len__(self) -> int:
        return len(self.columns)

    # --- rows --------------------------------------------------------------------------------------------------------

    def take(self, rows: pl.DataFrame, state: Ints) -> tuple[Ints, Ints]:
        """The weights of these rows; and the state's, with the columns added that these rows are the first to need."""
        self.rows += rows.height
        if self.carries_after(0):
            self.rows = rows.height
            state = self._carry(state)
        columns = {name: rows[name] for name in self.inputs}
        numbers = {name: Numbers(columns[name]) for name in {name for _, name in self.sums}}
        counts = {}
        for name, values in columns.items():
            for kind, count in counts_of_values(values, numbers.get(name)).items():
                counts[kind, name, 0] = count
                state = self._add((kind, name, 0), state)
        while True:
            weights = np.zeros((rows.height, len(self.columns)), dtype=np.int64)
            weights[:, 0] = 1
            for i, key in enumerate(self.columns):
                if key in counts:
                    weights[:, i] = counts[key]
                elif key[0] == "known":
                    weights[:, i] = 1
            wanted = [(what, place) for what in self.sums for place in self._put(what, numbers, weights)]
            if not wanted:
                return state, weights
            for (kind, name), place in wanted:
                state = self._add((kind, name, place), state)

    def carries_after(self, rows: int) -> bool:
        """Whether this number of further rows makes it necessary to carry the digits of the state."""
        return self.rows + rows > CARRY_AFTER

    def widened(self, state: Ints) -> Ints:
        """The weights of a state with the columns that were added since."""
        for kind, *_ in self.columns[state.shape[1] :]:
            state = with_column(state, kind)
        return state

    def _put(self, what: tuple[str, str], numbers: Mapping[str, Numbers], weights: Ints) -> list[int]:
        kind, name = what
        align = self.sums["sum", name].align if kind == "square" else None
        return self.sums[what].put(numbers[name], weights, align)

    def _add(self, key: Key, state: Ints) -> Ints:
        if key in self.columns:
            return state
        self.columns.append(key)
        kind, name, place = key
        if (kind, name) in self.sums:
            self.sums[kind, name].places[place] = len(self.columns) - 1
        return with_column(state, kind)

    def _carry(self, state: Ints) -> Ints:
        """Make all digits small again."""
        state = state.copy()
        for (kind, name), total in self.sums.items():
            place = min(total.places, default=0)
            while place <= max(total.places, default=-1):
                if (column := total.places.get(place)) is not None:
                    carry = (state[:, column] + 2**31) >> 32
                    if carry.any():
                        state = self._add((kind, name, place + 1), state)
                        state[:, column] -= carry << 32
                        state[:, total.places[place + 1]] += carry
                place += 1
        return state

    # --- values ------------------------------------------------------------------------------------------------------

    def words(self, a: agg.ColumnAggregate, dtype: pl.DataType, sums: Ints, parts: dict[str, Parts]) -> Words:
        """The aggregate's value for each snapshot, as words. `parts` keeps what several aggregates have in common."""
        known = self._count("known", a.column, sums)
        if isinstance(a, agg.Count):
            return as_words(known, None)
        missing = known < 2 if a.squares else known == 0
        if not missing.any():
            missing = None
        total = self.sums["sum", a.column]
        if a.squares:
            squares = self.sums["square", a.column]
            return as_words(self._special(a, total.deviation(squares, sums, known, self._scale(a)), sums), missing)
        average = isinstance(a.of if isinstance(a, agg.Whole) else a, agg.Avg)
        if dtype.is_float():
            if a.column not in parts:
                parts[a.column] = total.parts(sums)
            found = parts[a.column]
            values = total.ratio(sums, found, known, self._scale(a)) if average else total.nearest(sums, found)
            return as_words(self._special(a, values, sums), missing)
        if average:
            return as_words(self._rounded(total, sums, known), missing)
        return self._whole(total, dtype, sums, missing)

    def partial(self, a: agg.ColumnAggregate, sums: Ints) -> pl.Series:
        """The sums behind an aggregate, for `Whole` to go on with."""
        zeros = np.zeros(len(sums), dtype=np.int64)
        special = [self._count(kind, a.column, sums, zeros) for kind in SPECIAL]
        counts = np.column_stack((self._count("known", a.column, sums), *special))
        return partial(sums, counts, [total for (_, name), total in self.sums.items() if name == a.column])

    def _count(self, kind: str, column: str | None, sums: Ints, otherwise: Ints | None = None) -> Ints:
        key = (kind, column or "", 0)
        if key in self.columns:
            return sums[:, self.columns.index(key)]
        return sums[:, 0] if otherwise is None else otherwise

    def _scale(self, a: agg.ColumnAggregate) -> int:
        dtype = a.input if isinstance(a, agg.Whole) else self.inputs[a.column]
        return dtype.scale if isinstance(dtype, pl.Decimal) else 0

    def _special(self, a: agg.ColumnAggregate, values: Floats, sums: Ints) -> Floats:
        if not any((kind, a.column, 0) in self.columns for kind in SPECIAL):
            return values
        zeros = np.zeros(len(sums), dtype=np.int64)
        nan, plus, minus = (self._count(kind, a.column, sums, zeros) > 0 for kind in SPECIAL)
        if a.squares:
            return np.where(nan | plus | minus, np.nan, values)
        values = np.where(plus, np.inf, np.where(minus, -np.inf, values))
        return np.where(nan | (plus & minus), np.nan, values)

    def _whole(self, total: ExactSum, dtype: pl.DataType, sums: Ints, missing: Any) -> Words:
        high, low, large = total.words(sums)
        if isinstance(dtype, pl.Decimal):
            largest = 10**38 - 1
            over, under = high_and_low_word(largest), high_and_low_word(-largest)
            large = large | (high > over[0]) | (high < under[0])
            edge = (high == over[0]) & (low.view(np.uint64) > over[1]) | (high == under[0]) & (
                low.view(np.uint64) < under[1]
            )
            large = large | edge
        elif dtype == pl.UInt64:
            large = large | (high != 0)
        else:
            large = large | (high != low >> 63)
        if large.any():
            row = int(np.argmax(large))
            raise OverflowingSum(row, total.exactly(sums, row), dtype)
        if isinstance(dtype, pl.Decimal):
            return wide_words(high, low, missing)
        return as_words(low, missing)

    def _rounded(self, total: ExactSum, sums: Ints, known: Ints) -> Ints:
        """The average of whole numbers as a whole number, to the nearest, halves to the even one."""
        high, low, large = total.words(sums)
        count = np.maximum(known, 1)
        quotient, rest = np.divmod(low, count)
        twice = 2 * rest
        result = quotient + ((twice > count) | ((twice == count) & (quotient & 1 == 1)))
        for row in np.flatnonzero(large | (high != low >> 63)):
            result[row] = round(total.exactly(sums, row) / int(count[row]))
        return result


def with_column(state: Ints, kind: str) -> Ints:
    """Weights with a new column: until now every live value was known, and nothing else was counted."""
    return np.column_stack((state, state[:, 0] if kind == "known" else np.zeros(len(state), dtype=np.int64)))


def counts_of_values(values: pl.Series, numbers: Numbers | None) -> dict[str, Any]:
    """What is counted of the values of a column apart from their sum, if there is any of it."""
    if values.dtype == PARTIAL and numbers is not None:
        known, *special = numbers.counts.T
        found = {kind: count for kind, count in zip(SPECIAL, special, strict=True) if count.any()}
        return {"known": known, **found}
    found = {}
    if values.null_count():
        found["known"] = values.is_not_null().to_numpy()
    if numbers is not None and values.dtype.is_float() and not np.isfinite(numbers.floats).all():
        floats = numbers.floats
        kinds = (np.isnan(floats), np.isposinf(floats), np.isneginf(floats))
        found |= {kind: which for kind, which in zip(SPECIAL, kinds, strict=True) if which.any()}
    return found


def as_words(values: Any, missing: Any) -> Words:
    """Numbers as `WordCodec` writes them."""
    if values.dtype == np.float64:
        words = float_words(values)
        if missing is not None:
            words[missing] = MISSING
        return words[:, None]
    words = np.zeros((len(values), 2), dtype=np.int64)
    words[:, 0] = values
    if missing is not None:
        words[missing] = (0, 1)
    return words


def wide_words(high: Ints, low: Ints, missing: Any) -> Words:
    """Decimals as `DecimalCodec` writes them."""
    words = np.column_stack((high, low, np.zeros(len(high), dtype=np.int64)))
    if missing is not None:
        words[missing] = (0, 0, 1)
    return words


def high_and_low_word(value: int) -> tuple[int, int]:
    """A whole number as a high and an unsigned low word."""
    return value >> 64, value & (2**64 - 1)
