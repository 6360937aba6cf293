"""The sinks of `cedr.sinks` that a job uses."""

from typing import TYPE_CHECKING, Any

from cedr import sinks
from cedr.job.sinks import JobSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from cedr.sinks.base import TableSink
    from cedr.sinks.changelog_rows import Changelog


def table_sink(sink: JobSink) -> "TableSink":
    match sink.place:
        case "parquet":
            return sinks.parquet(sink.path)
        case "duckdb":
            return sinks.duckdb(sink.path, sink.table, retry=sink.retry)
        case "postgres":
            return sinks.postgres(sink.target, sink.table, sink.password, retry=sink.retry)
    return sinks.memory()


def changelog_sink(sink: JobSink) -> "Changelog":
    """A changelog to files, with the time of each micro-batch so that it can be replayed; to Kafka as JSON."""
    if sink.place == "changelog":
        return sinks.changelog("parquet", sink.path, shape=with_time)
    return sinks.changelog("kafka", None, shape=as_json, **dict(sink.options or {}))


def with_time(rows: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as sf

    return rows.withColumn("_emitted" if "emitted" in rows.columns else "emitted", sf.current_timestamp())


def as_json(rows: "DataFrame") -> "DataFrame":
    return rows.selectExpr("to_json(struct(*)) AS value")


def store(sink: JobSink) -> Any:
    return table_sink(sink) if sink.is_table else changelog_sink(sink)
