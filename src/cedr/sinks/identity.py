"""A stable identity for each tuple: 128 bits of BLAKE2b over all its values.

Stores use it as a key, so it must never change with the version of a library, the order of rows or the process. Each
value becomes bytes of a fixed width: a mark whether it is null, then the number itself (eight bytes, little-endian) or,
for types without a fixed width, the hash of its bytes. Values that are equal as
payloads get the same bytes: 0.0 and -0.0, every NaN. A list is the hash of its values' bytes, a struct its fields' side
by side.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import numpy as np
import polars as pl

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
"""One row of bytes per value."""

WIDTH = 16


def tuple_ids(tuples: pl.DataFrame) -> pl.Series:
    """The identity of each row as 32 hexadecimal digits, which both PostgreSQL and DuckDB accept as a UUID."""
    rows = side_by_side([as_bytes(column) for column in tuples.get_columns()], tuples.height)
    return pl.Series("id", [digest.hex() for digest in row_digests(rows)], dtype=pl.String)


def as_bytes(values: pl.Series) -> Bytes:
    there = values.is_not_null()
    return side_by_side([there.to_numpy().astype(np.uint8)[:, None], content(values)], len(values))


def content(values: pl.Series) -> Bytes:
    """The bytes of the values themselves; zeros for nulls."""
    kind = values.dtype
    if kind == pl.Null:
        return np.zeros((len(values), 0), dtype=np.uint8)
    if isinstance(kind, pl.Struct):
        fields = [as_bytes(values.struct.field(field.name)) for field in kind.fields]
        return side_by_side(fields, len(values))
    if isinstance(kind, pl.Array):
        return list_content(values.cast(pl.List(kind.inner)))
    if isinstance(kind, pl.List):
        return list_content(values)
    if kind.is_float():
        return numbers(canonical_floats(values))
    if kind == pl.UInt64:
        return numbers(values.fill_null(0).to_numpy().view(np.int64))
    if kind == pl.Boolean or (kind.is_integer() and kind not in (pl.Int128, pl.UInt128)):
        return numbers(values.fill_null(False if kind == pl.Boolean else 0).cast(pl.Int64).to_numpy())
    if kind.is_temporal():
        return numbers(values.to_physical().fill_null(0).cast(pl.Int64).to_numpy())
    return hashed(values if kind == pl.Binary else values.cast(pl.String).cast(pl.Binary))


def numbers(values: np.ndarray[Any, Any]) -> Bytes:
    wide = np.ascontiguousarray(values).astype(f"<{'f8' if values.dtype.kind == 'f' else 'i8'}")
    return wide.view(np.uint8).reshape(len(values), 8)


def canonical_floats(values: pl.Series) -> np.ndarray[Any, np.dtype[np.float64]]:
    floats = values.fill_null(0.0).cast(pl.Float64).to_numpy() + 0.0  # -0.0 + 0.0 is 0.0
    return np.where(np.isnan(floats), np.nan, floats)


def hashed(values: pl.Series) -> Bytes:
    """The hash of each value's bytes; every distinct value is hashed once."""
    uniques = values.unique(maintain_order=True)
    digests = as_matrix(b"" if value is None else blake2b(value, digest_size=WIDTH).digest() for value in uniques)
    places = pl.DataFrame({"value": uniques}).with_row_index("place")
    found = pl.DataFrame({"value": values}).join(
        places, on="value", how="left", nulls_equal=True, maintain_order="left"
    )
    return digests[found["place"].to_numpy()]


def list_content(values: pl.Series) -> Bytes:
    lengths = values.list.len().fill_null(0).to_numpy()
    inner = as_bytes(values.filter(pl.Series(lengths > 0)).explode())
    width = inner.shape[1]
    flat, ends = inner.tobytes(), np.cumsum(lengths) * width
    starts = ends - lengths * width
    lists = (flat[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True))
    digests = as_matrix(blake2b(content_, digest_size=WIDTH).digest() for content_ in lists)
    digests[values.is_null().to_numpy()] = 0
    return digests


def side_by_side(columns: list[Bytes], height: int) -> Bytes:
    return np.hstack([np.zeros((height, 0), dtype=np.uint8), *columns])


def as_matrix(digests: Iterable[bytes]) -> Bytes:
    joined = b"".join(digest.ljust(WIDTH, b"\0") for digest in digests)
    return np.frombuffer(joined, dtype=np.uint8).reshape(-1, WIDTH).copy()


def row_digests(rows: Bytes) -> list[bytes]:
    height, width = rows.shape
    flat = rows.tobytes()
    return [
        blake2b(flat[start : start + width], digest_size=WIDTH).digest() for start in range(0, height * width, width)
    ]
