"""Conversion between users' times and chronons."""

from collections.abc import Iterable

import polars as pl

from cedr.plan.nodes.source import Source, Unit
from cedr.temporal.errors import QueryError, TimeError
from cedr.temporal.time import INF, MIN

TimeType = pl.DataType
"""The type of the user's times: `pl.Int64`, or a `pl.Datetime` with its zone."""


def time_type(kind: pl.DataType) -> TimeType:
    if isinstance(kind, pl.Datetime):
        return pl.Datetime("us", kind.time_zone)
    return pl.Datetime("us") if kind == pl.Date else pl.Int64()


def check_alike(source: Source, before: TimeType, kind: TimeType) -> None:
    """Times of one source are all numbers, all timestamps without a zone, or all with one; zones may differ."""
    if before != kind and family(before) != family(kind):
        raise QueryError(
            f"source {source.name!r}: times were {family(before)} before, and this table has {family(kind)}; "
            "convert one of them, for example with dt.replace_time_zone"
        )


def family(kind: TimeType) -> str:
    if not isinstance(kind, pl.Datetime):
        return "whole numbers"
    return f"timestamps {'with' if kind.time_zone else 'without'} a zone"


FARTHEST = 8_200_000_000_000_000_000
"""Timestamps further away from 1970 than this many microseconds, about 260,000 years, cannot be printed by polars."""

PER_UNIT = {"ms": 1_000, "us": 1}
"""Chronons per unit of timestamps and durations."""

DAY = 86_400_000_000


def chronons(times: pl.Series, what: str) -> pl.Series:
    """Whole numbers unchanged; timestamps, dates and durations as microseconds. Errors begin with `what`."""
    found, outside = chronons_within(times, what)
    if outside is not None:
        value = times.filter(outside).to_physical()[0]
        raise TimeError(f"{what}: time column {times.name!r} contains {value}, which is outside the range of times")
    return found


def chronons_within(times: pl.Series, what: str) -> tuple[pl.Series, pl.Series | None]:
    """The times in chronons, and which of them are outside the range of times, if any; these are missing."""
    kind = times.dtype
    if kind == pl.Int64:
        return times, None
    if kind.is_integer() or kind == pl.Null:
        found = times.cast(pl.Int64, strict=False)
        outside = found.is_null() & times.is_not_null()
        return found, outside if outside.any() else None
    if isinstance(kind, pl.Datetime | pl.Duration) and kind.time_unit == "ns":
        return times.dt.cast_time_unit("us").cast(pl.Int64), None
    if isinstance(kind, pl.Date):
        return scaled(times, DAY, FARTHEST)
    if isinstance(kind, pl.Datetime | pl.Duration):
        return scaled(times, PER_UNIT[kind.time_unit], FARTHEST if isinstance(kind, pl.Datetime) else INF - 1)
    hint = 'declare its format: format="%m/%d/%Y %H:%M"' if kind == pl.String else "cast it to Int64 or a timestamp"
    raise TimeError(f"{what}: time column {times.name!r} is of type {kind}; {hint}")


def counted_chronons(numbers: pl.Series, unit: Unit) -> tuple[pl.Series, pl.Series | None]:
    """Whole numbers of a unit, converted like `chronons_within`."""
    found, outside = chronons_within(numbers, "")
    if unit == "ns":
        return found // 1000, outside
    counts, far = scaled(found, {"s": 1_000_000, **PER_UNIT}[unit], FARTHEST)
    return counts, outside if far is None else far if outside is None else far | outside


def scaled(times: pl.Series, factor: int, limit: int) -> tuple[pl.Series, pl.Series | None]:
    """Counts of a unit as chronons. The counts are compared, because products could overflow."""
    counts = times.to_physical().cast(pl.Int64)
    first, last = limits(counts) or (0, 0)
    if first >= -(limit // factor) and last <= limit // factor:
        return counts if factor == 1 else counts * factor, None
    outside = ((counts > limit // factor) | (counts < -(limit // factor))).fill_null(False)
    if isinstance(times.dtype, pl.Datetime) and factor == 1:
        outside &= (counts != INF).fill_null(False)  # cedr itself writes the end of time like this
    if outside.any():
        return counts.set(outside, None) * factor, outside
    return counts * factor, None


def limits(numbers: pl.Series) -> tuple[int, int] | None:
    """The lowest and the highest of some whole numbers, if there are any."""
    low, high = numbers.min(), numbers.max()
    return (low, high) if isinstance(low, int) and isinstance(high, int) else None


def as_user_times(frame: pl.DataFrame, columns: Iterable[str], kind: TimeType) -> pl.DataFrame:
    """Chronons in the user's type; infinity is null."""
    finite = [pl.when((pl.col(c) != INF) & (pl.col(c) != MIN)).then(pl.col(c)).cast(kind).alias(c) for c in columns]
    return frame.with_columns(finite)
