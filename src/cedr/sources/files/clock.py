"""How a source's times are written, in a few words that a file log can keep.

    number              whole numbers
    timestamp           timestamps or dates without a zone
    timestamp <zone>    with one; texts with an offset are turned into UTC

All time columns of a source agree about it, and all its files do: microseconds among plain numbers would be read as
times that make no sense.
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
    """What the source says: by its format or unit, or by the types of columns that are payload, too."""
    if source.format is not None:
        return of_type(time_of_format(source.format))
    if source.unit is not None:
        return "number"
    assert source.vs is not None
    known = all(column in source.schema for column in columns_read(source, source.vs))
    return of_columns(source, source.schema) if known else None


def of_columns(source: Source, columns: Mapping[str, pl.DataType]) -> str | None:
    """Of the start, in a table with columns of these types."""
    assert source.vs is not None
    needed = {name: columns[name] for name in columns_read(source, source.vs, columns) if name in columns}
    if len(needed) < len(columns_read(source, source.vs, columns)):
        return None
    return of_type(time_values(source, "vs", source.vs, pl.DataFrame(schema=needed)).dtype)


def of_type(kind: pl.DataType) -> str | None:
    """Of a column; None when the column cannot hold times."""
    if kind.is_numeric():
        return "number"
    if kind != pl.Date and not isinstance(kind, pl.Datetime):
        return None
    zone = getattr(kind, "time_zone", None)
    return f"timestamp {zone}" if zone else "timestamp"


def of_value(value: object) -> str | None:
    """Of a number or a text; None when it is no time, so that whoever reads it can say which line that is."""
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
