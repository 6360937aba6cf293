"""The types of columns, as job files write them: `"str"`, `"decimal(10, 2)"`, or a list of the possible strings."""

import re
from typing import Any

import polars as pl

from cedr.job.section import Section, show
from cedr.plan.schema import Schema
from cedr.syntax.errors import did_you_mean

TYPES: dict[str, pl.DataType] = {
    "str": pl.String(),
    "int": pl.Int64(),
    "float": pl.Float64(),
    "bool": pl.Boolean(),
    "date": pl.Date(),
    "time": pl.Time(),
    "timestamp": pl.Datetime("us"),
    "timestamp UTC": pl.Datetime("us", "UTC"),
    "bytes": pl.Binary(),
    "int8": pl.Int8(),
    "int16": pl.Int16(),
    "int32": pl.Int32(),
    "int64": pl.Int64(),
    "uint8": pl.UInt8(),
    "uint16": pl.UInt16(),
    "uint32": pl.UInt32(),
    "uint64": pl.UInt64(),
    "float32": pl.Float32(),
    "float64": pl.Float64(),
}
DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
"""Total digits, and digits after the point."""
OFTEN = ("str", "int", "float", "bool", "date", "timestamp")


def schema_of(columns: Section) -> Schema:
    """Names and types of the columns of a source."""
    return {name: type_of(columns, name, value) for name, value in columns.values.items()}


def type_of(columns: Section, name: str, value: Any) -> pl.DataType:
    if isinstance(value, list) and value and all(isinstance(v, str) for v in value):
        return pl.Enum(list(dict.fromkeys(value)))
    if isinstance(value, str) and (found := DECIMAL.fullmatch(value)):
        digits, after = map(int, found.groups())
        if not 1 <= digits <= 38 or after > digits:
            raise columns.mistake(
                f"{show(value)}: a decimal has 1 to 38 digits, and at most that many after the point", name
            )
        return pl.Decimal(digits, after)
    if not isinstance(value, str) or value not in TYPES:
        hint = did_you_mean(value, TYPES) if isinstance(value, str) else ""
        raise columns.mistake(
            f"{show(value)} is not a type{hint or '; write one of ' + ', '.join(OFTEN) + ', or a list of strings'}",
            name,
        )
    return TYPES[value]
