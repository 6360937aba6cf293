"""The shard of each row, and rows split by shard.

Equal keys have equal shards, also after any upgrade and regardless of integer width: 5 has the same shard as `Int8` and
as `UInt64`. Doubles hash by value (one zero, one NaN), texts by their bytes, dates and timestamps by microseconds,
decimals, categories and enums by their text. Lists and structs cannot be keys.
"""

from typing import Any

import numpy as np
import polars as pl
from polars import CompatLevel

from cedr.columnar.chunk import VS
from cedr.kernels.hashing import SEED, absorb_bytes, absorb_words, by_shard, pick
from cedr.temporal.errors import QueryError

Shards = np.ndarray[Any, np.dtype[np.int32]]
Words = np.ndarray[Any, np.dtype[np.uint64]]

AS_TEXT = (pl.Decimal, pl.Categorical, pl.Enum)


def shards_of(rows: pl.DataFrame, keys: tuple[str, ...] | None, shards: int) -> Shards:
    """The shard of each row, by the hash of its keys. No keys: shard 0. None: by the start, `_vs`."""
    if keys == () or shards == 1:
        return np.zeros(rows.height, dtype=np.int32)
    picked: Shards = pick(hashes_of(rows, keys), shards)
    return picked


def hashes_of(rows: pl.DataFrame, keys: tuple[str, ...] | None) -> Words:
    """The hash of each row's keys; None: of the start, `_vs`."""
    hashes = np.full(rows.height, SEED, dtype=np.uint64)
    for name in (VS,) if keys is None else keys:
        absorb(hashes, rows[name])
    return hashes


def split(rows: pl.DataFrame, ids: Shards, shards: int) -> list[pl.DataFrame]:
    """The rows of each shard, in their order."""
    order, bounds = by_shard(ids, shards)
    if (np.diff(bounds) == rows.height).any():  # all in one shard, or no rows at all
        return [rows if bounds[s] < bounds[s + 1] else rows.clear() for s in range(shards)]
    sorted_rows = rows[pl.Series(order)]
    return [sorted_rows[int(bounds[s]) : int(bounds[s + 1])] for s in range(shards)]


def can_be_key(kind: pl.DataType) -> bool:
    return not kind.is_nested() and kind != pl.Object


def absorb(hashes: Words, column: pl.Series) -> None:
    """Combine the hashes with a column."""
    if not can_be_key(column.dtype):
        raise QueryError(f"column {column.name!r} is of type {column.dtype}, which cannot be a key for sharding")
    missing = column.is_null().to_numpy() if column.null_count() else np.empty(0, dtype=np.bool_)
    if column.dtype in AS_TEXT:
        column = column.cast(pl.String)
    if column.dtype in (pl.String, pl.Binary):
        absorb_bytes(hashes, *byte_strings(column), missing)
    else:
        absorb_words(hashes, words(column), missing)


def words(column: pl.Series) -> Words:
    """One 64-bit word per value; equal values have equal words. The word of a missing value does not matter."""
    kind = column.dtype
    if kind.is_float():
        numbers = column.cast(pl.Float64).fill_null(0.0).to_numpy() + 0.0  # turns -0.0 into 0.0
        numbers[np.isnan(numbers)] = np.nan
        return numbers.view(np.uint64)
    if kind == pl.Date:
        column = column.cast(pl.Datetime("us"))
    elif kind in (pl.Datetime, pl.Duration):
        column = column.dt.cast_time_unit("us")
    whole = column.cast(pl.Int64, wrap_numerical=True).fill_null(0)
    return whole.to_numpy().view(np.uint64)


def byte_strings(column: pl.Series) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The concatenated bytes of all values, and the offsets where each value begins and ends."""
    array = column.rechunk().to_arrow(compat_level=CompatLevel.oldest())
    _, offsets, data = array.buffers()
    begins = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    return (np.frombuffer(data, dtype=np.uint8) if data and data.size else np.empty(0, dtype=np.uint8)), begins
