"""What leaves the last stage: rows for a sink, and beside them the metrics that Spark observes.

A table's answer is one row per shard whose `blob` the sink understands. A changelog's answer has the user's columns:

    change   insert, adjust, remove, or cti: how far this shard has come (`vs`)
    vs ve    the lifetime; for an adjust or remove the one the tuple had
    ve_new   its new end
    shard    rows of one shard are in order, and its progress is about its own rows only
"""

from collections.abc import Iterator
from typing import Any

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from cedr.columnar.chunk import empty
from cedr.runtime.result import changes
from cedr.runtime.spark.folder import Folder
from cedr.runtime.spark.job import Job
from cedr.runtime.spark.packet import Packet, from_blob, from_header, to_header
from cedr.runtime.spark.shard import Answer, Metrics
from cedr.temporal.time import MIN

METRICS = "_cedr"
METRICS_TYPE = pa.struct(
    [("stage", pa.int32()), ("shard", pa.int32()), *((name, pa.int64()) for name in Metrics._fields[2:])]
)
UNSIGNED: dict[Any, Any] = {pl.UInt8: pl.Int16, pl.UInt16: pl.Int32, pl.UInt32: pl.Int64, pl.UInt64: pl.Decimal(20, 0)}


def spark_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """The same rows in types that Spark has."""
    signed = [pl.col(c).cast(to) for of, to in UNSIGNED.items() for c, kind in frame.schema.items() if kind == of]
    texts = [pl.col(c).cast(pl.String) for c, kind in frame.schema.items() if kind in (pl.Categorical, pl.Enum)]
    return frame.with_columns(signed + texts)


def spark_schema(frame: pl.DataFrame) -> StructType:
    """Spark's types for the columns of a frame."""
    return from_arrow_schema(spark_frame(frame[:0]).to_arrow(compat_level=pl.CompatLevel.oldest()).schema)


def as_batches(frame: pl.DataFrame, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    table = spark_frame(frame).to_arrow(compat_level=pl.CompatLevel.oldest())
    yield from table.cast(schema).to_batches(max_chunksize=200_000)


def changelog(rows: pl.DataFrame, cti: int, shard: int, job: Job) -> pl.DataFrame:
    """The rows of a chunk as a user reads them, and the progress that holds after them."""
    shown = changes(rows, cti, job.time_type, job.plan.schema)
    name = "_shard" if "shard" in job.plan.schema else "shard"
    return shown.with_columns(pl.lit(shard, pl.Int32).alias(name))


def no_changes(job: Job) -> pl.DataFrame:
    return changelog(empty(dict(job.plan.schema)).rows, MIN, 0, job)


def answer_schema(job: Job) -> StructType:
    return from_arrow_schema(arrow_schema(job))


def arrow_schema(job: Job) -> pa.Schema:
    if job.answer == "table":
        return pa.schema([("blob", pa.binary()), (METRICS, METRICS_TYPE)])
    columns = to_arrow_schema(spark_schema(no_changes(job)))
    return columns.append(pa.field(METRICS, METRICS_TYPE))


def batches(job: Job, shard: int, answer: Answer, counted: list[Packet]) -> Iterator[pa.RecordBatch]:
    """The answer of one shard, with its own metrics and those of earlier stages that came along."""
    schema = arrow_schema(job)
    metrics = [{METRICS: m._asdict()} for m in (answer.metrics, *(from_header(packet.header) for packet in counted))]
    if job.answer == "table":
        metrics[0]["blob"] = answer.blob
    else:
        rows = changelog(from_blob(answer.blob), answer.metrics.cti, shard, job)
        columns = pa.schema(list(schema)[:-1])
        for batch in as_batches(rows, columns):
            nothing = pa.nulls(batch.num_rows, METRICS_TYPE)
            yield pa.RecordBatch.from_arrays([*batch.columns, nothing], schema=schema)
    yield pa.RecordBatch.from_pylist(metrics, schema=schema)


def metrics_packet(stage: int, metrics: Metrics) -> Packet:
    return Packet(stage, metrics.shard, "metrics", origin=metrics.shard, header=to_header(metrics))


def observed(answer: DataFrame, job: Job) -> DataFrame:
    """The answer without the metrics, which Spark reports with each micro-batch as `observedMetrics["cedr"]`."""
    field = {name: sf.col(f"{METRICS}.{name}") for name in Metrics._fields}
    is_first, is_last = field["stage"] == 1, field["stage"] == job.last
    sums = {
        "rows_in": sf.sum(sf.when(is_first, field["rows_in"])),
        "rows_out": sf.sum(sf.when(is_last, field["rows_out"])),
        "adjusts_out": sf.sum(sf.when(is_last, field["adjusts_out"])),
        "late": sf.sum(field["late"]),
        "state_rows": sf.sum(field["state_rows"]),
        "state_bytes": sf.sum(field["state_bytes"]),
        "cti": sf.nullif(sf.min(sf.when(is_last, field["cti"])), sf.lit(MIN)),
    }
    watched = answer.observe("cedr", *(value.alias(name) for name, value in sums.items()))
    if job.answer == "table":  # whoever commits passes over rows without a blob
        return watched.drop(METRICS)
    return watched.where(sf.col(METRICS).isNull()).drop(METRICS)


def read_metrics(folder: Folder) -> pl.DataFrame:
    frames = [from_blob(folder.read(name)) for name in folder.names()]
    return pl.concat(frames).sort("stage", "shard", "step") if frames else pl.DataFrame()


def read_late(folder: Folder) -> pl.DataFrame:
    names = [name for name in folder.names() if name.startswith("late-")]
    frames = [pl.read_parquet(folder.read(name)) for name in names]
    return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame()
