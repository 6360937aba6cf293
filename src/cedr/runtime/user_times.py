"""Times as users have them, and chronons."""

from collections.abc import Iterable

import polars as pl

from cedr.plan.source import Source
from cedr.temporal.errors import TimeError
from cedr.temporal.time import INF, MIN

TimeType = pl.DataType
"""How the user's times look: `pl.Int64`, or a `pl.Datetime` with its zone."""


def time_type(kind: pl.DataType) -> TimeType:
    if isinstance(kind, pl.Datetime):
        return pl.Datetime("us", kind.time_zone)
    return pl.Datetime("us") if kind == pl.Date else pl.Int64()


def as_chronons(times: pl.Series, source: Source) -> pl.Series:
    return chronons(times, f"source {source.name!r}")


def chronons(times: pl.Series, what: str) -> pl.Series:
    """Whole numbers as they are; timestamps, dates and durations as microseconds. Errors begin with `what`."""
    kind = times.dtype
    if kind == pl.Date:
        return times.cast(pl.Datetime("us")).cast(pl.Int64)
    if isinstance(kind, pl.Datetime):
        return times.dt.cast_time_unit("us").cast(pl.Int64)
    if isinstance(kind, pl.Duration):
        return times.dt.cast_time_unit("us").cast(pl.Int64)
    if kind.is_integer():
        return times.cast(pl.Int64)
    if kind == pl.Null:
        return times.cast(pl.Int64)
    hint = "parse it first: pl.col(...).str.to_datetime()" if kind == pl.String else "cast it to Int64 or a timestamp"
    raise TimeError(f"{what}: time column {times.name!r} is of type {kind}; {hint}")


def as_user_times(frame: pl.DataFrame, columns: Iterable[str], kind: TimeType) -> pl.DataFrame:
    """Chronons back in the user's type; no end is a missing value."""
    finite = [pl.when((pl.col(c) != INF) & (pl.col(c) != MIN)).then(pl.col(c)).cast(kind).alias(c) for c in columns]
    return frame.with_columns(finite)
