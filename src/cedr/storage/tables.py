"""Arrays and frames as Arrow IPC streams, and back.

An array is a stream with one column of one record batch; its type and shape are described apart from it. Nothing is
copied when an array is written. Reading one returns a view of the bytes that were read, which can be changed. Frames
are written by polars. Reading trusts nothing: bytes that are not what the description promises are a `MalformedError`,
lengths are compared with the bytes that are there, and Arrow verifies offsets and texts before polars gets a frame.
"""

import io
from math import prod
from typing import Any, BinaryIO

import numpy as np
import polars as pl
import pyarrow as pa

from cedr.storage.plain import MalformedError

Array = np.ndarray[Any, Any]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Table = Array | pl.DataFrame
About = dict[str, Any]
"""Of an array `array`, its type as numpy writes it, `shape`, and `order`, which is F if it is stored by column; of a
frame `frame`, its number of rows."""

ARROW_TYPES: dict[str, Any] = {
    "|b1": pa.uint8(),
    "|i1": pa.int8(),
    "|u1": pa.uint8(),
    "<i2": pa.int16(),
    "<u2": pa.uint16(),
    "<i4": pa.int32(),
    "<u4": pa.uint32(),
    "<i8": pa.int64(),
    "<u8": pa.uint64(),
    "<f4": pa.float32(),
    "<f8": pa.float64(),
}
"""Truth values have a byte each."""
ALIGNED = 8


def about(table: Table) -> About:
    """What has to be known to read it back."""
    if isinstance(table, pl.DataFrame):
        return {"frame": table.height}
    kind = table.dtype.newbyteorder("<").str
    if kind not in ARROW_TYPES:
        raise TypeError(f"cannot save an array of {table.dtype}; its type has to be one of {', '.join(ARROW_TYPES)}")
    found: About = {"array": kind, "shape": list(table.shape)}
    return found | {"order": "F"} if by_column(table) else found


def by_column(array: Array) -> bool:
    return array.flags.f_contiguous and not array.flags.c_contiguous


def size_of(table: Table) -> int:
    return int(table.estimated_size() if isinstance(table, pl.DataFrame) else table.nbytes)


def write_table(file: BinaryIO, table: Table) -> None:
    if isinstance(table, pl.DataFrame):
        table.write_ipc_stream(file)
        return
    kind = about(table)["array"]
    flat = np.ascontiguousarray(table.T if by_column(table) else table, dtype=np.dtype(kind)).reshape(-1)
    column = pa.Array.from_buffers(ARROW_TYPES[kind], flat.size, [None, pa.py_buffer(flat)])
    batch = pa.record_batch([column], names=["values"])
    with pa.ipc.new_stream(file, batch.schema) as writer:
        writer.write_batch(batch)


def to_bytes(table: Table) -> bytes:
    """Arrays without values, of which there are many, take no bytes."""
    if isinstance(table, np.ndarray) and not table.size:
        return b""
    write_table(buffer := io.BytesIO(), table)
    return buffer.getvalue()


def read_table(content: Bytes, what: About) -> Table:
    """The table in these bytes, which it may keep using."""
    try:
        return read_array(content, what) if "array" in what else read_frame(content, int(what["frame"]))
    except (Exception, pl.exceptions.PanicException) as e:  # of every library that has a look at the bytes
        raise MalformedError(f"a table of {len(content)} bytes cannot be read ({e})") from None


def read_array(content: Bytes, what: About) -> Array:
    kind, shape, order = what["array"], what["shape"], what.get("order", "C")
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape) or order not in ("C", "F"):
        raise ValueError(f"an array of shape {shape!r} and order {order!r}")
    if kind not in ARROW_TYPES:
        raise ValueError(f"an array of {kind!r}")
    dtype = np.dtype(kind)
    if not prod(shape):
        return np.empty(shape, dtype=dtype, order=order)
    memory = pa.py_buffer(content)
    batch = only_batch(memory, pa.schema([("values", ARROW_TYPES[kind])]))
    (column,) = batch.columns
    if len(column) != prod(shape) or column.null_count or column.offset:
        raise ValueError(f"an array of shape {shape} has {len(column)} values, {column.null_count} of them missing")
    start, size = column.buffers()[1].address - memory.address, len(column) * dtype.itemsize
    if start < 0 or start % ALIGNED or start + size > len(content):
        raise ValueError("the values of an array are elsewhere")
    values = content[start : start + size]
    if kind == "|b1" and values.max() > 1:
        raise ValueError("an array of truth values has other values")
    return values.view(dtype).reshape(shape, order=order)


def only_batch(memory: Any, schema: Any) -> Any:
    """The only record batch of a stream with this schema."""
    with pa.ipc.open_stream(memory) as reader:
        if not reader.schema.equals(schema):
            raise ValueError(f"columns {reader.schema} instead of {schema}")
        batch = reader.read_next_batch()
        batch.validate(full=True)
        for _ in reader:
            raise ValueError("a second record batch")
    return batch


def read_frame(content: Any, rows: int | None = None) -> pl.DataFrame:
    """A frame that polars has written; `rows` is the number it has to have, if that is known."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(content)) as reader:
            table = reader.read_all()
        table.validate(full=True)
        frame = pl.DataFrame(table) if table.num_columns else pl.DataFrame(height=rows or 0)
    except pa.ArrowNotImplementedError:  # integers of 128 bits
        frame = pl.read_ipc_stream(io.BytesIO(content))
    if rows not in (None, frame.height):
        raise ValueError(f"a frame has {frame.height} rows instead of {rows}")
    return frame


def verified_frame(content: Any) -> pl.DataFrame:
    """A frame from bytes that may be anything."""
    try:
        return read_frame(content)
    except (Exception, pl.exceptions.PanicException) as e:
        raise MalformedError(f"its rows cannot be read ({e})") from None
