"""Join of two streams: events with equal keys, less than some time apart.

In cedr each event lives that long, and a pair for as long as both do. Spark needs watermarks on both sides and the
condition as a range of event time, so that it can forget.
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from peers.parameters import APART
from peers.workload import Workload, source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    import cedr


def cedr_query(apart: int) -> "cedr.Stream":
    left, right = (source(name).sliding(f"{apart}ms") for name in ("left", "right"))
    return left.join(right, on="k")


def cedr_answer(table: pl.DataFrame) -> pl.DataFrame:
    return table.select("vs", "ve", "k", "v", "v_right")


def spark_query(streams: "Mapping[str, DataFrame]", apart: int) -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812

    left, right = streams["left"].alias("l"), streams["right"].alias("r")
    length = f"INTERVAL {apart} MILLISECONDS"
    near = F.expr(f"l.k = r.k AND r.ts > l.ts - {length} AND r.ts < l.ts + {length}")
    return left.join(right, near).select(
        F.greatest("l.ts", "r.ts").alias("vs"),
        (F.least("l.ts", "r.ts") + F.expr(length)).alias("ve"),
        F.col("l.k").alias("k"),
        F.col("l.v").alias("v"),
        F.col("r.v").alias("v_right"),
    )


def batch(tables: Mapping[str, pl.DataFrame], apart: int) -> pl.DataFrame:
    """By buckets as long as the events may be apart: a partner is in the same bucket or a neighbouring one."""
    length = pl.duration(milliseconds=apart)
    bucket = pl.col("ts").dt.truncate(f"{apart}ms").alias("b")
    left = (
        tables["left"].with_columns(bucket).with_columns(b=pl.concat_list(pl.col("b") + i * length for i in (-1, 0, 1)))
    )
    pairs = left.explode("b", empty_as_null=False).join(tables["right"].with_columns(bucket), on=["k", "b"])
    near = pairs.filter((pl.col("ts") - pl.col("ts_right")).abs() < length)
    starts, ends = pl.max_horizontal("ts", "ts_right"), pl.min_horizontal("ts", "ts_right") + length
    return near.select(starts.alias("vs"), ends.alias("ve"), "k", "v", "v_right")


def workload(name: str, apart: int, bar: float = 0, reference: str = "") -> Workload:
    """`apart` in milliseconds."""
    return Workload(
        name,
        ("left", "right"),
        partial(cedr_query, apart),
        cedr_answer,
        partial(spark_query, apart=apart),
        partial(batch, apart=apart),
        ("vs", "ve", "k", "v", "v_right"),
        bar,
        "rocksdb, join format 4",
        reference,
    )


JOIN = workload("join", APART, 20, "Spark's own 17 k, Flink SQL 227 k events/s")
"""About 1.25 pairs per event."""
