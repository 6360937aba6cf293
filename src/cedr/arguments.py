"""Checks and conversions of the arguments that users pass to stream methods.

Users write names, texts, numbers and expressions; plan nodes take polars expressions, tuples of names and chronons. An
argument that cannot be converted raises a `QueryError` that names the method and the argument.
"""

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from cedr.plan.loop import ITERATIONS_PER_CHUNK, MAX_ITERATIONS, Progress, Settings
from cedr.plan.schema import Schema, column_names, first_line
from cedr.temporal.consistency import MIDDLE, STRONG, WEAK, Consistency
from cedr.temporal.duration import Duration, duration
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF, MIN, as_time

Expressions = pl.Expr | str
Columns = str | pl.Expr | Sequence[str | pl.Expr]
"""Column names. `pl.col(name)` is accepted, other expressions are rejected."""
Times = tuple[int | datetime | None, int | datetime | None]
LEVELS = {"strong": STRONG, "middle": MIDDLE, "weak": WEAK}
EVER = (MIN, INF)


def as_expression(value: Any, what: str) -> pl.Expr:
    if isinstance(value, pl.Expr):
        return value
    if isinstance(value, str):
        try:
            return pl.sql_expr(value)
        except PolarsError as e:
            raise QueryError(f"{what}({value!r}): {first_line(e)}") from None
    if isinstance(value, bool):
        return pl.lit(value)
    raise QueryError(
        f'{what}: {value!r} is a {type(value).__name__}; write a polars expression, such as pl.col("load") > 0.9'
    )


def as_columns(expressions: Sequence[Any], named: dict[str, Any]) -> list[pl.Expr]:
    """Strings are column names, other values are literals; a keyword is the name of the output column."""
    flat = [e for group in expressions for e in (group if isinstance(group, list | tuple) else [group])]
    columns = [pl.col(e) if isinstance(e, str) else as_value(e) for e in flat]
    return columns + [(pl.col(e) if isinstance(e, str) else as_value(e)).alias(name) for name, e in named.items()]


def as_value(value: Any) -> pl.Expr:
    return value if isinstance(value, pl.Expr) else pl.lit(value)


def join_keys(
    what: str, on: Columns | None, left_on: Columns | None, right_on: Columns | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if on is not None and (left_on is not None or right_on is not None):
        raise QueryError(f"{what}: give on, or left_on and right_on, not both")
    if (left_on is None) != (right_on is None):
        raise QueryError(f"{what}: left_on and right_on go together")
    if on is not None:
        both = column_names(on, f"{what}: on")
        return both, both
    left, right = (() if side is None else side for side in (left_on, right_on))
    return column_names(left, f"{what}: left_on"), column_names(right, f"{what}: right_on")


def as_interval(times: Times | None, what: str) -> tuple[int, int]:
    """Both ends as chronons; a missing end is open."""
    if times is None:
        return EVER
    if not isinstance(times, tuple) or len(times) != 2:
        raise QueryError(f"{what} is {times!r}; it must be a pair of times, such as (10, 20) or (None, 20)")
    start, end = (as_chronon(time, what) for time in times)
    return MIN if start is None else start, INF if end is None else end


def split_times(row: Mapping[str, Any], schema: Schema) -> tuple[dict[str, Any], dict[str, Any]]:
    """The times of a result row, by `vs` and `ve`, and its payload.

    If the payload has a column of that name, the time is in `_vs` or `_ve`.
    """
    times = {f"_{name}" if name in schema else name: name for name in ("vs", "ve")}
    return {times[n]: v for n, v in row.items() if n in times}, {n: v for n, v in row.items() if n not in times}


def as_chronon(time: int | datetime | None, what: str) -> int | None:
    """A timestamp without a time zone is UTC, as in tables."""
    if isinstance(time, datetime):
        moment = time if time.tzinfo else time.replace(tzinfo=UTC)
        return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return None if time is None else as_time(time, what)


def as_level(level: Consistency | str | None, block: Duration | None, remember: Duration | None) -> Consistency | None:
    if level is not None and (block is not None or remember is not None):
        raise QueryError("give a level, or block and remember, not both")
    if isinstance(level, Consistency):
        return level
    if isinstance(level, str):
        if level.lower() not in LEVELS:
            raise QueryError(f"there is no level {level!r}; levels are {', '.join(LEVELS)}, or give block and remember")
        return LEVELS[level.lower()]
    if level is not None:
        raise QueryError(
            f"{level!r} is not a level; use cedr.STRONG, cedr.MIDDLE, cedr.WEAK, a name, or cedr.Consistency"
        )
    if block is None and remember is None:
        return None
    return Consistency(
        0 if block is None else duration(block, "block", least=0),
        MIDDLE.remember if remember is None else duration(remember, "remember", least=0),
    )


def directions(what: str, order: tuple[str, ...], descending: bool | Sequence[bool]) -> tuple[bool, ...]:
    """For each column of the order, whether it is descending."""
    found = (descending,) * len(order) if isinstance(descending, bool) else tuple(descending)
    if len(found) != len(order):
        raise QueryError(f"{what}: {len(order)} columns to order by, but {len(found)} values of descending")
    return found


# --- loops, whose arguments have been renamed ----------------------------------------------------------------------

RENAMED = {"most": "max_iterations", "turns": "iterations_per_chunk"}
"""Old names of the arguments of `iterate`, which still work in this version."""


def loop_settings(
    progress: Progress, max_iterations: int, iterations_per_chunk: int, renamed: Mapping[str, int]
) -> Settings:
    """The settings of `iterate`; `renamed` are arguments under their old names."""
    if unknown := [name for name in renamed if name not in RENAMED]:
        raise TypeError(f"iterate() got an unexpected keyword argument {unknown[0]!r}")
    settings = Settings(progress, max_iterations, iterations_per_chunk)
    changed = {new: getattr(settings, new) for new in RENAMED.values() if getattr(settings, new) != DEFAULTS[new]}
    return replace(settings, **with_current_names("iterate", {**changed, **renamed}))


DEFAULTS = {"max_iterations": MAX_ITERATIONS, "iterations_per_chunk": ITERATIONS_PER_CHUNK}


def with_current_names(what: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments under their current names; an old name warns."""
    current = {name: value for name, value in arguments.items() if name not in RENAMED}
    for old in (name for name in arguments if name in RENAMED):
        new = RENAMED[old]
        if new in current:
            raise QueryError(f"{what}: {old}= is the old name of {new}=; give only {new}=")
        warnings.warn(
            f"{what}: {old}= is now {new}=; the old name will be removed in the next version",
            DeprecationWarning,
            stacklevel=callers_stacklevel(),
        )
        current[new] = arguments[old]
    return current


def callers_stacklevel() -> int:
    """The `stacklevel` for a warning of the calling function that points at the first line outside this package."""
    package = os.path.dirname(__file__) + os.sep
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    return level
