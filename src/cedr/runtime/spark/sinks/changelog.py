"""The changelog: every insert, adjust and promise of the answer, as rows for any of Spark's own sinks.

Spark writes each micro-batch's rows once if its sink can: a Parquet sink does, Kafka repeats a batch that was
interrupted. The columns are told in `cedr.runtime.spark.answers`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from cedr.runtime.spark.sinks.base import Table
from cedr.runtime.spark.types import spark_schema
from cedr.secret import Secret, revealed


@dataclass(frozen=True)
class Changelog:
    """`shape` makes of the changelog what the sink wants, such as one `value` column for Kafka."""

    format: str
    path: str | None = None
    options: Mapping[str, str | Secret] = field(default_factory=dict)
    shape: Callable[[DataFrame], DataFrame] = lambda rows: rows

    def check(self, table: Table) -> None:
        """Spark has a type for every column."""
        spark_schema(table.shown_schema)

    def open(self, table: Table) -> None:
        """Spark's sinks open themselves."""

    def start(self, writer: DataStreamWriter) -> StreamingQuery:
        return writer.format(self.format).options(**revealed(self.options)).outputMode("append").start(self.path)

    def close(self) -> None:
        """Spark's sinks close themselves."""
