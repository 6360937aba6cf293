"""The columns a source needs of a file, and files whose columns are of another type.

A value is cast when nothing of it is lost: whole numbers to wider ones, dates to timestamps, `1.0` to `1`. What would
change a value is a problem of the file, as is a column that is not there. Further columns are not read.
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
"""Types by column, None where the source takes what there is."""


@dataclass(frozen=True)
class Wanted:
    """What a source expects of a file. `written` is the clock; files that are not `typed` hold texts."""

    source: Source
    written: str | None
    typed: bool = True

    def of(self, names: Names) -> Expected:
        """For a file with these columns."""
        return expected_types(self.source, self.written, names, self.typed)


def expected_types(source: Source, written: str | None, names: Names = None, typed: bool = True) -> Expected:
    """`written` is the clock; as long as no file tells, times have to be numbers. `names` are the columns of the file,
    where they are known. Files that are not `typed` need the types of all that expressions read."""
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
    """What can be said before any file is read."""
    what = f"source {source.name!r} from files({settings.path!r})"
    if source.vs is None:
        raise QueryError(
            f"{what}: the source names no time column; "
            f'declare it with cedr.source({source.name!r}, ..., vs="column of the start times")'
        )
    for setting, text in time_settings(source).items():
        column = direct_column(source, text)
        if source.schema.get(column or "") == pl.String and not source.format:
            raise QueryError(
                f"{what}: {setting}={text!r} holds times, but the schema says it is text; say how it is written, for "
                'example format="%m/%d/%Y %H:%M", or declare it as pl.Datetime'
            )
    if settings.format == "parquet":
        return
    if source.partition is not None and source.partition not in source.schema:
        raise QueryError(f"{what}: texts have no types, so the schema must tell that of partition={source.partition!r}")
    unknown = (pl.Binary, pl.Object, pl.Duration) if settings.format == "csv" else (pl.Binary, pl.Duration, pl.Time)
    for name, kind in source.schema.items():
        if kind in unknown or (settings.format == "csv" and kind.is_nested()):
            raise QueryError(
                f"{what}: {settings.format} files have no values of type {kind} (column {name!r}); use Parquet"
            )


def check_present(names: list[str], expected: Expected) -> None:
    for name in expected:
        if name not in names:
            raise ProblemError(unknown_column(name, dict.fromkeys(names), ""))


def fitted(frame: pl.DataFrame, expected: Expected) -> pl.DataFrame:
    """The needed columns in the types the source wants."""
    return frame.select(fitted_column(frame[name], kind) for name, kind in expected.items())


def fitted_column(values: pl.Series, kind: pl.DataType | None) -> pl.Series:
    found = values.dtype
    if kind is None or found == kind:
        return values
    says = f": column {values.name!r} should be {show_type(kind)} and is {show_type(found)}"
    if found != pl.Null and family(found) != family(kind):
        raise ProblemError(says)
    if isinstance(found, pl.Date | pl.Datetime) and chronons_within(values, "")[1] is not None:
        raise ProblemError(f"{says}; a value is outside the range of timestamps")
    try:
        cast = values.cast(kind)
        same = cast.cast(found).eq_missing(values)
    except PolarsError as e:
        raise ProblemError(f"{says}; {first_line(e)}") from None
    if not same.all():
        raise ProblemError(f"{says}; {values.filter(~same)[0]} cannot be cast without loss")
    return cast


def family(kind: pl.DataType) -> object:
    """Types among which values may be cast."""
    if kind.is_numeric():
        return "number"
    if isinstance(kind, pl.Date | pl.Datetime):
        return "time with a zone" if getattr(kind, "time_zone", None) else "time without a zone"
    return "text" if isinstance(kind, pl.String | pl.Categorical | pl.Enum) else kind.base_type()


def show_type(kind: pl.DataType) -> str:
    if isinstance(kind, pl.Datetime):
        return f"Datetime with zone {kind.time_zone}" if kind.time_zone else "Datetime without a zone"
    return str(kind)
