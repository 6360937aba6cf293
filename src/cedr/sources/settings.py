"""The settings of `cedr.source`, in two groups: the times of its rows, and how far it has come.

Each group checks itself, and gives the fields of the plan node. Job files and the prompt have the same settings as flat
keys, and so has `cedr.source` itself for the most common ones; `grouped` sorts them into the groups.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypedDict, TypeVar, get_args

import polars as pl

from cedr.arguments import callers_stacklevel
from cedr.plan.nodes.source import Unit
from cedr.plan.schema import Schema, check_columns, column_names
from cedr.temporal.duration import UNITS as CHRONONS
from cedr.temporal.duration import Duration, is_duration
from cedr.temporal.duration import duration as as_duration
from cedr.temporal.errors import QueryError
from cedr.temporal.formats import format_problem
from cedr.temporal.time import INF

Time = str | pl.Expr


@dataclass(frozen=True, kw_only=True, eq=False)
class Times:
    """Which columns of a table hold the times of its rows, and how they are written.

    vs                 the start of the lifetime
    ve or duration     its end, or its length (`"60s"`, or a column of lengths); by default an event is one instant
    ve_new             the corrected end, in rows that correct an earlier one
    ends               every lifetime has an end, so that state can be forgotten; a row without an end is late
    unit               the unit of whole numbers that are times: "s", "ms", "us" or "ns" since 1970. Times and results
                       are then timestamps in UTC, and plain numbers in other arguments (`delay=500`) have this unit
    format             the format of times that are text: "%m/%d/%Y %H:%M"

    Each time is a column, a polars expression (`vs=pl.col("date").dt.combine(pl.col("time"))`), or an expression of the
    CEDR language (`vs="time_hour + minute * 1 minute"`). A column with exactly this name takes precedence.
    """

    vs: Time | None = None
    ve: Time | None = None
    duration: Duration | pl.Expr | None = None
    ve_new: Time | None = None
    ends: bool = False
    unit: Unit | None = None
    format: str | None = None

    def of_source(self, what: str) -> dict[str, Any]:
        """The fields of the plan node."""
        self._check(what)
        length = self._length(what)
        if self.ends and length == INF:
            raise QueryError(f"{what}: ends=True contradicts duration={self.duration!r}, which has no end")
        times = {name: text_of(getattr(self, name)) for name in ("vs", "ve", "ve_new")}
        return {**times, "duration": length, "ends": self.ends, "unit": self.unit, "format": self.format}

    def _check(self, what: str) -> None:
        if self.unit is not None and self.unit not in get_args(Unit):
            raise QueryError(f"{what}: unit={self.unit!r} is not one of {', '.join(map(repr, get_args(Unit)))}")
        for argument in ("unit", "format", "ve", "ve_new", "duration"):
            self.need_vs(what, argument, text_of(getattr(self, argument)))
        if self.unit is not None and self.format is not None:
            raise QueryError(f"{what}: give unit={self.unit!r} for whole numbers or format={self.format!r} for text")
        if self.format is not None and (problem := format_problem(self.format)):
            raise QueryError(f"{what}: format={self.format!r} {problem}")
        if self.ve is not None and self.duration is not None:
            both = f"ve={text_of(self.ve)!r} or duration={text_of(self.duration)!r}"
            raise QueryError(f"{what}: give {both}, not both")

    def need_vs(self, what: str, argument: str, value: Any) -> None:
        """Settings of tables need a column of start times."""
        if value is not None and self.vs is None:
            raise QueryError(f"{what}: {argument}={value!r} needs vs, the column of the start times")

    def _length(self, what: str) -> int | str:
        """One instant by default; a text that is not a duration is the name of a column."""
        length = self.in_unit(text_of(self.duration))
        if length is None:
            return 1
        if isinstance(length, str) and not is_duration(length) and length.lower() not in ("inf", "∞", "forever"):
            return length
        return as_duration(length, f"{what}: duration")

    def in_unit(self, length: Any) -> Any:
        """Plain numbers count the unit of the source's times, if it has one."""
        if self.unit is None or not isinstance(length, int) or isinstance(length, bool) or length == INF:
            return length
        return length * CHRONONS[self.unit] if self.unit != "ns" else -(-length // 1000)


@dataclass(frozen=True, kw_only=True, eq=False)
class Progress:
    """How far a source has come: stated by its rows, or derived from their times.

    cti                the column of progress: no later row changes a time before this
    delay              progress without a `cti` column: a row starts at most this long before any earlier row
    ordered            rows arrive in time order
    partition          the column that names the partition of a row (a Kafka partition, a device): progress is derived
                       for each partition, and the source has progressed as far as the slowest of them
    by                 the column, or columns, whose values progress independently: `delay` holds among the rows of one
                       value, and its progress depends on these rows alone, so a value that is silent, or whose clock
                       is ahead, does not affect others. There is no progress of the whole source, unless `idle` is the
                       time after which a silent value no longer counts
    idle               a partition without rows for this long, by wall-clock time, no longer holds back the others
    punctuation        the column that is true in rows that are punctuations: no more rows like this one before its
                       `vs`, or ever if `vs` is missing. A missing value in another column matches every value
    promises           the columns that punctuations will be about, or lists of columns for punctuations about several:
                       `promises=["auction", ["zone", "hour"]]`. With this declaration a query waits no longer than
                       necessary. The columns of `by` are included
    external_ctis      the stream contains external CTIs; for a table, the column of their counts: a row with a count
                       declares the number of rows whose sync time is in its `[vs, ve)`
    max_ahead          a row that starts more than this after the wall-clock time is late and does not affect progress;
                       times that are whole numbers count as microseconds since 1970

    In job files the key of `by` is `progress_by`.
    """

    cti: Time | None = None
    delay: Duration | None = None
    ordered: bool = False
    partition: str | None = None
    by: str | Sequence[str] = ()
    idle: Duration | None = None
    punctuation: str | None = None
    promises: str | Sequence[str | Sequence[str]] = ()
    external_ctis: bool | str = False
    max_ahead: Duration | None = None

    def of_source(self, what: str, times: Times, columns: Schema, by: str = "by") -> dict[str, Any]:
        """The fields of the plan node; errors name `Progress.by` as `by`."""
        counts = self.external_ctis if isinstance(self.external_ctis, str) else None
        cti = text_of(self.cti)
        needing = {"cti": cti, "external_ctis": counts, "partition": self.partition, "punctuation": self.punctuation}
        for argument, column in needing.items():
            times.need_vs(what, argument, column)
        if counts is not None and times.ve is None:
            raise QueryError(f"{what}: external_ctis={counts!r} needs ve, where the span of a count ends")
        values = self._by(what, columns, by)
        if self.idle is not None and self.partition is None and not values:
            raise QueryError(
                f"{what}: idle={self.idle!r} needs partition or {by}, the columns whose values may fall silent"
            )
        schemes = [*as_schemes(what, self.promises, columns), *([tuple(sorted(values))] if values else [])]
        lengths = {
            name: None if given is None else as_duration(times.in_unit(given), f"{what}: {name}", least=0)
            for name, given in (("delay", self.delay), ("idle", self.idle), ("max_ahead", self.max_ahead))
        }
        return {
            **lengths,
            "cti": cti,
            "ordered": self.ordered,
            "external": bool(self.external_ctis),
            "counts": counts,
            "partition": self.partition,
            "progress_by": values,
            "punctuation": self.punctuation,
            "promises": tuple(dict.fromkeys(schemes)),
        }

    def _by(self, what: str, columns: Schema, by: str) -> tuple[str, ...]:
        if not isinstance(self.by, pl.Expr) and not self.by:
            return ()
        what = f"{what}: {by}={self.by!r}"
        check_columns(found := column_names(self.by, what), columns, what)
        check_promised(found, columns, what)
        if self.ordered:
            raise QueryError(
                f"{what}: ordered rows have one progress; if the rows of each value are ordered, use delay=0"
            )
        if self.delay is None:
            raise QueryError(f"{what} needs delay, how late a row may be among the rows of its value; 0 if ordered")
        if self.partition is not None:
            raise QueryError(f"{what}: give {by} or partition={self.partition!r}, not both")
        return found


def is_column(expression: pl.Expr) -> bool:
    return expression.meta.is_column()


def text_of(time: Any) -> Any:
    """The column, or the text of the expression; other values unchanged."""
    if isinstance(time, pl.Expr):
        return time.meta.output_name() if is_column(time) else str(time)
    return time


def expressions_of(times: Times, progress: Progress) -> tuple[tuple[str, pl.Expr], ...]:
    """The times that are polars expressions, by their texts."""
    given = (times.vs, times.ve, times.ve_new, progress.cti, times.duration)
    return tuple((str(time), time) for time in given if isinstance(time, pl.Expr) and not is_column(time))


def as_schemes(what: str, promises: str | Sequence[str | Sequence[str]], columns: Schema) -> list[tuple[str, ...]]:
    """The sets of columns, each in order of their names."""
    found = []
    several = isinstance(promises, Sequence) and not isinstance(promises, str)
    for scheme in promises if several else [promises]:
        together = column_names(scheme, f"{what}: promises")
        check_columns(together, columns, about := f"{what}: promises={promises!r}")
        check_promised(together, columns, about)
        if not together:
            raise QueryError(f"{about}; a promise about no column is a CTI")
        found.append(tuple(sorted(set(together))))
    return found


def check_promised(names: Sequence[str], columns: Schema, what: str) -> None:
    """Promises are about single values."""
    if nested := [name for name in names if columns[name].is_nested()]:
        raise QueryError(
            f"{what}: {nested[0]!r} is of type {columns[nested[0]]}, but promises require single values; "
            "declare a separate column for the part they are about"
        )


# --- flat settings ---------------------------------------------------------------------------------------------------


class Moved(TypedDict, total=False):
    """Arguments of `cedr.source` that are now in its groups. They work for one more version."""

    ve_new: Time | None
    unit: Unit | None
    format: str | None
    ends: bool
    ordered: bool
    external_ctis: bool | str
    partition: str | None
    idle: Duration | None
    progress_by: str | Sequence[str]
    punctuation: str | None
    promises: str | Sequence[str | Sequence[str]]
    max_ahead: Duration | None
    per: str | Sequence[str]
    future: Duration | None


RENAMED = {"progress_by": "by", "per": "by", "future": "max_ahead"}
"""Fields of the groups by other names: a key of job files, and former names."""
OF_TIMES = frozenset(field.name for field in fields(Times))

Group = TypeVar("Group", Times, Progress)


def grouped(
    what: str, settings: Mapping[str, Any], times: Times | None = None, progress: Progress | None = None
) -> tuple[Times, Progress]:
    """Both groups, with the flat settings added; a setting must not be given twice."""
    groups: dict[str, dict[str, Any]] = {"times": {}, "progress": {}}
    for key, value in settings.items():
        name = RENAMED.get(key, key)
        given = groups["times" if name in OF_TIMES else "progress"]
        if name in given:
            raise QueryError(f"{what}: {key}= is given twice, also under another name; leave one of them out")
        given[name] = value
    return (
        with_settings(what, "times", Times() if times is None else times, groups["times"]),
        with_settings(what, "progress", Progress() if progress is None else progress, groups["progress"]),
    )


def with_settings(what: str, argument: str, group: Group, given: Mapping[str, Any]) -> Group:
    expected = Times if argument == "times" else Progress
    if not isinstance(group, expected):
        raise QueryError(f"{what}: {argument}={group!r} must be a cedr.{expected.__name__}")
    for field in fields(group):
        if field.name in given and getattr(group, field.name) is not field.default:
            raise QueryError(f"{what}: {field.name} is given twice, also in {argument}; leave one of them out")
    return replace(group, **given)


def warn_of_moved(what: str, moved: Mapping[str, Any]) -> None:
    """Warns of each argument that has moved to a group."""
    for key in moved:
        if key not in Moved.__annotations__:
            raise TypeError(f"source() got an unexpected keyword argument {key!r}")
        name = RENAMED.get(key, key)
        group = "times=cedr.Times" if name in OF_TIMES else "progress=cedr.Progress"
        warnings.warn(
            f"{what}: {key}= is now {group}({name}=...); the flat name will be removed in the next version",
            DeprecationWarning,
            stacklevel=callers_stacklevel(),
        )
