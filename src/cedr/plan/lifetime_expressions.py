"""Lifetimes as expressions: what `alter_lifetime` computes from the columns `vs`, `ve` and `length`.

An event without end has an infinite end and an infinite length, as floating point numbers have them: `length * 3` and
`length - 10` stay infinite, and `min_horizontal("length", 10)` is 10. A result beyond the ends of time is cut there; a
finite length that does not fit into 64 bits is the largest that does.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from cedr.columnar.times import ENDLESS, Lengths, Times, lengths
from cedr.plan.schema import first_line
from cedr.temporal.duration import Duration, duration
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF, MIN, show

FLOAT_LIMIT = 2.0**63


def start_function(start: pl.Expr | None, text: str) -> Callable[[Times], Times]:
    if start is None:
        return lambda vs: vs
    if not isinstance(start, pl.Expr):
        raise QueryError(f'{text}: start must be an expression of vs, such as pl.col("vs") + 5')
    return partial(start_of, start, text)


def start_of(expression: pl.Expr, text: str, vs: Times) -> Times:
    return on_times(expression, pl.DataFrame({"vs": vs}), text)


def length_function(length: pl.Expr | Duration | None, text: str) -> Callable[[Times, Times], Lengths]:
    if length is None:
        return lengths
    if isinstance(length, pl.Expr):
        return partial(length_of, length, text)
    constant = duration(length, f"{text}: duration")
    return lambda vs, ve: np.full(len(vs), ENDLESS if constant == INF else constant, dtype=np.uint64)


def length_of(expression: pl.Expr, text: str, vs: Times, ve: Times) -> Lengths:
    endless = ve == INF
    found = np.empty(len(vs), dtype=np.int64)
    for which, frame in ((~endless, finite), (endless, infinite)):
        if which.any():
            found[which] = on_times(expression, frame(vs[which], ve[which]), text)
    if (found <= 0).any():
        at = int(np.argmax(found <= 0))
        raise QueryError(f"{text} gives [{vs[at]}, {show(int(ve[at]))}) the length {found[at]}; it must be at least 1")
    return np.where(found == INF, ENDLESS, found.astype(np.uint64))


def finite(vs: Times, ve: Times) -> pl.DataFrame:
    length = np.minimum(lengths(vs, ve), np.uint64(INF - 1)).astype(np.int64)
    return pl.DataFrame({"vs": vs, "ve": ve, "length": length})


def infinite(vs: Times, ve: Times) -> pl.DataFrame:
    ends = np.full(len(vs), np.inf)
    return pl.DataFrame({"vs": vs, "ve": ends, "length": ends})


def progress_function(progress: pl.Expr | None, start: pl.Expr | None, text: str) -> Callable[[Times], Times]:
    if progress is None:
        return start_function(start, text)
    return partial(progress_of, progress, text)


def progress_of(expression: pl.Expr, text: str, t: Times) -> Times:
    found = on_times(expression, pl.DataFrame({"t": t}), text)
    return np.where((t == INF) | (t == MIN), t, found)


def on_times(expression: pl.Expr, frame: pl.DataFrame, text: str) -> Times:
    """The expression of columns of times, cut at the ends of time where it leaves 64 bits."""
    columns = ", ".join(frame.columns)
    try:
        found = frame.select(expression.alias("time"))["time"]
        exact = as_times(found)
    except PolarsError as e:
        raise QueryError(f"{text}: {first_line(e)} (columns: {columns})") from None
    if exact is None:
        at = frame.row(int((found.is_null() | found.cast(pl.Float64).is_nan()).arg_max() or 0), named=True)
        raise QueryError(f"{text} has no value for {at}; it must be a number for every event")
    if found.dtype.is_integer():
        exact = unwrapped(expression, frame, exact)
    return np.broadcast_to(exact, frame.height)


def as_times(found: pl.Series) -> Times | None:
    """None if a value is missing or is not a number."""
    if found.null_count() or (found.dtype.is_float() and found.is_nan().any()):
        return None
    if not found.dtype.is_float():
        return found.cast(pl.Int64).to_numpy()
    values = found.cast(pl.Float64).to_numpy()
    inside = np.abs(values) < FLOAT_LIMIT
    return np.where(inside, np.where(inside, values, 0).astype(np.int64), np.where(values > 0, INF, MIN))


def unwrapped(expression: pl.Expr, frame: pl.DataFrame, exact: Times) -> Times:
    """Whole numbers wrap around at 64 bits. The same in floating point numbers shows where that happened."""
    try:
        rough = frame.cast(pl.Float64).select(expression.alias("time").cast(pl.Float64))["time"].to_numpy()
    except PolarsError:  # an expression of whole numbers only, which does not multiply
        return exact
    wrapped = np.abs(rough - exact) > FLOAT_LIMIT / 2
    return np.where(wrapped, np.where(rough > 0, INF, MIN), exact) if wrapped.any() else exact
