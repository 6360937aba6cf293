"""Plain values as bytes and back, without pickle: reading them runs no code but ours.

What tasks and shards send each other is numbers, texts, times, arrays, Arrow tables, containers of these, and the
classes that are named here or marked with `allowed`. Each value is a tag, a letter, and its content; containers hold
values. A socket may receive any bytes: they become such values, or a `MalformedError` (decision 28).
"""

import io
import json
import struct
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from cedr.columnar.promises import Promises, Steps
from cedr.temporal.element import ExternalCti
from cedr.temporal.errors import CedrError
from cedr.temporal.punctuation import Constant, Empty, OneOf, Punctuation, Range, Wildcard
from cedr.temporal.row import Row

FORMAT = b"c3"
"""The first bytes of every value; increase the number when a class that is written changes its name or its fields.
Pickled headers, as in logs that earlier versions wrote, begin with another byte."""
MANY = 16
"""Sequences of at least this length whose items are all texts or all whole numbers are written in one piece."""
INT64 = range(-(2**63), 2**63)

C = TypeVar("C", bound=type)
_size, _int, _float = struct.Struct("<I"), struct.Struct("<q"), struct.Struct("<d")
_classes: dict[str, type] = {}


class MalformedError(CedrError, ValueError):
    """Bytes that are not a plain value."""


def allowed(kind: C) -> C:
    """Let a named tuple or data class be written and read. Its fields must be plain values."""
    _classes[kind.__name__] = kind
    return kind


for _kind in (Promises, Steps, Punctuation, Wildcard, Empty, Constant, Range, OneOf, ExternalCti):
    allowed(_kind)


def to_bytes(value: Any) -> bytes:
    out = bytearray(FORMAT)
    _write(out, value)
    return bytes(out)


def from_bytes(content: bytes | memoryview) -> Any:
    try:
        if bytes(content[:2]) != FORMAT:
            raise ValueError("it does not begin as such a value does")
        reader = _Reader(memoryview(content), len(FORMAT))
        value = reader.value()
        if reader.at != len(content):
            raise ValueError(f"{len(content) - reader.at} bytes follow after its end")
    except (Exception, pl.exceptions.PanicException) as e:  # of every library that has a look at the bytes
        raise MalformedError(
            f"a message of {len(content)} bytes cannot be read ({e}); all machines need the same version of cedr"
        ) from None
    return value


def _write(out: bytearray, value: Any) -> None:
    kind: Any = type(value)
    if (writer := _WRITERS.get(kind)) is not None:
        writer(out, value)
    elif kind.__name__ in _classes and _classes[kind.__name__] is kind:
        _sized(out, b"O", kind.__name__.encode())
        _write_items(out, b"(", tuple(getattr(value, name) for name in fields_of(kind)))
    elif isinstance(value, pl.DataType):
        _sized(out, b"K", _kind_to_bytes(value))
    elif isinstance(value, np.integer | np.floating | np.bool_):
        _write(out, value.item())
    else:
        raise TypeError(f"cannot send a {kind.__module__}.{kind.__qualname__}; mark the class with plain.allowed")


@lru_cache(64)
def fields_of(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.init) if is_dataclass(kind) else tuple(kind._fields)


@lru_cache(64)
def _kind_to_bytes(kind: pl.DataType) -> bytes:
    return _frame_to_bytes(pl.DataFrame(schema={"": kind}))


@lru_cache(64)
def _kind_from_bytes(content: bytes) -> pl.DataType:
    return _frame_from_bytes(content).dtypes[0]


def _frame_to_bytes(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_ipc_stream(buffer)
    return buffer.getvalue()


def _frame_from_bytes(content: bytes) -> pl.DataFrame:
    return pl.read_ipc_stream(io.BytesIO(content))


def _sized(out: bytearray, tag: bytes, content: bytes) -> None:
    out += tag
    out += _size.pack(len(content))
    out += content


def _write_int(out: bytearray, value: int) -> None:
    if value in INT64:
        out += b"i"
        out += _int.pack(value)
    else:
        _sized(out, b"I", str(value).encode())


def _write_float(out: bytearray, value: float) -> None:
    out += b"f"
    out += _float.pack(value)


def _write_array(out: bytearray, value: np.ndarray[Any, Any]) -> None:
    if value.ndim != 1 or value.dtype.kind not in "biuf":
        raise TypeError(f"cannot send an array of {value.dtype} with {value.ndim} dimensions")
    _sized(out, b"A", value.dtype.str.encode())
    _sized(out, b"b", value.tobytes())


def _write_items(out: bytearray, tag: bytes, items: list[Any] | tuple[Any, ...]) -> None:
    if len(items) >= MANY and (kinds := set(map(type, items))) in ({int}, {str}):
        if kinds == {str}:
            return _sized(out, tag + b"s", json.dumps(items).encode())
        if max(items) in INT64 and min(items) in INT64:
            return _sized(out, tag + b"i", np.array(items, dtype="<i8").tobytes())
    out += tag
    out += b"*"
    out += _size.pack(len(items))
    for item in items:
        _write(out, item)
    return None


def _write_dict(out: bytearray, value: dict[Any, Any], tag: bytes = b"{") -> None:
    out += tag
    _write_items(out, b"(", tuple(value))
    _write_items(out, b"(", tuple(value.values()))


def _write_datetime(out: bytearray, value: datetime) -> None:
    zone, offset = value.tzinfo, value.utcoffset()
    where = zone.key if isinstance(zone, ZoneInfo) else None if offset is None else _microseconds(offset)
    out += b"D"
    _write(out, (value.replace(tzinfo=None).isoformat(), value.fold, where))


def _microseconds(value: timedelta) -> int:
    return value // timedelta(microseconds=1)


_WRITERS: dict[type, Callable[[bytearray, Any], None]] = {
    type(None): lambda out, _: out.extend(b"N"),
    bool: lambda out, value: out.extend(b"T" if value else b"F"),
    int: _write_int,
    float: _write_float,
    str: lambda out, value: _sized(out, b"s", value.encode("utf-8", "surrogatepass")),
    bytes: lambda out, value: _sized(out, b"b", value),
    tuple: lambda out, value: _write_items(out, b"(", value),
    list: lambda out, value: _write_items(out, b"[", value),
    frozenset: lambda out, value: _write_items(out, b"<", tuple(value)),
    dict: _write_dict,
    Row: lambda out, value: _write_dict(out, dict(value), b"R"),
    date: lambda out, value: _sized(out, b"d", value.isoformat().encode()),
    time: lambda out, value: _sized(out, b"t", value.isoformat().encode()),
    datetime: _write_datetime,
    timedelta: lambda out, value: _sized(out, b"p", str(_microseconds(value)).encode()),
    Decimal: lambda out, value: _sized(out, b"n", str(value).encode()),
    pl.DataFrame: lambda out, value: _sized(out, b"P", _frame_to_bytes(value)),
    np.ndarray: _write_array,
}


class _Reader:
    def __init__(self, content: memoryview, at: int) -> None:
        self.content, self.at = content, at

    def take(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self.content):
            raise ValueError("it ends too early")
        taken = bytes(self.content[self.at : end])
        self.at = end
        return taken

    def sized(self) -> bytes:
        (size,) = _size.unpack_from(self.content, self.at)
        self.at += 4
        return self.take(size)

    def integer(self) -> int:
        self.at += 8
        return int(_int.unpack_from(self.content, self.at - 8)[0])

    def text(self) -> str:
        return self.sized().decode("utf-8", "surrogatepass")

    def items(self) -> list[Any]:
        match self.take(1):
            case b"s":
                texts = json.loads(self.sized())
                if not isinstance(texts, list) or any(type(text) is not str for text in texts):
                    raise ValueError("a list of texts has other values")
                return texts
            case b"i":
                return list(np.frombuffer(self.sized(), dtype="<i8").tolist())
            case b"*":
                (size,) = _size.unpack(self.take(4))
                return [self.value() for _ in range(size)]
        raise ValueError("unknown kind of sequence")

    def value(self) -> Any:
        tag = self.content[self.at]
        self.at += 1
        if (reader := _READERS.get(tag)) is None:
            raise ValueError(f"unknown tag {tag}")
        return reader(self)

    def mapping(self) -> dict[Any, Any]:
        keys, values = self.value(), self.value()
        return dict(zip(keys, values, strict=True))

    def array(self) -> np.ndarray[Any, Any]:
        dtype = np.dtype(self.text())
        if dtype.kind not in "biuf":
            raise ValueError(f"an array of {dtype}")
        self.take(1)
        return np.frombuffer(self.sized(), dtype=dtype).copy()

    def datetime(self) -> datetime:
        text, fold, where = self.value()
        zone: tzinfo | None = ZoneInfo(where) if isinstance(where, str) else None
        if isinstance(where, int):
            zone = timezone(timedelta(microseconds=where))
        return datetime.fromisoformat(text).replace(fold=fold, tzinfo=zone)

    def object(self) -> Any:
        kind: Any = _classes[self.text()]
        values = self.value()
        if not isinstance(values, tuple) or len(values) != len(fields_of(kind)):
            raise ValueError(f"a {kind.__name__} has {len(fields_of(kind))} fields")
        return kind(*values)


_READERS: dict[int, Callable[[_Reader], Any]] = {
    ord("N"): lambda _: None,
    ord("T"): lambda _: True,
    ord("F"): lambda _: False,
    ord("i"): _Reader.integer,
    ord("I"): lambda reader: int(reader.sized()),
    ord("f"): lambda reader: _float.unpack(reader.take(8))[0],
    ord("s"): _Reader.text,
    ord("b"): _Reader.sized,
    ord("("): lambda reader: tuple(reader.items()),
    ord("["): _Reader.items,
    ord("<"): lambda reader: frozenset(reader.items()),
    ord("{"): _Reader.mapping,
    ord("R"): lambda reader: Row(reader.mapping()),
    ord("d"): lambda reader: date.fromisoformat(reader.text()),
    ord("t"): lambda reader: time.fromisoformat(reader.text()),
    ord("D"): _Reader.datetime,
    ord("p"): lambda reader: timedelta(microseconds=int(reader.sized())),
    ord("n"): lambda reader: Decimal(reader.text()),
    ord("P"): lambda reader: _frame_from_bytes(reader.sized()),
    ord("A"): _Reader.array,
    ord("K"): lambda reader: _kind_from_bytes(reader.sized()),
    ord("O"): _Reader.object,
}
