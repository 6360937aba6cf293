"""Sources, where queries start, and the aggregates for `agg`."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

import polars as pl

from cedr.arguments import callers_stacklevel
from cedr.plan import aggregates
from cedr.plan.nodes.source import Source, Unit
from cedr.plan.schema import as_schema, check_columns, column_name, column_names
from cedr.stream import Stream
from cedr.temporal.duration import UNITS as CHRONONS
from cedr.temporal.duration import Duration, duration, is_duration
from cedr.temporal.errors import QueryError
from cedr.temporal.formats import format_problem
from cedr.temporal.time import INF


def source(
    name: str,
    schema: Mapping[str, Any],
    *,
    vs: str | pl.Expr | None = None,
    ve: str | pl.Expr | None = None,
    duration: Duration | pl.Expr | None = None,
    ve_new: str | pl.Expr | None = None,
    cti: str | pl.Expr | None = None,
    unit: Unit | None = None,
    format: str | None = None,
    types: str | None = None,
    kind: str | None = None,
    delay: Duration | None = None,
    ordered: bool = False,
    insert_only: bool | None = None,
    external_ctis: bool | str = False,
    partition: str | None = None,
    idle: Duration | None = None,
    progress_by: str | Sequence[str] = (),
    punctuation: str | None = None,
    promises: str | Sequence[str | Sequence[str]] = (),
    max_ahead: Duration | None = None,
    late: Literal["collect", "raise"] = "collect",
    valid: bool = False,
    ends: bool = False,
    per: str | Sequence[str] | None = None,
    future: Duration | None = None,
) -> Stream:
    """A named stream of events with the payload columns of `schema`.

    The other arguments declare which columns of a table hold its times, and what the stream guarantees:

    vs                 the start of the lifetime
    ve or duration     its end, or its length (`"60s"`, or a column of lengths); by default an event is one instant
    ends               every lifetime has an end, so that state can be forgotten; a row without an end is late
    ve_new             the corrected end, in rows that correct an earlier one
    cti                the column of progress: no later row changes a time before this
    unit               the unit of whole numbers that are times: "s", "ms", "us" or "ns" since 1970. Times and results
                       are then timestamps in UTC, and plain numbers in other arguments (`delay=500`) have this unit
    format             the format of times that are text: "%m/%d/%Y %H:%M"
    delay              progress without a `cti` column: a row starts at most this long before any earlier row
    types, kind        the column that names an event's type, or the type of all events; for patterns
    ordered            rows arrive in time order
    insert_only        no row corrects an earlier one; the default for tables without `ve_new`
    external_ctis      the stream contains external CTIs; for a table, the column of their counts: a row with a count
                       declares the number of rows whose sync time is in its `[vs, ve)`
    partition          the column that names the partition of a row (a Kafka partition, a device): progress is derived
                       for each partition, and the source has progressed as far as the slowest of them
    idle               a partition without rows for this long, by wall-clock time, no longer holds back the others
    progress_by        the column, or columns, whose values progress independently: `delay` holds among the rows of one
                       value, and its progress depends on these rows alone, so a value that is silent, or whose clock
                       is ahead, does not affect others. There is no progress of the whole source, unless `idle` is the
                       time after which a silent value no longer counts
    punctuation        the column that is true in rows that are punctuations: no more rows like this one before its
                       `vs`, or ever if `vs` is missing. A missing value in another column matches every value
    promises           the columns that punctuations will be about, or lists of columns for punctuations about several:
                       `promises=["auction", ["zone", "hour"]]`. With this declaration a query waits no longer than
                       necessary. The columns of `progress_by` are included
    max_ahead          a row that starts more than this after the wall-clock time is late and does not affect progress;
                       times that are whole numbers count as microseconds since 1970
    late               rows that break a promise are collected (`result.late()`) or raise an error
    valid              the stream keeps all its promises and adjusts only events it contains, as streams written by
                       cedr do: nothing is checked, and no state is kept for checks

    Each time is a column, a polars expression (`vs=pl.col("date").dt.combine(pl.col("time"))`), or an expression of the
    CEDR language (`vs="time_hour + minute * 1 minute"`). A column with exactly this name takes precedence.

    Elements (`cedr.Insert` and so on) need none of the time columns. `per` and `future` are the former names of
    `progress_by` and `max_ahead`; they are deprecated.
    """
    progress_by = renamed(name, "per", per, "progress_by", progress_by)
    max_ahead = renamed(name, "future", future, "max_ahead", max_ahead)
    made = [time for time in (vs, ve, ve_new, cti, duration) if isinstance(time, pl.Expr) and not is_column(time)]
    vs, ve, ve_new, cti = (text_of(time) for time in (vs, ve, ve_new, cti))
    duration = text_of(duration) if isinstance(duration, pl.Expr) else duration
    check_time_settings(name, vs, unit, format)
    columns = as_schema(schema, f"source({name!r})")
    if ve is not None and duration is not None:
        raise QueryError(f"source({name!r}): give ve={ve!r} or duration={duration!r}, not both")
    counts = external_ctis if isinstance(external_ctis, str) else None
    times = {"ve": ve, "ve_new": ve_new, "cti": cti, "duration": duration, "external_ctis": counts}
    for argument, column in {**times, "partition": partition, "punctuation": punctuation}.items():
        if column is not None and vs is None:
            raise QueryError(f"source({name!r}): {argument}={column!r} needs vs, the column of the start times")
    if idle is not None and partition is None and not progress_by:
        raise QueryError(
            f"source({name!r}): idle={idle!r} needs partition or progress_by, the columns whose values may fall silent"
        )
    length = lifetime_length(name, in_unit(duration, unit))
    if ends and length == INF:
        raise QueryError(f"source({name!r}): ends=True contradicts duration={duration!r}, which has no end")
    values = as_progress_by(name, progress_by, columns, delay, ordered, partition)
    schemes = as_schemes(name, promises, columns)
    if counts is not None and ve is None:
        raise QueryError(f"source({name!r}): external_ctis={counts!r} needs ve, where the span of a count ends")
    if types is not None:
        check_columns([types], columns, f"source({name!r}, types={types!r})")
        if kind is not None:
            raise QueryError(f"source({name!r}): give types={types!r} or kind={kind!r}, not both")
    if insert_only and ve_new is not None:
        raise QueryError(f"source({name!r}): insert_only=True contradicts ve_new={ve_new!r}, the column of corrections")
    only_inserts = (vs is not None and ve_new is None) if insert_only is None else insert_only
    return Stream(
        Source(
            name,
            tuple(columns.items()),
            vs,
            ve,
            ve_new,
            cti,
            length,
            types,
            kind,
            only_inserts,
            ordered,
            None if delay is None else as_delay(name, in_unit(delay, unit)),
            external=bool(external_ctis),
            counts=counts,
            partition=partition,
            idle=None if idle is None else as_idle(name, in_unit(idle, unit)),
            progress_by=values,
            punctuation=punctuation,
            promises=tuple(dict.fromkeys([*schemes, *([tuple(sorted(values))] if values else [])])),
            max_ahead=None if max_ahead is None else as_max_ahead(name, in_unit(max_ahead, unit)),
            late=late,
            valid=valid,
            ends=ends,
            expressions=tuple((str(time), time) for time in made),
            unit=unit,
            format=format,
        )
    )


def renamed(name: str, old: str, given: Any, new: str, value: Any) -> Any:
    """The value of an argument, which may be given under its former name for one more version."""
    if given is None:
        return value
    if value not in ((), None):
        raise QueryError(f"source({name!r}): {old}= is the former name of {new}=; leave {old} out")
    warnings.warn(f"source({name!r}): {old}= is now called {new}=", DeprecationWarning, stacklevel=callers_stacklevel())
    return given


def is_column(expression: pl.Expr) -> bool:
    return expression.meta.is_column()


def text_of(time: str | pl.Expr | None) -> str | None:
    """The column, or the text of the expression."""
    if isinstance(time, pl.Expr):
        return time.meta.output_name() if is_column(time) else str(time)
    return time


def check_time_settings(name: str, vs: str | None, unit: str | None, format: str | None) -> None:
    if unit is not None and unit not in get_args(Unit):
        raise QueryError(f"source({name!r}): unit={unit!r} is not one of {', '.join(map(repr, get_args(Unit)))}")
    for argument, value in (("unit", unit), ("format", format)):
        if value is not None and vs is None:
            raise QueryError(f"source({name!r}): {argument}={value!r} needs vs, the column of the start times")
    if unit is not None and format is not None:
        raise QueryError(f"source({name!r}): give unit={unit!r} for whole numbers or format={format!r} for text")
    if format is not None and (problem := format_problem(format)):
        raise QueryError(f"source({name!r}): format={format!r} {problem}")


def in_unit(length: Any, unit: Unit | None) -> Any:
    """Plain numbers count the unit of the source's times, if it has one."""
    if unit is None or not isinstance(length, int) or isinstance(length, bool) or length == INF:
        return length
    return length * CHRONONS[unit] if unit != "ns" else -(-length // 1000)


def lifetime_length(name: str, length: Duration | None) -> int | str:
    """One instant by default; a text that is not a duration is the name of a column."""
    if length is None:
        return 1
    if isinstance(length, str) and not is_duration(length) and length.lower() not in ("inf", "∞", "forever"):
        return length
    return duration(length, f"source({name!r}): duration")


def as_delay(name: str, delay: Duration) -> int:
    return duration(delay, f"source({name!r}): delay", least=0)


def as_idle(name: str, idle: Duration) -> int:
    return duration(idle, f"source({name!r}): idle", least=0)


def as_max_ahead(name: str, max_ahead: Duration) -> int:
    return duration(max_ahead, f"source({name!r}): max_ahead", least=0)


def as_progress_by(
    name: str,
    progress_by: str | Sequence[str],
    columns: Mapping[str, Any],
    delay: Duration | None,
    ordered: bool,
    partition: str | None,
) -> tuple[str, ...]:
    if not isinstance(progress_by, pl.Expr) and not progress_by:
        return ()
    what = f"source({name!r}): progress_by={progress_by!r}"
    check_columns(found := column_names(progress_by, what), columns, what)
    check_promised(found, columns, what)
    if ordered:
        raise QueryError(f"{what}: ordered rows have one progress; if the rows of each value are ordered, use delay=0")
    if delay is None:
        raise QueryError(f"{what} needs delay, how late a row may be among the rows of its value; 0 if ordered")
    if partition is not None:
        raise QueryError(
            f"{what}: give progress_by or partition={partition!r}; progress is of each value or each partition"
        )
    return found


def as_schemes(
    name: str, promises: str | Sequence[str | Sequence[str]], columns: Mapping[str, Any]
) -> list[tuple[str, ...]]:
    """The sets of columns, each in order of their names."""
    found = []
    several = isinstance(promises, Sequence) and not isinstance(promises, str)
    for scheme in promises if several else [promises]:
        together = column_names(scheme, f"source({name!r}): promises")
        check_columns(together, columns, what := f"source({name!r}): promises={promises!r}")
        check_promised(together, columns, what)
        if not together:
            raise QueryError(f"source({name!r}): promises={promises!r}; a promise about no column is a CTI")
        found.append(tuple(sorted(set(together))))
    return found


def check_promised(names: Sequence[str], columns: Mapping[str, Any], what: str) -> None:
    """Promises are about single values."""
    if nested := [name for name in names if columns[name].is_nested()]:
        raise QueryError(
            f"{what}: {nested[0]!r} is of type {columns[nested[0]]}, and promises are about single values; "
            "declare a column of its own for the part they are about"
        )


# --- aggregates ----------------------------------------------------------------------------------------------------

Column = str | pl.Expr
"""A column name. `pl.col(name)` is accepted, other expressions are rejected."""


def count(column: Column | None = None) -> aggregates.Aggregate:
    """The number of rows, or of rows with a value in the column."""
    return aggregates.Count(None if column is None else column_name(column, "count"))


def sum(column: Column) -> aggregates.Aggregate:
    """The sum of the values; missing values are ignored."""
    return aggregates.Sum(column_name(column, "sum"))


def avg(column: Column) -> aggregates.Aggregate:
    """The mean of the values; missing values are ignored."""
    return aggregates.Avg(column_name(column, "avg"))


def min(column: Column) -> aggregates.Aggregate:
    """The smallest value."""
    return aggregates.Min(column_name(column, "min"))


def max(column: Column) -> aggregates.Aggregate:
    """The largest value."""
    return aggregates.Max(column_name(column, "max"))


def stddev(column: Column) -> aggregates.Aggregate:
    """The sample standard deviation: divided by n - 1, missing for fewer than two values."""
    return aggregates.Stddev(column_name(column, "stddev"))


def first(column: Column) -> aggregates.Aggregate:
    """The value of the row that starts first."""
    return aggregates.First(column_name(column, "first"))


def last(column: Column) -> aggregates.Aggregate:
    """The value of the row that starts last."""
    return aggregates.Last(column_name(column, "last"))


def quantile(column: Column, q: float) -> aggregates.Aggregate:
    """The smallest value that at least the share q of the values does not exceed."""
    if isinstance(q, bool) or not isinstance(q, int | float):
        raise QueryError(f"quantile({column!r}, {q!r}): the share must be a number between 0 and 1, such as 0.95")
    return aggregates.Quantile(column_name(column, "quantile"), q)


def median(column: Column) -> aggregates.Aggregate:
    """The smallest value that at least half of the values do not exceed."""
    return aggregates.Quantile(column_name(column, "median"), 0.5)


def count_distinct(column: Column) -> aggregates.Aggregate:
    """The number of different values; missing values are ignored."""
    return aggregates.CountDistinct(column_name(column, "count_distinct"))


def mode(column: Column) -> aggregates.Aggregate:
    """The value that occurs most often; the smallest of several."""
    return aggregates.Mode(column_name(column, "mode"))


def aggregate(
    *columns: Column, function: Callable[[pl.DataFrame], Any], dtype: Any = pl.Float64
) -> aggregates.Aggregate:
    """`function` of the rows of each snapshot, passed as a frame of these columns."""
    what = f"aggregate(dtype={dtype!r})"
    (kind,) = as_schema({"result": dtype}, what).values()
    if isinstance(kind, pl.List) and kind.inner == pl.Null():
        raise QueryError(f"{what}: declare the type of the list's values, such as dtype=pl.List(pl.Float64)")
    return aggregates.UserDefined("", column_names(columns, "aggregate"), function, kind)
