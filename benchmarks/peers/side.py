"""One system runs one workload over files and prints, as JSON, how long each micro-batch took.

    python -m peers.side spark "sliding sum" DATA OUT hdfs

Both get two cores, two partitions, the same memory and one file per micro-batch, and both write Parquet.
"""

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from peers.workload import COLUMNS, WATERMARK, Workload
from peers.workloads import WORKLOADS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress

CORES = "local[2]"
MEMORY = "4g"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": MEMORY,
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
}
FILES, WITHOUT_CHECKSUMS = "fs.AbstractFileSystem.file.impl", "org.apache.hadoop.fs.local.RawLocalFs"
"""Faster, so Spark's own gets it as cedr does; its RocksDB store fails with it."""
STATE = "spark.sql.streaming.stateStore"
ROCKSDB = {
    f"{STATE}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    f"{STATE}.rocksdb.changelogCheckpointing.enabled": "true",
}
STORES: dict[str, dict[str, str]] = {
    "hdfs": {},
    "rocksdb": ROCKSDB,
    "rocksdb, join format 4": {**ROCKSDB, "spark.sql.streaming.join.stateFormatVersion": "4"},
}
"""Spark's state stores. Join format 4 looks up partners by time; the default, 2, tries all events of the key."""
Outcome = dict[str, Any]


def run_spark(workload: Workload, data: Path, out: Path, store: str) -> Outcome:
    """Append mode: a row is written when the watermark has passed it and never changed."""
    from cedr.runtime.spark.driver.streaming import settings_for

    spark = session({**SETTINGS, **STORES[store]})
    files = {s: spark.readStream.schema(workload.columns.get(s, COLUMNS)) for s in workload.streams}
    read = {s: reader.option("maxFilesPerTrigger", 1).parquet(str(data / s)) for s, reader in files.items()}
    streams = {s: stream.withWatermark("ts", WATERMARK) for s, stream in read.items()}
    writer = workload.spark_query(streams).writeStream.outputMode("append").trigger(availableNow=True)
    with settings_for(spark, {FILES: WITHOUT_CHECKSUMS} if store == "hdfs" else {}):
        query = writer.option("checkpointLocation", str(out / "checkpoint")).format("parquet").start(str(out / "rows"))
    query.awaitTermination()
    dropped = sum(op.numRowsDroppedByWatermark for p in query.recentProgress for op in p.stateOperators)
    if dropped:
        raise RuntimeError(f"Spark dropped {dropped:,} rows as too late; both sides must use all events")
    return {"batches": batches(query.recentProgress), "rows": read_spark(out).height}


def session(settings: dict[str, str]) -> "SparkSession":
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(CORES).appName("cedr benchmark")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def read_spark(out: Path) -> pl.DataFrame:
    return pl.read_parquet(out / "rows" / "*.parquet")


def run_cedr(workload: Workload, data: Path, out: Path) -> Outcome:
    """Middle consistency: a row is written at once and repaired when a late event makes it wrong."""
    import cedr

    spark = cedr.spark_session(CORES, spark__driver__memory=MEMORY)
    running = (
        workload.cedr_query()
        .with_consistency("middle")
        .start(
            spark,
            {stream: cedr.files(data / stream, max_files=1) for stream in workload.streams},
            sink=cedr.sinks.parquet(out / "rows"),
            checkpoint=str(out / "checkpoint"),
            trigger={"availableNow": True},
            close=workload.close,
        )
    )
    running.await_termination()
    if late := running.late().height:
        raise RuntimeError(f"cedr put {late:,} rows aside as late; both sides must use all events")
    counted = [p.observedMetrics["cedr"] for p in running.progress if "cedr" in p.observedMetrics]
    return {
        "batches": batches(running.progress),
        "rows": sum(c["rows_out"] or 0 for c in counted),
        "state_rows": [c["state_rows"] for c in counted],
    }


def read_cedr(out: Path) -> pl.DataFrame:
    import cedr

    table: pl.DataFrame = cedr.sinks.read_parquet(out / "rows")
    return table


def batches(progress: "list[StreamingQueryProgress]") -> list[dict[str, float]]:
    """Of each micro-batch: when it started and how long it took, in seconds."""
    done = [p for p in progress if "addBatch" in p.durationMs]
    return [
        {"start": datetime.fromisoformat(p.timestamp).timestamp(), "seconds": p.durationMs["triggerExecution"] / 1000}
        for p in done
    ]


def main(system: str, name: str, data: str, out: str, store: str) -> None:
    workload, places = WORKLOADS[name], (Path(data), Path(out))
    outcome = run_spark(workload, *places, store) if system == "spark" else run_cedr(workload, *places)
    print(json.dumps(outcome))


if __name__ == "__main__":
    main(*sys.argv[1:])
