"""The changelog: every insert, adjust and promise of the answer, as rows for any of Spark's own sinks.

Spark writes each micro-batch's rows once if its sink can: a Parquet sink does, Kafka repeats a batch that was
interrupted. The columns are described in `cedr.runtime.spark.driver.answers`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from cedr.secret import Secret, revealed
from cedr.sinks.base import SinkTable
from cedr.sinks.spark_types import spark_schema
from cedr.temporal.errors import QueryError


def has_times_of_day(kind: Any) -> bool:
    """Whether a type, or one inside it, is a time of day."""
    if isinstance(kind, pl.Struct):
        return any(has_times_of_day(field.dtype) for field in kind.fields)
    return has_times_of_day(kind.inner) if isinstance(kind, pl.List | pl.Array) else kind == pl.Time


@dataclass(frozen=True)
class Changelog:
    """`shape` converts the changelog to what the sink requires, such as one `value` column for Kafka."""

    format: str
    path: str | None = None
    options: Mapping[str, str | Secret] = field(default_factory=dict)
    shape: Callable[[DataFrame], DataFrame] = lambda rows: rows

    def check(self, table: SinkTable) -> None:
        """Check that Spark has a type for every column, also in streams."""
        spark_schema(table.shown_schema)
        if times := [name for name, kind in table.columns.items() if has_times_of_day(kind)]:
            raise QueryError(
                f"column {times[0]!r} is of type {table.columns[times[0]]}, but Spark's streams have no times of day; "
                f"use pl.col({times[0]!r}).cast(pl.String) in the query, or a sink that keeps a table"
            )

    def open(self, table: SinkTable) -> None:
        """Spark's sinks open themselves."""

    def start(self, writer: DataStreamWriter) -> StreamingQuery:
        return writer.format(self.format).options(**revealed(self.options)).outputMode("append").start(self.path)

    def close(self) -> None:
        """Spark's sinks close themselves."""
