"""The program that is killed: `python -m crashes.driver QUERY FOLDER SINK` runs a query to its end.

FOLDER/in/<source>/*.parquet   what it reads
FOLDER/checkpoint
FOLDER/out                     the table: a folder of Parquet files, or a DuckDB file
"""

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
    start(QUERIES[name](), spark, Path(folder), kind).await_termination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
