"""How a source's times are written, in a few words that a file log can keep.

    number              whole numbers
    timestamp           timestamps or dates without a zone
    timestamp <zone>    with one; texts with an offset are turned into UTC

All time columns of a source agree about it, and all its files do: microseconds among plain numbers would be read as
times that make no sense.
"""

import re

import polars as pl

from cedr.plan.source import Source
from cedr.runtime.user_times import time_type

DATE = re.compile(r"\d{4}-\d\d-\d\d")
OFFSET = re.compile(r".*\d\d:\d\d.*(Z|[+-]\d\d(:?\d\d)?)", re.IGNORECASE)


def declared(source: Source) -> str | None:
    """What the schema says, when the start is a column of the payload too."""
    return of_type(source.schema[source.vs]) if source.vs in source.schema else None


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
