"""One column of each type: a missing value, the extremes, a value twice, and what is special about the type."""

import datetime as dt
from decimal import Decimal

import polars as pl

NAN, INFINITE = float("nan"), float("inf")
SMALLEST = {32: 1.401298464324817e-45, 64: 5e-324}
LARGEST = {32: 3.4028234663852886e38, 64: 1.7976931348623157e308}
MOMENT = dt.datetime(2024, 2, 29, 23, 59, 59, 999999)
CLOCKS_BACK = [dt.datetime(2024, 10, 27, 0, 30), dt.datetime(2024, 10, 27, 1, 30)]
"""In UTC; in Berlin both are 2:30 in the morning."""


def integers(kind: pl.DataType) -> pl.Series:
    low, high = (pl.select(end).item() for end in (kind.min(), kind.max()))
    return pl.Series([7, high, None, low, 7, 0, 1, high - 1], dtype=kind)


def floats(kind: pl.DataType, bits: int) -> pl.Series:
    values = [7.5, NAN, None, -0.0, 7.5, 0.0, NAN, INFINITE, -INFINITE, LARGEST[bits], SMALLEST[bits], 0.1]
    return pl.Series(values, dtype=kind)


def decimals(precision: int, scale: int) -> pl.Series:
    """Built from digits: Python's minus would round to 28 of them."""
    largest, lowest = (Decimal((sign, (9,) * precision, -scale)) for sign in (0, 1))
    small, below = (Decimal((sign, (1,), -scale)) for sign in (0, 1))
    return pl.Series([small, largest, None, lowest, small, Decimal(0), below], dtype=pl.Decimal(precision, scale))


def moments(unit: str, zone: str | None = None) -> pl.Series:
    naive = [MOMENT, dt.datetime(1969, 12, 31, 23, 59, 59), None, *CLOCKS_BACK, MOMENT, dt.datetime(1970, 1, 1)]
    extremes = [dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)] if unit == "ns" else [dt.datetime(9999, 12, 31)]
    made = pl.Series([*naive, *extremes], dtype=pl.Datetime(unit))
    following = (made[:1].cast(pl.Int64) + 1).cast(made.dtype)
    made = pl.concat([made[:1], following, made[1:]])
    return made.dt.replace_time_zone("UTC").dt.convert_time_zone(zone) if zone else made


def lengths(unit: str) -> pl.Series:
    return pl.Series([5, -(10**15), None, 0, 5, 10**15, -1], dtype=pl.Int64).cast(pl.Duration(unit))


COLUMNS = {
    "Boolean": pl.Series([True, False, None, True, False, True]),
    **{f"Int{n}": integers(kind) for n, kind in [(8, pl.Int8), (16, pl.Int16), (32, pl.Int32), (64, pl.Int64)]},
    **{f"UInt{n}": integers(kind) for n, kind in [(8, pl.UInt8), (16, pl.UInt16), (32, pl.UInt32), (64, pl.UInt64)]},
    "Float32": floats(pl.Float32(), 32),
    "Float64": floats(pl.Float64(), 64),
    "Decimal(10, 2)": decimals(10, 2),
    "Decimal(38, 0)": decimals(38, 0),
    "Decimal(38, 10)": decimals(38, 10),
    "String": pl.Series(["b", "", None, "ü€😀", "b", "a' \"\\\n", "null", "long enough to be kept elsewhere"]),
    "Binary": pl.Series([b"b", b"", None, b"\xff\0\\", b"b", b"long enough to be kept elsewhere"]),
    "Date": pl.Series([MOMENT.date(), dt.date(1, 1, 1), None, dt.date(9999, 12, 31), MOMENT.date()]),
    "Time": pl.Series([dt.time(12), dt.time(0), None, dt.time(23, 59, 59, 999999), dt.time(12)]),
    **{f"Datetime({unit})": moments(unit) for unit in ("ms", "us", "ns")},
    **{f"Datetime({unit}, UTC)": moments(unit, "UTC") for unit in ("ms", "us", "ns")},
    "Datetime(us, Europe/Berlin)": moments("us", "Europe/Berlin"),
    **{f"Duration({unit})": lengths(unit) for unit in ("ms", "us", "ns")},
    "Enum": pl.Series(["b", "a", None, "c", "b"], dtype=pl.Enum(["c", "b", "a"])),
    "Categorical": pl.Series(["b", "a", None, "c", "b"], dtype=pl.Categorical),
    "List": pl.Series([[1, None], [], None, [None], [1, None], [2, 3]], dtype=pl.List(pl.Int64)),
    "Struct": pl.Series(
        [{"a": 1, "b": "x"}, {"a": None, "b": None}, None, {"a": 2, "b": "x"}, {"a": 1, "b": "x"}],
        dtype=pl.Struct({"a": pl.Int64, "b": pl.String}),
    ),
    "Null": pl.Series([None, None, None], dtype=pl.Null),
}
COLUMNS = {name: values.alias("v") for name, values in COLUMNS.items()}
