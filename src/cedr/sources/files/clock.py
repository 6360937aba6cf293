"""How a source's times are written, as a short text that a file log can store.

    number              whole numbers
    timestamp           timestamps or dates without a zone
    timestamp <zone>    with one; texts with an offset are converted to UTC

It is the same for all time columns and all files of a source: otherwise microseconds could be mistaken for plain
numbers.
"""

import re
from collections.abc import Mapping

import polars as pl

from cedr.plan.nodes.source import Source
from cedr.sources.event_time import columns_read, time_values
from cedr.sources.user_times import time_type
from cedr.temporal.formats import time_of_format

DATE = re.compile(r"\d{4}-\d\d-\d\d")
OFFSET = re.compile(r".*\d\d:\d\d.*(Z|[+-]\d\d(:?\d\d)?)", re.IGNORECASE)


def declared(source: Source) -> str | None:
    """What the source declares: by its format or unit, or by the types of payload columns."""
    if source.format is not None:
        return of_type(time_of_format(source.format))
    if source.unit is not None:
        return "number"
    assert source.vs is not None
    declared_columns = all(column in source.schema for column in columns_read(source, source.vs))
    return of_columns(source, source.schema) if declared_columns else None


def of_columns(source: Source, columns: Mapping[str, pl.DataType]) -> str | None:
    """The clock of the start, in a table with columns of these types."""
    assert source.vs is not None
    needed = {name: columns[name] for name in columns_read(source, source.vs, columns) if name in columns}
    if len(needed) < len(columns_read(source, source.vs, columns)):
        return None
    return of_type(time_values(source, "vs", source.vs, pl.DataFrame(schema=needed)).dtype)


def of_type(kind: pl.DataType) -> str | None:
    """The clock of a column; None if the column cannot contain times."""
    if kind.is_numeric():
        return "number"
    if kind != pl.Date and not isinstance(kind, pl.Datetime):
        return None
    zone = getattr(kind, "time_zone", None)
    return f"timestamp {zone}" if zone else "timestamp"


def of_value(value: object) -> str | None:
    """The clock of a number or a text; None if it is not a time, so that the reader can report its line."""
    if isinstance(value, str):
        text = value.strip()
        if re.fullmatch(r"[+-]?\d+", text):
            return "number"
        if not DATE.match(text):
            return None
        return "timestamp UTC" if OFFSET.fullmatch(text) else "timestamp"
    return "number" if isinstance(value, int) and not isinstance(value, bool) else None


def as_type(clock: str) -> pl.DataType:
    if clock == "number":
        return pl.Int64()
    return time_type(pl.Datetime("us", clock.partition(" ")[2] or None))
