"""The weights of a row in the running sums behind count, sum, avg and stddev, and the values of those sums.

Whole numbers are summed exactly. Doubles are summed in two parts; NaN and infinities are counted beside the sum, so
that one that is taken out again leaves a finite sum behind. Squares carry their rounding error along.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from cedr.operators import aggregates as agg
from cedr.operators.values import MISSING, Words, float_words

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

Sums = tuple[np.ndarray, ...]
"""Of each snapshot: the sums of the integer weights, and of the float weights in two parts."""

FIELD = 21
"""Bits for each of the numbers of NaN, +∞ and -∞ among the live values, packed into one integer."""


class Weights:
    """Which integer and float columns of the end points hold what.

    Columns for missing values ("known") and for NaN and infinities ("special") come with the first such value: until
    then every live value is known, and none is special.
    """

    def __init__(self, schema: Mapping[str, pl.DataType], aggregates: Sequence[agg.Aggregate]) -> None:
        self.ints: list[tuple[str, str | None]] = [("live", None)]
        self.floats: list[tuple[str, str]] = []
        self.is_float = {a.column: bool(a.input_type(schema).is_float()) for a in aggregates if a.column}
        for a in aggregates:
            if isinstance(a, agg.Sum | agg.Avg):
                self._add_sum(a.column)
            if isinstance(a, agg.Stddev):
                for kind in ("number", "square", "error"):
                    self._add(self.floats, (kind, a.column))

    def _add_sum(self, column: str) -> None:
        if self.is_float[column]:
            self._add(self.floats, ("number", column))
        else:
            self._add(self.ints, ("sum", column))

    @staticmethod
    def _add(columns: list[Any], wanted: tuple[str, str]) -> None:
        if wanted not in columns:
            columns.append(wanted)

    @property
    def n_ints(self) -> int:
        return len(self.ints)

    @property
    def n_floats(self) -> int:
        return len(self.floats)

    def widen(self, rows: pl.DataFrame, ints: Ints) -> Ints:
        """Add the columns these rows are the first to need, to the end points' integer weights as well."""
        for column, is_float in self.is_float.items():
            values = rows[column]
            if ("known", column) not in self.ints and values.null_count():
                self.ints.append(("known", column))
                ints = np.column_stack((ints, ints[:, 0]))
            if is_float and ("special", column) not in self.ints and special(values).any():
                self.ints.append(("special", column))
                ints = np.column_stack((ints, np.zeros(len(ints), dtype=np.int64)))
        return ints

    def of(self, rows: pl.DataFrame) -> tuple[Ints, Floats]:
        ints = np.empty((rows.height, len(self.ints)), dtype=np.int64)
        floats = np.empty((rows.height, len(self.floats)))
        for i, (kind, column) in enumerate(self.ints):
            ints[:, i] = 1 if column is None else self._int_weight(kind, rows[column])
        numbers: dict[str, Floats] = {}
        for i, (kind, column) in enumerate(self.floats):
            if column not in numbers:
                numbers[column] = finite(rows[column])
            floats[:, i] = FLOAT_WEIGHTS[kind](numbers[column])
        return ints, floats

    def _int_weight(self, kind: str, values: pl.Series) -> Any:
        if kind == "known":
            return values.is_not_null().to_numpy() if values.null_count() else 1
        if kind == "special":
            return special(values)
        return values.cast(pl.Int64).fill_null(0).to_numpy()

    def words(self, a: agg.Aggregate, sums: Sums) -> Words:
        """The aggregate's value for each snapshot, as words."""
        ints, high, _ = sums

        def whole(kind: str) -> Ints:
            return ints[:, self.ints.index((kind, a.column))]

        some_missing = ("known", a.column) in self.ints
        known = whole("known") if some_missing else ints[:, 0]
        if isinstance(a, agg.Count):
            return as_words(known, None)
        if isinstance(a, agg.Stddev):
            return self._stddev(a, sums, known)
        total: Any
        if self.is_float[a.column]:
            total = high[:, self.floats.index(("number", a.column))]  # the low part is less than half a unit of it
            if ("special", a.column) in self.ints:
                total = with_special(total, whole("special"))
        else:
            total = whole("sum")
        if isinstance(a, agg.Avg):
            total = total / np.maximum(known, 1)
        return as_words(total, known == 0 if some_missing else None)

    def _stddev(self, a: agg.Aggregate, sums: Sums, known: Ints) -> Words:
        ints, high, low = sums

        def exact(kind: str) -> np.ndarray[Any, np.dtype[np.longdouble]]:
            i = self.floats.index((kind, a.column))
            return high[:, i].astype(np.longdouble) + low[:, i]

        total = exact("number")
        squares = exact("square") + exact("error")
        variance = (squares - total * total / np.maximum(known, 1)) / np.maximum(known - 1, 1)
        deviation = np.sqrt(np.maximum(variance, 0)).astype(np.float64)
        if ("special", a.column) in self.ints:
            deviation = np.where(ints[:, self.ints.index(("special", a.column))] != 0, np.nan, deviation)
        return as_words(deviation, known < 2)


def as_words(values: Any, missing: Any) -> Words:
    """Numbers as `WordCodec` writes them."""
    if values.dtype == np.float64:
        words = float_words(values)
        if missing is not None:
            words[missing] = MISSING
        return words[:, None]
    words = np.zeros((len(values), 2), dtype=np.int64)
    words[:, 0] = values
    if missing is not None and missing.any():
        words[missing] = (0, 1)
    return words


def finite(values: pl.Series) -> Floats:
    numbers = values.cast(pl.Float64).fill_null(0.0).to_numpy()
    return np.where(np.isfinite(numbers), numbers, 0.0)


def special(values: pl.Series) -> Ints:
    numbers = values.cast(pl.Float64).fill_null(0.0).to_numpy()
    if np.isfinite(numbers).all():
        return np.zeros(len(numbers), dtype=np.int64)
    infinite = np.isposinf(numbers).astype(np.int64) << FIELD | np.isneginf(numbers).astype(np.int64) << 2 * FIELD
    return np.isnan(numbers) | infinite


def with_special(total: Floats, packed: Ints) -> Floats:
    if not packed.any():
        return total
    mask = (1 << FIELD) - 1
    nan, plus, minus = packed & mask, packed >> FIELD & mask, packed >> 2 * FIELD
    total = np.where(plus > 0, np.inf, np.where(minus > 0, -np.inf, total))
    return np.where((nan > 0) | ((plus > 0) & (minus > 0)), np.nan, total)


def square_error(x: Floats) -> Floats:
    """What rounding takes from x * x, by splitting x into two halves."""
    split = x * 134217729.0
    high = split - (split - x)
    low = x - high
    return ((high * high - x * x) + 2 * high * low) + low * low


FLOAT_WEIGHTS = {"number": lambda x: x, "square": lambda x: x * x, "error": square_error}
