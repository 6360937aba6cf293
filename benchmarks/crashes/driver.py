"""The program that is killed: `python -m crashes.driver QUERY FOLDER SINK` runs a query to its end.

FOLDER/in/<source>/*.parquet   what it reads
FOLDER/checkpoint
FOLDER/out                     the table: a folder of Parquet files, or a DuckDB file
FOLDER/moved.json              how many shards had moved in each micro-batch, and how many rows they replayed
"""

import json
import sys
from pathlib import Path
from typing import Any

import polars as pl

import cedr
from cedr.runtime.spark.driver.late_files import read_late
from cedr.storage.folder import Folder
from cedr.stream import Stream
from crashes.workload import QUERIES

SHARDS = 2


def sink(kind: str, folder: Path) -> Any:
    return cedr.sinks.parquet(folder / "out") if kind == "parquet" else cedr.sinks.duckdb(folder / "out", "answer")


def start(query: Stream, spark: Any, folder: Path, kind: str = "parquet", **options: Any) -> Any:
    files = {name: cedr.files(folder / "in" / name, max_files=1) for name in query.fragment().sources}
    return query.start(
        spark,
        files,
        sink=sink(kind, folder),
        checkpoint=str(folder / "checkpoint"),
        shards=SHARDS,
        trigger={"availableNow": True},
        close=True,
        **options,
    )


def late(folder: Path) -> pl.DataFrame:
    """The rows that could not be used."""
    return read_late(Folder(str(folder / "checkpoint" / "cedr" / "late")))


def main(name: str, folder: str, kind: str, master: str = f"local[{SHARDS}]") -> None:
    spark = cedr.spark_session(master)
    running = start(QUERIES[name](), spark, Path(folder), kind)
    running.await_termination()
    observed = [(p.batchId, p.observedMetrics["cedr"]) for p in running.progress if "cedr" in p.observedMetrics]
    moved = {batch: (found["moved"], found["replayed"]) for batch, found in observed}
    Path(folder, "moved.json").write_text(json.dumps(moved))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
