"""Exact sums of one column, or of its squares: which digits a number has, and what value the summed digits have.

`kernels.exact` explains the digits. What the compiled code cannot round with certainty is left to Python's integers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from cedr.columnar.state import DICT, NUMBER, Stateful, fields, optional
from cedr.kernels import exact
from cedr.operators.values import bits_of, decimal_words

Ints = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
Parts = tuple[Floats, Floats, np.ndarray[Any, np.dtype[np.int8]]]
"""Sums in two doubles each, and how far they can be trusted."""

ROOM = 3
"""Bits above the largest double of the first rows that still belong to the highest digit."""
NARROW = 5
"""The extent of at most three places, which ordinary doubles need."""
EXACT_POWER = 22
"""The largest power of ten that a double holds exactly."""
SMALL = 2**32 - 1
"""Whole numbers up to here are one digit."""
PARTIAL = pl.Binary()
"""The type of a sum on its way from a part to the whole; see `partial`."""
HEADER = 4
"""A partial sum begins with the numbers of known values, NaNs, and infinities of either sign."""


@dataclass
class ExactSum(Stateful):
    """Where the digits are: the column of each place, and how places are aligned."""

    dtype: pl.DataType
    square: bool = False
    align: int | None = None
    places: dict[int, int] = field(default_factory=dict)

    state = fields(align=optional(NUMBER), places=DICT)

    def __post_init__(self) -> None:
        if not self.dtype.is_float() and self.dtype != PARTIAL:
            self.align = 0

    @property
    def slot(self) -> Ints:
        slot = np.full(exact.PLACES, -1, dtype=np.int64)
        for place, column in self.places.items():
            slot[place] = column
        return slot

    @property
    def extent(self) -> tuple[int, int]:
        """The first place, and how many may be in use after carrying."""
        first = min(self.places, default=exact.UNITS)
        return first, max(self.places, default=first) - first + 3

    @property
    def bit(self) -> int:
        """The bit of the first place."""
        return exact.LOWEST + (self.align or 0) + exact.DIGIT * self.extent[0]

    # --- writing -----------------------------------------------------------------------------------------------------

    def put(self, numbers: "Numbers", weights: Ints, align: int | None = None) -> list[int]:
        """Add the digits of these numbers to the rows of the weights; returns the places that have no column yet."""
        missing: Any
        if self.dtype == PARTIAL:
            self.align = 0 if self.align is None else self.align
            missing = exact.put_parts(*numbers.parts, self.align, int(self.square), self.slot, weights)
        elif self.dtype.is_float():
            bits = numbers.bits
            if self.align is None:
                if (top := exact.top_bit(bits)) < -1100:
                    return []
                self.align = exact.alignment(top + ROOM) if align is None else 2 * align % exact.DIGIT
            missing = exact.put_floats(bits, self.align, self.square, self.slot, weights)
        elif (small := numbers.small) is not None and (not self.square or numbers.largest < 2**16):
            column = self.places.get(exact.UNITS)
            if column is None:
                return [exact.UNITS]
            weights[:, column] = small * small if self.square else small
            return []
        else:
            missing = exact.put_whole(*numbers.words, self.square, self.slot, weights)
        return [int(place) for place in np.flatnonzero(missing)]

    # --- reading -----------------------------------------------------------------------------------------------------

    def exactly(self, sums: Ints, row: Any) -> Fraction:
        first, _ = self.extent
        total = sum(int(sums[row, c]) << exact.DIGIT * (place - first) for place, c in self.places.items())
        return Fraction(total) * Fraction(2) ** self.bit

    def parts(self, sums: Ints) -> Parts:
        """Each sum as high + low, where high is the double nearest to it."""
        first, width = self.extent
        if width > NARROW or abs(self.bit) > exact.CERTAIN - 200:
            return exact.wide_sums(sums, self.slot, first, width, self.align or 0)
        columns = [self.places.get(first + i, -1) for i in range(3)]
        high, low, trust = exact.narrow_sums(sums, *columns, 2.0**self.bit)
        hard = trust == exact.HARD
        if hard.any():
            high[hard], low[hard], trust[hard] = exact.wide_sums(sums[hard], self.slot, first, width, self.align or 0)
        return high, low, trust

    def nearest(self, sums: Ints, parts: Parts) -> Floats:
        values, _, trust = parts
        for row in np.flatnonzero(trust == exact.HARD):
            values[row] = nearest(self.exactly(sums, row))
        return values

    def ratio(self, sums: Ints, parts: Parts, count: Ints, scale: int) -> Floats:
        """The sum of decimals with `scale` digits after the point, divided by the count."""
        values, hard = exact.ratios(*parts, count, 10.0 ** min(scale, EXACT_POWER))
        for row in np.flatnonzero(hard) if scale <= EXACT_POWER else range(len(values)):
            values[row] = nearest(self.exactly(sums, row) / (max(int(count[row]), 1) * 10**scale))
        return values

    def deviation(self, squares: "ExactSum", sums: Ints, count: Ints, scale: int) -> Floats:
        own, other = (self.slot, *self.extent, self.align or 0), (squares.slot, *squares.extent, squares.align or 0)
        return exact.deviations(sums, *own, *other, count, 10.0**scale)

    def words(self, sums: Ints) -> tuple[Ints, Ints, Mask]:
        """The sums of whole numbers as two words each, and which need more than 127 bits."""
        if set(self.places) <= {exact.UNITS}:
            low = sums[:, self.places[exact.UNITS]] if self.places else np.zeros(len(sums), dtype=np.int64)
            return low >> 63, low, np.zeros(len(sums), dtype=np.bool_)
        return exact.whole_sums(sums, self.slot, *self.extent)


class Numbers:
    """The values of a column in the forms that digits are made of; missing ones count as 0."""

    def __init__(self, values: pl.Series) -> None:
        self.values = values
        dtype = values.dtype
        if dtype == PARTIAL:
            self._of_parts()
        elif dtype.is_float():
            self.floats: Floats = values.cast(pl.Float64).fill_null(0.0).to_numpy()
            self.bits: Ints = self.floats.view(np.int64)
        elif isinstance(dtype, pl.Decimal):
            self._whole(*decimal_words(values))
        else:
            low = bits_of(values)
            self._whole(np.zeros_like(low) if dtype == pl.UInt64 else low >> 63, low)

    def _whole(self, high: Ints, low: Ints) -> None:
        self.words = (high, low)
        small = bool((high == low >> 63).all()) and low.min(initial=0) >= -SMALL and low.max(initial=0) <= SMALL
        self.small = low if small else None
        self.largest = int(np.abs(low).max(initial=0)) if small else SMALL

    def _of_parts(self) -> None:
        offsets, flat = flat_words(self.values)
        sizes = np.diff(offsets)
        known = sizes > 0
        self.counts = np.zeros((len(sizes), HEADER), dtype=np.int64)
        for i in range(HEADER):
            self.counts[known, i] = flat[offsets[:-1][known] + i]
        header = np.zeros(len(flat), dtype=np.bool_)
        header[(offsets[:-1][known][:, None] + np.arange(HEADER)).ravel()] = True
        starts = np.concatenate(([0], np.cumsum(np.where(known, sizes - HEADER, 0))))
        self.parts = (starts, flat[~header])


def flat_words(values: pl.Series) -> tuple[Ints, Ints]:
    """The words in a column of bytes: where each row begins, and all of them."""
    array = values.rechunk().to_arrow()
    if array.null_count:
        array = array.fill_null(b"")
    _, ends, content = array.buffers()
    offsets = np.frombuffer(ends, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    flat = np.frombuffer(content, dtype=np.int64, count=int(offsets[-1]) // 8) if content else np.empty(0, np.int64)
    return (offsets - offsets[0]) // 8, flat[int(offsets[0]) // 8 :]


def partial(sums: Ints, counts: Ints, totals: Sequence[ExactSum]) -> pl.Series:
    """Sums as bytes: the counts of known, NaN and infinite values, then the digits that are not 0, as 64-bit words."""
    room = HEADER + sum(3 * (total.extent[1] + 1) for total in totals)
    words = np.empty((len(sums), room), dtype=np.int64)
    words[:, :HEADER] = counts
    used = np.full(len(sums), HEADER, dtype=np.int64)
    for total in totals:
        exact.parts_of(sums, total.slot, *total.extent, total.align or 0, int(total.square), words, used)
    flat = words[np.arange(room) < used[:, None]]
    ends = np.concatenate(([0], np.cumsum(8 * used)))
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(flat)]
    return pl.Series(pa.Array.from_buffers(pa.large_binary(), len(sums), buffers))


def nearest(value: Fraction) -> float:
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -math.inf
