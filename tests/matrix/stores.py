"""A column in the answer of a query: which sinks keep it."""

from typing import Any

import polars as pl

import cedr
from cedr.sinks.base import SinkTable
from cedr.sinks.spark_types import spark_schema
from cedr.temporal import CedrError

SINKS = {
    "Parquet": lambda: cedr.sinks.parquet("answers"),
    "PostgreSQL": lambda: cedr.sinks.postgres("dbname=none", "answers"),
    "DuckDB": lambda: cedr.sinks.duckdb("answers.duckdb", "answers"),
    "memory": cedr.sinks.memory,
    "foreach": lambda: cedr.sinks.foreach(print),
    "changelog": lambda: cedr.sinks.changelog("parquet", "changes"),
    "batch()": lambda: BatchTable(),
}
"""None of them is opened."""


class BatchTable:
    """The DataFrame that `batch` gives."""

    def check(self, table: SinkTable) -> None:
        spark_schema(table.shown_schema)


def rejected(sink: Any, kind: pl.DataType) -> str | None:
    """Why the sink cannot keep a column of this type."""
    try:
        sink.check(SinkTable("q", {"v": kind}))
    except CedrError as e:
        return str(e)
    return None
