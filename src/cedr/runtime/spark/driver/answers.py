"""The output of the last stage: rows for a sink, and the metrics that Spark observes.

A table's answer is one row per shard whose `blob` the sink understands. A changelog's answer has the user's columns:

    change   insert, adjust, remove, or cti: the progress of this shard (`vs`)
    vs ve    the lifetime; for an adjust or remove the previous one
    ve_new   its new end
    shard    rows of one shard are in order, and its progress applies to its own rows only
"""

from collections.abc import Iterator
from typing import Any

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from cedr.columnar.chunk import empty
from cedr.runtime.spark.driver.job import SparkJob
from cedr.runtime.spark.shard.packet import Packet, from_blob, from_header, to_header
from cedr.runtime.spark.shard.shard import Answer, ShardMetrics
from cedr.sinks import spark_types as types
from cedr.sinks.readable import changes
from cedr.storage.folder import Folder
from cedr.temporal.time import INF, MIN

METRICS = "_cedr"
METRICS_TYPE = pa.struct(
    [("stage", pa.int32()), ("shard", pa.int32()), *((name, pa.int64()) for name in ShardMetrics._fields[2:])]
)


def as_batches(frame: pl.DataFrame) -> Iterator[pa.RecordBatch]:
    yield from types.as_table(frame).to_batches(max_chunksize=200_000)


def changelog(rows: pl.DataFrame, cti: int, shard: int, job: SparkJob) -> pl.DataFrame:
    """The rows of a chunk in the user's types, and the progress after them."""
    shown = changes(rows, cti, job.time_type, job.plan.schema)
    name = "_shard" if "shard" in job.plan.schema else "shard"
    return shown.with_columns(pl.lit(shard, pl.Int32).alias(name))


def no_changes(job: SparkJob) -> pl.DataFrame:
    return changelog(empty(dict(job.plan.schema)).rows, MIN, 0, job)


def answer_schema(job: SparkJob) -> StructType:
    return from_arrow_schema(arrow_schema(job))


def arrow_schema(job: SparkJob) -> pa.Schema:
    if job.answer == "table":
        return pa.schema([("blob", pa.binary()), (METRICS, METRICS_TYPE)])
    return types.arrow_schema(no_changes(job).schema).append(pa.field(METRICS, METRICS_TYPE))


def batches(job: SparkJob, shard: int, answer: Answer, batch: int) -> Iterator[pa.RecordBatch]:
    """The answer of one shard to a micro-batch, with its metrics."""
    schema = arrow_schema(job)
    metrics: dict[str, Any] = {METRICS: answer.metrics._asdict()}
    if job.answer == "table":
        metrics["blob"] = answer.blob
    else:
        rows = changelog(from_blob(answer.blob), answer.metrics.cti, shard, job)
        for part in as_batches(pl.concat([rows, *ends_of_split(job, shard, batch)])):
            nothing = pa.nulls(part.num_rows, METRICS_TYPE)
            yield pa.RecordBatch.from_arrays([*part.columns, nothing], schema=schema)
    yield pa.RecordBatch.from_pylist([metrics], schema=schema)


def ends_of_split(job: SparkJob, shard: int, batch: int) -> Iterator[pl.DataFrame]:
    """After a shard was split, its first part ends its progress, or the common progress would wait for it for ever."""
    if job.layout is not None and batch == job.layout.batch + 1:
        parents = job.layout.stages[-1].parents
        first = {parent: min(part for part, p in parents.items() if p == parent) for parent in parents.values()}
        for parent in sorted(parent for parent, part in first.items() if part == shard):
            yield changelog(empty(dict(job.plan.schema)).rows, INF, parent, job)


def metrics_batches(job: SparkJob, counted: list[Packet]) -> Iterator[pa.RecordBatch]:
    """The metrics of earlier stages."""
    if counted:
        rows = [{METRICS: from_header(packet.header)._asdict()} for packet in counted]
        yield pa.RecordBatch.from_pylist(rows, schema=arrow_schema(job))


def metrics_packet(job: SparkJob, metrics: ShardMetrics) -> Packet:
    """For any cell of the last stage."""
    cells = job.cells(job.last)
    return Packet(
        job.last, cells[metrics.shard % len(cells)].number, "metrics", origin=metrics.shard, header=to_header(metrics)
    )


def observed(answer: DataFrame, job: SparkJob) -> DataFrame:
    """The answer without the metrics, which Spark reports with each micro-batch as `observedMetrics["cedr"]`."""
    field = {name: sf.col(f"{METRICS}.{name}") for name in ShardMetrics._fields}
    is_first, is_last = field["stage"] == 1, field["stage"] == job.last
    sums = {
        "rows_in": sf.sum(sf.when(is_first, field["rows_in"])),
        "rows_out": sf.sum(sf.when(is_last, field["rows_out"])),
        "adjusts_out": sf.sum(sf.when(is_last, field["adjusts_out"])),
        "late": sf.sum(field["late"]),
        "state_rows": sf.sum(field["state_rows"]),
        "state_bytes": sf.sum(field["state_bytes"]),
        "replayed": sf.sum(field["replayed"]),
        "moved": sf.sum(field["moved"]),
        "cti": sf.nullif(sf.min(sf.when(is_last, field["cti"])), sf.lit(MIN)),
    }
    watched = answer.observe("cedr", *(value.alias(name) for name, value in sums.items()))
    if job.answer == "table":  # the commit ignores rows without a blob
        return watched.drop(METRICS)
    return watched.where(sf.col(METRICS).isNull()).drop(METRICS)


def read_metrics(folder: Folder) -> pl.DataFrame:
    """Metrics only: a file damaged by a power cut counts as missing, and is rewritten by the next micro-batch."""
    found = [folder.find_intact(name) for name in folder.names()]
    frames = [from_blob(content) for content in found if content is not None]
    return pl.concat(frames).sort("stage", "shard", "step") if frames else pl.DataFrame()
