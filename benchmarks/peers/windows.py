"""Hopping and tumbling windows: count, sum, average and maximum per key.

cedr's rows are snapshots: `[g, g + hop)` represents the window `[g + hop - size, g + hop)`, and a row that lasts for
several hops means that these windows contain the same events. `windows_of` lists them one by one.
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from peers.parameters import HOP, WINDOW
from peers.workload import Workload, source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    import cedr


def cedr_query(size: int, hop: int) -> "cedr.Stream":
    import cedr

    windows = source("events").hopping(f"{size}s", f"{hop}s").group_by("k")
    return windows.agg(n=cedr.count(), s=cedr.sum("v"), a=cedr.avg("v"), m=cedr.max("v"))


def windows_of(table: pl.DataFrame, size: int, hop: int) -> pl.DataFrame:
    ends = pl.datetime_ranges(pl.col("vs") + pl.duration(seconds=hop), "ve", interval=f"{hop}s")
    each = table.with_columns(end=ends).explode("end", empty_as_null=False)
    return each.select("k", (pl.col("end") - pl.duration(seconds=size)).alias("start"), "end", "n", "s", "a", "m")


def spark_query(streams: "Mapping[str, DataFrame]", size: int, hop: int) -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812

    windows = streams["events"].groupBy("k", F.window("ts", f"{size} seconds", f"{hop} seconds").alias("w"))
    found = windows.agg(F.count("*").alias("n"), F.sum("v").alias("s"), F.avg("v").alias("a"), F.max("v").alias("m"))
    return found.select("k", F.col("w.start").alias("start"), F.col("w.end").alias("end"), "n", "s", "a", "m")


def batch(tables: Mapping[str, pl.DataFrame], size: int, hop: int) -> pl.DataFrame:
    last = tables["events"].select("k", "v", start=pl.col("ts").dt.truncate(f"{hop}s"))
    backs = [pl.duration(seconds=i * hop) for i in range(size // hop)]
    each = pl.concat([last.with_columns(pl.col("start") - back) for back in backs])
    aggregates = {"n": pl.len(), "s": pl.sum("v"), "a": pl.mean("v"), "m": pl.max("v")}
    found = each.group_by("k", "start").agg(**aggregates)
    return found.select("k", "start", (pl.col("start") + pl.duration(seconds=size)).alias("end"), "n", "s", "a", "m")


def workload(name: str, size: int, hop: int, bar: float, state_store: str, reference: str) -> Workload:
    return Workload(
        name,
        ("events",),
        partial(cedr_query, size=size, hop=hop),
        partial(windows_of, size=size, hop=hop),
        partial(spark_query, size=size, hop=hop),
        partial(batch, size=size, hop=hop),
        ("k", "start", "end", "n", "m"),
        bar,
        state_store,
        reference,
    )


HOPPING = workload("hopping", WINDOW, HOP, 5, "hdfs", "Spark's own 115 k, Flink SQL 183 k events/s")
TUMBLING = workload("tumbling", WINDOW, WINDOW, 1.5, "hdfs", "Spark's own 440 k, Flink SQL 398 k events/s")
