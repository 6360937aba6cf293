"""Output values as 64-bit words, so that compiled code can compare them: equal words, equal values.

Whole numbers and doubles are their own bits (one NaN, no -0.0), decimals are two words; everything else is numbered by
a `RowIndex`, where missing is a value like any other.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from cedr.columnar.index import RowIndex
from cedr.columnar.state import PART, Stateful, fields

Words = np.ndarray[Any, np.dtype[np.int64]]

NAN = 0x7FF8000000000000
MISSING = 0x7FF8000000000001
"""The bits of a NaN that no arithmetic yields."""
SIGN = np.int64(-(2**63))
"""Turns the order of unsigned words into that of signed ones."""


class Codec(Stateful, ABC):
    width: int

    @abstractmethod
    def encode(self, values: pl.Series) -> Words:
        """One row of words for each value."""

    @abstractmethod
    def decode(self, words: Words) -> pl.Series:
        """The values again."""


class WordCodec(Codec):
    """Numbers that fit into one word, and a second word for "missing"; doubles have a NaN of their own for that."""

    def __init__(self, dtype: pl.DataType) -> None:
        self.dtype = dtype
        self.width = 1 if dtype.is_float() else 2

    def encode(self, values: pl.Series) -> Words:
        missing = values.is_null().to_numpy()
        if self.dtype.is_float():
            words = float_words(values.cast(pl.Float64).fill_null(0.0).to_numpy())
            words[missing] = MISSING
            return words[:, None]
        return np.column_stack((bits_of(values), missing))

    def decode(self, words: Words) -> pl.Series:
        bits = np.ascontiguousarray(words[:, 0])
        if self.dtype.is_float():
            missing = bits == MISSING
            values = pl.Series(bits.view(np.float64)).cast(self.dtype)
        else:
            missing = words[:, 1] != 0
            values = of_bits(bits, self.dtype)
        return values.set(pl.Series(missing), None) if missing.any() else values


def bits_of(values: pl.Series) -> Words:
    """Whole numbers, and what is stored as such, as words; 0 where they are missing."""
    if values.dtype == pl.UInt64:
        return values.fill_null(0).to_numpy().view(np.int64)
    return values.to_physical().cast(pl.Int64).fill_null(0).to_numpy()


def of_bits(bits: Words, dtype: pl.DataType) -> pl.Series:
    return pl.Series(np.ascontiguousarray(bits).view(np.uint64)) if dtype == pl.UInt64 else pl.Series(bits).cast(dtype)


class DecimalCodec(Codec):
    """Decimals: the unscaled number as two words, and a third for "missing"."""

    width = 3

    def __init__(self, dtype: pl.Decimal) -> None:
        self.dtype = dtype

    def encode(self, values: pl.Series) -> Words:
        return np.column_stack((*decimal_words(values), values.is_null().to_numpy()))

    def decode(self, words: Words) -> pl.Series:
        values, missing = decimals(words[:, 0], words[:, 1], self.dtype), words[:, 2] != 0
        return values.set(pl.Series(missing), None) if missing.any() else values


def decimal_words(values: pl.Series) -> tuple[Words, Words]:
    """The high and low words of unscaled decimals; 0 where they are missing."""
    array = values.rechunk().to_arrow()
    words = np.frombuffer(array.buffers()[1], dtype=np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]
    low, high = words[:, 0].copy(), words[:, 1].copy()
    if array.null_count:
        missing = values.is_null().to_numpy()
        low[missing], high[missing] = 0, 0
    return high, low


def decimals(high: Words, low: Words, dtype: pl.Decimal) -> pl.Series:
    words = np.ascontiguousarray(np.column_stack((low, high)))
    kind = pa.decimal128(dtype.precision or 38, dtype.scale)
    return pl.Series(pa.Array.from_buffers(kind, len(words), [None, pa.py_buffer(words)]))


def float_words(numbers: np.ndarray[Any, np.dtype[np.float64]]) -> Words:
    """The bits of doubles, with one NaN and no -0.0; a new array."""
    words = (numbers + 0.0).view(np.int64)
    nan = np.isnan(numbers)
    if nan.any():
        words[nan] = NAN
    return words


class IndexCodec(Codec):
    """Any other type: the number of the value."""

    width = 1

    state = fields(index=PART)

    def __init__(self, dtype: pl.DataType) -> None:
        self.index = RowIndex({"value": dtype})

    def encode(self, values: pl.Series) -> Words:
        return self.index.ids(values.to_frame("value"))[:, None]

    def decode(self, words: Words) -> pl.Series:
        return self.index.take(words[:, 0])["value"]

    def forget(self, used: Words) -> None:
        """Drop values that are no longer used; the words in use change in place."""
        numbers = self.index.compact(used)
        if numbers is not None:
            used[:] = numbers[used]


def fits_one_word(dtype: pl.DataType) -> bool:
    one_word = dtype.is_integer() or dtype.is_float() or dtype == pl.Boolean or dtype.is_temporal()
    return bool(one_word and dtype not in (pl.Int128, pl.UInt128))


def sortable(values: pl.Series) -> Words:
    """Words in the order of the values; NaN comes last. Missing values give any word."""
    if not values.dtype.is_float():
        words = bits_of(values)
        return words ^ SIGN if values.dtype == pl.UInt64 else words
    numbers = values.cast(pl.Float64).fill_null(0.0).to_numpy() + 0.0
    return flip_negative(np.where(np.isnan(numbers), np.nan, numbers).view(np.int64))


def from_sortable(words: Words, dtype: pl.DataType) -> pl.Series:
    if not dtype.is_float():
        return of_bits(words ^ SIGN if dtype == pl.UInt64 else words, dtype)
    return pl.Series(flip_negative(words).view(np.float64)).cast(dtype)


def flip_negative(bits: Words) -> Words:
    """Negative doubles have their bits in reverse order; its own inverse."""
    return bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))


def codec_for(dtype: pl.DataType) -> Codec:
    if isinstance(dtype, pl.Decimal):
        return DecimalCodec(dtype)
    return WordCodec(dtype) if fits_one_word(dtype) else IndexCodec(dtype)
