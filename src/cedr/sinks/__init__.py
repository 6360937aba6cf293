"""Where a running query writes its answer: `query.start(spark, data, sink=cedr.sinks.parquet("out"), ...)`.

A table sink contains the canonical history, updated with every batch, exactly once across crashes and restarts. Each
query needs its own place. The packages of a store are imported when its sink is created.

base            the contract of a sink, and its table
parquet_table   a folder of Parquet files, with `manifest` to list which of them are the table
sql             shared by PostgreSQL and DuckDB: a row per tuple, with its `identity` as key
postgres_table  a table in PostgreSQL, with `postgres_types` for reading and writing values
duckdb_table    a table in a DuckDB file
memory_table    a table in the driver
foreach_batch   no table: a user function gets every change
changelog_rows  no table: every change as a row for Spark's own sinks, with the types of `spark_types`
readable        tuples and changes with public names and times, as users read them
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cedr.secret import Secret
from cedr.temporal.errors import CedrError

if TYPE_CHECKING:
    import polars as pl
    from pyspark.sql import DataFrame

    from cedr.sinks.changelog_rows import Changelog
    from cedr.sinks.duckdb_table import DuckdbSink
    from cedr.sinks.foreach_batch import ForeachSink
    from cedr.sinks.memory_table import MemorySink
    from cedr.sinks.parquet_table import ParquetSink
    from cedr.sinks.postgres_table import PostgresSink
    from cedr.temporal.duration import Duration


def parquet(path: str | os.PathLike[str]) -> "ParquetSink":
    """A folder of Parquet files. Any reader may read `path/*.parquet`; `read_parquet` is right even during a commit."""
    from cedr.sinks.parquet_table import ParquetSink

    return ParquetSink(path)


def read_parquet(path: str | os.PathLike[str]) -> "pl.DataFrame":
    """The table in a folder that `parquet` writes, as of its newest commit."""
    from cedr.sinks.parquet_table import read_parquet

    return read_parquet(path)


def postgres(
    dsn: str | Secret, table: str, password: str | Secret | None = None, *, retry: "Duration" = "60s"
) -> "PostgresSink":
    """A table in PostgreSQL: `postgres("host=localhost dbname=reports", "answers")`, or `"schema.answers"`.

    `dsn` is a URI or a list of settings, as in libpq. A password in it, or given separately, is never shown.
    Its rows are `vs, ve, payload..., copies, cedr_id`. `cedr_batches` next to it records its last batch.
    When the server cannot be reached while the query runs, the query retries for up to `retry`.
    """
    try:
        from cedr.sinks.postgres_table import PostgresSink
    except ModuleNotFoundError as e:
        raise missing(e, "psycopg", "postgres") from e
    return PostgresSink(dsn, table, password, retry)


def duckdb(path: str | os.PathLike[str], table: str, *, retry: "Duration" = "60s") -> "DuckdbSink":
    """A table in a DuckDB file, with the columns `vs, ve, payload..., copies, cedr_id`.

    When another program has the file open, the query retries for up to `retry`.
    """
    try:
        from cedr.sinks.duckdb_table import DuckdbSink
    except ModuleNotFoundError as e:
        raise missing(e, "duckdb", "duckdb") from e
    return DuckdbSink(path, table, retry)


def memory() -> "MemorySink":
    """A table in this process, for notebooks and tests: `sink.read()` is the table."""
    from cedr.sinks.memory_table import MemorySink

    return MemorySink()


def foreach(function: Callable[[int, "pl.DataFrame"], Any]) -> "ForeachSink":
    """`function(batch, changes)` is called in this process for every batch, at least once.

    `changes` has the columns `change` (insert, adjust, remove), `vs`, `ve`, `ve_new` and the payload.
    """
    from cedr.sinks.foreach_batch import ForeachSink

    return ForeachSink(function)


def changelog(
    format: str,
    path: str | None = None,
    *,
    shape: "Callable[[DataFrame], DataFrame] | None" = None,
    **options: str | Secret,
) -> "Changelog":
    """Every change of the answer as a row, for any of Spark's own sinks: `changelog("parquet", "out")`.

    The columns are `change` (insert, adjust, remove, or cti for progress), `vs`, `ve`, `ve_new`, the payload and
    `shard`. `shape` converts them to what the sink requires: for Kafka
    `lambda rows: rows.selectExpr("to_json(struct(*)) AS value")`.
    Options such as `kafka.sasl.jaas.config` are never shown.
    """
    from cedr.secret import concealed
    from cedr.sinks.changelog_rows import Changelog

    kept = concealed(options)
    return Changelog(format, path, kept) if shape is None else Changelog(format, path, kept, shape)


def missing(error: ModuleNotFoundError, package: str, extra: str) -> Exception:
    """Advice to install the store's package, if that is what is missing."""
    if error.name != package:
        return error
    return CedrError(f"cedr.sinks.{extra} needs the package {package}: pip install 'cedr[{extra}]'")
