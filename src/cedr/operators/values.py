"""Output values as 64-bit words, so that compiled code can compare them: equal words, equal values.

Whole numbers and doubles are their own bits (one NaN, no -0.0); everything else is numbered by a `RowIndex`, where
missing is a value like any other.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.index import RowIndex

Words = np.ndarray[Any, np.dtype[np.int64]]

NAN = 0x7FF8000000000000
MISSING = 0x7FF8000000000001
"""The bits of a NaN that no arithmetic yields."""


class Codec(ABC):
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
        return np.column_stack((values.to_physical().cast(pl.Int64).fill_null(0).to_numpy(), missing))

    def decode(self, words: Words) -> pl.Series:
        bits = np.ascontiguousarray(words[:, 0])
        if self.dtype.is_float():
            missing = bits == MISSING
            values = pl.Series(bits.view(np.float64)).cast(self.dtype)
        else:
            missing = words[:, 1] != 0
            values = pl.Series(bits).cast(self.dtype)
        return values.set(pl.Series(missing), None) if missing.any() else values


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

    def __init__(self, dtype: pl.DataType) -> None:
        self.index = RowIndex({"value": dtype})

    def encode(self, values: pl.Series) -> Words:
        return self.index.ids(values.to_frame("value"))[:, None]

    def decode(self, words: Words) -> pl.Series:
        return self.index.take(words[:, 0])["value"]


def fits_one_word(dtype: pl.DataType) -> bool:
    one_word = dtype.is_integer() or dtype.is_float() or dtype == pl.Boolean or dtype.is_temporal()
    return bool(one_word and dtype not in (pl.UInt64, pl.Int128, pl.UInt128))


def sortable(values: pl.Series) -> Words:
    """Words in the order of the values; NaN comes last. Missing values give any word."""
    if not values.dtype.is_float():
        return values.to_physical().cast(pl.Int64).fill_null(0).to_numpy()
    numbers = values.cast(pl.Float64).fill_null(0.0).to_numpy() + 0.0
    return flipped(np.where(np.isnan(numbers), np.nan, numbers).view(np.int64))


def from_sortable(words: Words, dtype: pl.DataType) -> pl.Series:
    if not dtype.is_float():
        return pl.Series(words).cast(dtype)
    return pl.Series(flipped(words).view(np.float64)).cast(dtype)


def flipped(bits: Words) -> Words:
    """Negative doubles have their bits in reverse order; its own inverse."""
    return bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))


def codec_for(dtype: pl.DataType) -> Codec:
    return WordCodec(dtype) if fits_one_word(dtype) else IndexCodec(dtype)
