"""The columns a source needs from a file, and conversion of their types.

A value is cast if that is lossless: whole numbers to wider ones, dates to timestamps, `1.0` to `1`. A lossy cast is an
error of the file, as is a missing column. Other columns are not read.
"""

from dataclasses import dataclass

import polars as pl
from polars.exceptions import PolarsError

from cedr.plan.nodes.source import Source
from cedr.plan.schema import first_line, unknown_column
from cedr.sources.event_time import Names, columns_read, direct_column, needed_columns, time_settings
from cedr.sources.files import clock
from cedr.sources.files.settings import Files
from cedr.sources.files.unreadable import ProblemError
from cedr.sources.user_times import chronons_within
from cedr.temporal.errors import QueryError

Expected = dict[str, pl.DataType | None]
"""Types by column; None accepts any type."""


@dataclass(frozen=True)
class ExpectedColumns:
    """What a source expects of a file. `written` is the clock; files that are not `typed` contain text."""

    source: Source
    written: str | None
    typed: bool = True

    def of(self, names: Names) -> Expected:
        """The expected types for a file with these columns."""
        return expected_types(self.source, self.written, names, self.typed)


def expected_types(source: Source, written: str | None, names: Names = None, typed: bool = True) -> Expected:
    """`written` is the clock; until a file determines it, times must be numbers. `names` are the columns of the file,
    if known. Files that are not `typed` need declared types for all columns that expressions use."""
    time = pl.String() if source.format else clock.as_type(written or "number")
    found: Expected = dict.fromkeys(needed_columns(source, names))
    for setting, text in time_settings(source).items():
        column = direct_column(source, text, names)
        if column is not None:
            found[column] = None if setting == "duration" else time
            continue
        for part in columns_read(source, text, names):
            found[part] = pl.String() if source.format and setting != "duration" else None
            if not typed and found[part] is None and part not in source.schema:
                raise ProblemError(f": column {part!r} is a part of {setting}={text!r}; declare its type in the schema")
    if source.counts is not None:
        found[source.counts] = pl.Int64()
    if source.punctuation is not None:
        found[source.punctuation] = pl.Boolean()
    return {**found, **source.schema}


def check_source(source: Source, settings: Files) -> None:
    """Errors that can be found before any file is read."""
    what = f"source {source.name!r} from files({settings.path!r})"
    if source.vs is None:
        raise QueryError(
            f"{what}: the source has no time column; "
            f'declare it with cedr.source({source.name!r}, ..., vs="column of the start times")'
        )
    for setting, text in time_settings(source).items():
        column = direct_column(source, text)
        if source.schema.get(column or "") == pl.String and not source.format:
            raise QueryError(
                f"{what}: {setting}={text!r} contains times, but its type in the schema is text; declare its format, "
                'for example format="%m/%d/%Y %H:%M", or its type as pl.Datetime'
            )
    if settings.format == "parquet":
        return
    if source.partition is not None and source.partition not in source.schema:
        raise QueryError(f"{what}: {settings.format} has no types; declare {source.partition!r} in the schema")
    unknown = (pl.Binary, pl.Object, pl.Duration) if settings.format == "csv" else (pl.Binary, pl.Duration, pl.Time)
    for name, kind in source.schema.items():
        if kind in unknown or (settings.format == "csv" and kind.is_nested()):
            raise QueryError(
                f"{what}: {settings.format} files cannot contain values of type {kind} (column {name!r}); use Parquet"
            )


def check_present(names: list[str], expected: Expected) -> None:
    for name in expected:
        if name not in names:
            raise ProblemError(unknown_column(name, dict.fromkeys(names), ""))


def fitted(frame: pl.DataFrame, expected: Expected) -> pl.DataFrame:
    """The needed columns, converted to the source's types."""
    return frame.select(fitted_column(frame[name], kind) for name, kind in expected.items())


def fitted_column(values: pl.Series, kind: pl.DataType | None) -> pl.Series:
    found = values.dtype
    if kind is None or found == kind:
        return values
    problem = f": column {values.name!r} should be {show_type(kind)} and is {show_type(found)}"
    if found != pl.Null and family(found) != family(kind):
        raise ProblemError(problem)
    if isinstance(found, pl.Date | pl.Datetime) and chronons_within(values, "")[1] is not None:
        raise ProblemError(f"{problem}; a value is outside the range of timestamps")
    try:
        cast = values.cast(kind)
        same = cast.cast(found).eq_missing(values)
    except PolarsError as e:
        raise ProblemError(f"{problem}; {first_line(e)}") from None
    if not same.all():
        raise ProblemError(f"{problem}; {values.filter(~same)[0]} cannot be cast without loss")
    return cast


def family(kind: pl.DataType) -> object:
    """Values are cast only between types of the same family."""
    if kind.is_numeric():
        return "number"
    if isinstance(kind, pl.Date | pl.Datetime):
        return "time with a zone" if getattr(kind, "time_zone", None) else "time without a zone"
    return "text" if isinstance(kind, pl.String | pl.Categorical | pl.Enum) else kind.base_type()


def show_type(kind: pl.DataType) -> str:
    if isinstance(kind, pl.Datetime):
        return f"Datetime with zone {kind.time_zone}" if kind.time_zone else "Datetime without a zone"
    return str(kind)
