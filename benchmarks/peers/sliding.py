"""The sum per key over the last seconds, emitted whenever it changes: when an event enters, and when one leaves.

Spark has no operator for it; its side is Python with state: event by event, as most would write it (`sliding_plain`),
or on arrays (`sliding_state`).
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from peers import sliding_plain, sliding_state
from peers.parameters import SLIDING as LENGTH
from peers.workload import Workload, source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    import cedr

ROWS = "vs long, ve long, k long, s double"


def cedr_query(seconds: int) -> "cedr.Stream":
    import cedr

    return source("events").sliding(f"{seconds}s").group_by("k").agg(s=cedr.sum("v"))


def cedr_answer(table: pl.DataFrame) -> pl.DataFrame:
    return table.select("vs", "ve", "k", "s")


def spark_query(streams: "Mapping[str, DataFrame]", seconds: int, arrays: bool) -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.streaming.state import GroupStateTimeout

    side = sliding_state if arrays else sliding_plain
    by_key = streams["events"].groupBy("k")
    emission, timeout = side.emission(seconds * 1_000_000), GroupStateTimeout.EventTimeTimeout
    emitted = by_key.applyInPandasWithState(emission, ROWS, side.STATE, "append", timeout)
    return emitted.select(F.timestamp_micros("vs").alias("vs"), F.timestamp_micros("ve").alias("ve"), "k", "s")


def batch(tables: Mapping[str, pl.DataFrame], seconds: int) -> pl.DataFrame:
    """Each event adds its value at its start and takes it away at its end; rows between, where events are alive."""
    events = tables["events"]
    starts = events.select("k", vs="ts", d="v", n=pl.lit(1))
    ends = events.select("k", vs=pl.col("ts") + pl.duration(seconds=seconds), d=-pl.col("v"), n=pl.lit(-1))
    points = pl.concat([starts, ends]).group_by("k", "vs").agg(pl.sum("d"), pl.sum("n")).sort("k", "vs")
    running = points.select(
        "vs",
        pl.col("vs").shift(-1).over("k").alias("ve"),
        "k",
        pl.col("d").cum_sum().over("k").alias("s"),
        pl.col("n").cum_sum().over("k").alias("alive"),
    )
    return running.filter(pl.col("alive") > 0).drop("alive")


def workload(name: str, seconds: int, bar: float = 0, reference: str = "", arrays: bool = True) -> Workload:
    return Workload(
        name,
        ("events",),
        partial(cedr_query, seconds),
        cedr_answer,
        partial(spark_query, seconds=seconds, arrays=arrays),
        partial(batch, seconds=seconds),
        ("vs", "ve", "k"),
        bar,
        "hdfs",
        reference,
    )


SLIDING = workload(
    "sliding sum", LENGTH, 10, "Spark's own with Python state 40 k, Flink SQL 265 k events/s", arrays=False
)
SLIDING_ARRAYS = workload("sliding sum, Spark's on arrays", LENGTH, reference="as well as we could write it")
