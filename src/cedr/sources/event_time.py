"""The times of a source: each is a column of its tables, or an expression over columns.

A text that equals the name of a column is that column; otherwise it is an expression of the CEDR language. Times that
are text are parsed with the source's format, and whole numbers count the source's unit.
"""

from collections.abc import Collection, Mapping

import polars as pl
from polars.exceptions import PolarsError

from cedr.plan.nodes.source import Source
from cedr.plan.schema import check_columns, first_line, row_wise
from cedr.sources.user_times import TimeType, time_type
from cedr.temporal.errors import QueryError, TimeError
from cedr.temporal.formats import time_of_format

Names = Collection[str] | None
"""The columns of a table, if known."""

UTC = pl.Datetime("us", "UTC")


def time_settings(source: Source) -> dict[str, str]:
    """The text that the user gave for each of the times, by argument; the start first."""
    found = {"vs": source.vs, "ve": source.ve, "ve_new": source.ve_new, "cti": source.cti}
    if isinstance(source.duration, str) and not source.ve:
        found["duration"] = source.duration
    return {setting: text for setting, text in found.items() if text}


def parts_of(text: str) -> list[str] | None:
    """The columns of an expression of the CEDR language; None if the text is the name of a column instead."""
    if text.isidentifier():  # avoids loading the language in tasks that read files
        return None
    from cedr.syntax.over_columns import columns_of, scalar_of

    scalar = scalar_of(text)
    return None if scalar is None else columns_of(scalar)


def is_column(source: Source, text: str, names: Names) -> bool:
    if text in dict(source.expressions):
        return False
    return (text in names if names is not None else False) or text in source.schema or parts_of(text) is None


def columns_read(source: Source, text: str, names: Names = None) -> list[str]:
    """The columns that a time is computed from."""
    if is_column(source, text, names):
        return [text]
    expression = dict(source.expressions).get(text)
    if expression is not None:
        return list(dict.fromkeys(expression.meta.root_names()))
    return parts_of(text) or [text]


def time_columns(source: Source, names: Names = None) -> list[str]:
    """The columns of a table that contain times or parts of them, those of the start first."""
    return list(dict.fromkeys(c for text in time_settings(source).values() for c in columns_read(source, text, names)))


def direct_column(source: Source, text: str, names: Names = None) -> str | None:
    """The column that contains a time directly; None if an expression computes it."""
    if is_column(source, text, names):
        return text
    quoted = text[1:-1]
    return quoted if text == f'"{quoted}"' and columns_read(source, text, names) == [quoted] else None


def needed_columns(source: Source, names: Names = None) -> list[str]:
    """All columns of a table that are read: payload, times, partition, counts and punctuation."""
    others = [c for c in (source.partition, source.counts, source.punctuation) if c]
    return list(dict.fromkeys([*source.schema, *time_columns(source, names), *others]))


def time_values(source: Source, setting: str, text: str, frame: pl.DataFrame) -> pl.Series:
    """One of the times of all rows, from its column or computed by its expression."""
    if is_column(source, text, frame.columns):
        return frame[text]
    what = f"source {source.name!r}: {setting}={text!r}"
    expression = expression_of(source, text, frame.schema, what)
    try:
        return frame.select(expression.alias(setting))[setting]
    except PolarsError as e:
        raise TimeError(f"{what} cannot be computed: {first_line(e)}") from None


def expression_of(source: Source, text: str, columns: Mapping[str, pl.DataType], what: str) -> pl.Expr:
    expression = dict(source.expressions).get(text)
    if expression is None:
        from cedr.syntax.over_columns import over_columns

        try:
            found, lengths = over_columns(text, columns)
        except QueryError as e:
            raise QueryError(f"{what}: {e}") from None
        if lengths and source.unit != "us":
            raise QueryError(
                f"{what} adds the length {lengths[0].text!r} to whole numbers; write it as a whole number in the same "
                "unit"
            )
        return found
    check_columns(expression.meta.root_names(), columns, what)
    if not row_wise(expression, dict(columns)):
        raise QueryError(f"{what} uses several rows; a time must depend on its own row only")
    return expression


def check_times(source: Source, columns: Mapping[str, pl.DataType]) -> TimeType:
    """The time type of a source, for a table with columns of these types; raises if a time has another type."""
    kinds = {}
    for setting, text in time_settings(source).items():
        needed = {name: columns[name] for name in columns_read(source, text, columns) if name in columns}
        kinds[setting] = time_values(source, setting, text, pl.DataFrame(schema=needed)).dtype
        check_time(source, setting, kinds[setting])
    return shown_type(source, kinds["vs"])


def check_time(source: Source, setting: str, kind: pl.DataType) -> None:
    if kind.is_integer() or isinstance(kind, pl.Datetime | pl.Date | pl.Duration | pl.Null):
        return
    if kind in (pl.String, pl.Categorical, pl.Enum):
        if source.format is None or setting == "duration":
            raise TimeError(f"{named(source, setting)} is text; {how_to_read(setting)}")
        return
    raise TimeError(f"{named(source, setting)} is of type {kind}; convert it to a timestamp or a whole number")


def named(source: Source, setting: str) -> str:
    return f"source {source.name!r}: {setting}={time_settings(source)[setting]!r}"


def how_to_read(setting: str) -> str:
    """Advice for times or durations that are text."""
    if setting == "duration":
        return 'use a column of whole numbers, or an expression: duration="CAST(seconds AS INT) * 1 second"'
    return 'declare its format, for example format="%m/%d/%Y %H:%M", or parse it first'


def shown_type(source: Source, kind: pl.DataType) -> TimeType:
    """The type in which times of this column type are shown."""
    if kind in (pl.String, pl.Categorical, pl.Enum) and source.format:
        return time_of_format(source.format)
    return UTC if kind.is_integer() and source.unit else time_type(kind)
