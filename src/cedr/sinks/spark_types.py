"""Spark's types for the columns of an answer.

Spark has no unsigned or 128-bit integers, no categories, and times only in microseconds. A column is converted to a
type that represents all of its values exactly, or is rejected when the query starts.
"""

from collections.abc import Mapping
from typing import Any

import polars as pl
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from cedr.temporal.errors import QueryError

WIDER: dict[Any, pl.DataType] = {
    pl.UInt8: pl.Int16(),
    pl.UInt16: pl.Int32(),
    pl.UInt32: pl.Int64(),
    pl.UInt64: pl.Decimal(20, 0),
    pl.Int128: pl.Decimal(38, 0),
    pl.Float16: pl.Float32(),
    pl.Categorical: pl.String(),
    pl.Enum: pl.String(),
    pl.Null: pl.String(),
}
UTC = "UTC"
"""Spark stores instants; it shows them in the zone of the session."""


def spark_type(kind: pl.DataType, column: str) -> pl.DataType:
    """The polars type that Spark has for values of this type; an error if no type represents them all."""
    match kind:
        case pl.Datetime() | pl.Duration() if kind.time_unit == "ns":
            what = "timestamps" if isinstance(kind, pl.Datetime) else "intervals"
            raise QueryError(
                f"column {column!r} is of type {kind}, but Spark's {what} have microseconds; "
                f"use pl.col({column!r}).dt.cast_time_unit('us') in the query"
            )
        case pl.Datetime():
            return pl.Datetime("us", kind.time_zone and UTC)
        case pl.Duration():
            return pl.Duration("us")
        case pl.List() | pl.Array():
            return pl.List(spark_type(as_type(kind.inner), column))
        case pl.Struct():
            return pl.Struct({field.name: spark_type(as_type(field.dtype), column) for field in kind.fields})
        case pl.UInt128() | pl.Object() | pl.Unknown():
            raise QueryError(
                f"column {column!r} is of type {kind}, for which Spark has no type; cast it in the query, for example "
                f"with pl.col({column!r}).cast(pl.String)"
            )
    return WIDER.get(type(kind), kind)


def as_type(kind: Any) -> pl.DataType:
    """An inner type as an object: polars allows classes there."""
    return kind if isinstance(kind, pl.DataType) else kind()


def spark_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """The same rows in types that Spark has."""
    types = {name: spark_type(kind, name) for name, kind in frame.schema.items()}
    return frame.with_columns(pl.col(name).cast(to) for name, to in types.items() if to != frame.schema[name])


def spark_schema(columns: Mapping[str, pl.DataType]) -> StructType:
    """Spark's types for these columns."""
    none = spark_frame(pl.DataFrame(schema=dict(columns)))
    return from_arrow_schema(none.to_arrow(compat_level=pl.CompatLevel.oldest()).schema)


def arrow_schema(columns: Mapping[str, pl.DataType]) -> pa.Schema:
    """The Arrow types in which Spark accepts these columns."""
    return to_arrow_schema(spark_schema(columns), timezone=UTC)


def as_table(frame: pl.DataFrame) -> pa.Table:
    """The rows in the types of `arrow_schema`."""
    table = spark_frame(frame).to_arrow(compat_level=pl.CompatLevel.oldest())
    return table.cast(arrow_schema(frame.schema))


def in_utc(kind: pa.DataType) -> pa.DataType:
    """The type with the zone of its instants replaced; polars knows zones by name only, Spark also has `+05:30`."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, UTC)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(in_utc(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(in_utc(field.type)) for field in kind])
    return kind


def as_frame(batches: list[pa.RecordBatch]) -> pl.DataFrame:
    """Rows from Spark; times with a zone are in UTC."""
    table = pa.Table.from_batches(batches)
    schema = pa.schema([field.with_type(in_utc(field.type)) for field in table.schema])
    return pl.DataFrame(table if schema.equals(table.schema) else table.cast(schema))
