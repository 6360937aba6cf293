"""The columns a source needs of a file, and files whose columns are of another type.

A value is cast when nothing of it is lost: whole numbers to wider ones, dates to timestamps, `1.0` to `1`. What would
change a value is a problem of the file, as is a column that is not there. Further columns are not read.
"""

import polars as pl
from polars.exceptions import PolarsError

from cedr.plan.schema import first_line, unknown_column
from cedr.plan.source import Source
from cedr.runtime.ingest import needed_columns, time_columns
from cedr.runtime.spark.files import clock
from cedr.runtime.spark.files.settings import Files
from cedr.runtime.spark.files.unreadable import ProblemError
from cedr.runtime.user_times import chronons_within
from cedr.temporal.errors import QueryError

Expected = dict[str, pl.DataType | None]
"""Types by column, None where the source takes what there is."""


def expected_types(source: Source, written: str | None) -> Expected:
    """`written` is the clock. As long as no file tells, times have to be numbers."""
    time = clock.as_type(written or "number")
    times: Expected = {name: None if name == source.duration else time for name in time_columns(source)}
    counts: Expected = {} if source.counts is None else {source.counts: pl.Int64()}
    marks: Expected = {} if source.punctuation is None else {source.punctuation: pl.Boolean()}
    return {name: source.schema.get(name) or {**counts, **marks, **times}.get(name) for name in needed_columns(source)}


def check_source(source: Source, settings: Files) -> None:
    """What can be said before any file is read."""
    what = f"source {source.name!r} from files({settings.path!r})"
    if source.vs is None:
        raise QueryError(
            f"{what}: the source names no time column; "
            f'declare it with cedr.source({source.name!r}, ..., vs="column of the start times")'
        )
    for name in time_columns(source):
        if source.schema.get(name) == pl.String:
            raise QueryError(
                f"{what}: {name!r} holds times, but the schema says it is text; declare it as pl.Datetime, or leave it "
                "out of the schema"
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
