"""A low value, then one in the middle, without a high one between, of the same key and within some seconds.

In cedr a pattern, written in its language. Spark has no operator for it; its side is Python with state, event by event
(`pattern_state`).
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from peers.parameters import HIGH, LOW, SCOPE
from peers.pattern_state import ROWS, STATE, emission
from peers.workload import Workload, source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    import cedr


def cedr_query(seconds: int) -> "cedr.Stream":
    import cedr

    text = f"""
        EVENT Found
        WHEN NOT(events z, SEQUENCE(events x, events y, {seconds} seconds))
        WHERE CorrelationKey(k, EQUAL) AND x.v < {LOW} AND y.v >= {LOW} AND y.v < {HIGH} AND z.v >= {HIGH}
        OUTPUT x.k AS k, x.v AS first, y.v AS second
    """
    return cedr.query(text, source("events"))


def cedr_answer(table: pl.DataFrame) -> pl.DataFrame:
    return table.select("vs", "ve", "k", "first", "second")


def spark_query(streams: "Mapping[str, DataFrame]", seconds: int) -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.streaming.state import GroupStateTimeout

    by_key, timeout = streams["events"].groupBy("k"), GroupStateTimeout.EventTimeTimeout
    matches = by_key.applyInPandasWithState(emission(seconds * 1_000_000), ROWS, STATE, "append", timeout)
    times = (F.timestamp_micros(name).alias(name) for name in ("vs", "ve"))
    return matches.select(*times, "k", "first", "second")


def batch(tables: Mapping[str, pl.DataFrame], seconds: int) -> pl.DataFrame:
    """Pairs by buckets as long as the scope; none may have a high value after its first event and before its second."""
    events, scope = tables["events"].sort("ts"), pl.duration(seconds=seconds)
    high = events.filter(pl.col("v") >= HIGH).select("k", pl.col("ts").alias("forbidden"))
    bucket = pl.col("ts").dt.truncate(f"{seconds}s")
    firsts = events.filter(pl.col("v") < LOW).select("k", start="ts", first="v", b=bucket)
    seconds_of_pairs = (
        events.filter(pl.col("v").is_between(LOW, HIGH, closed="left"))
        .join_asof(high, left_on="ts", right_on="forbidden", by="k", allow_exact_matches=False, check_sortedness=False)
        .with_columns(b=pl.concat_list(bucket, bucket - scope))
        .explode("b", empty_as_null=False)
    )
    pairs = seconds_of_pairs.join(firsts, on=["k", "b"]).filter(
        pl.col("start") < pl.col("ts"),
        pl.col("ts") <= pl.col("start") + scope,
        pl.col("forbidden").is_null() | (pl.col("forbidden") <= pl.col("start")),
    )
    end = pl.max_horizontal(pl.col("start") + scope, pl.col("ts") + pl.duration(microseconds=1))
    return pairs.select("k", "first", vs="ts", ve=end, second="v").select("vs", "ve", "k", "first", "second")


def workload(name: str, seconds: int, bar: float, reference: str) -> Workload:
    return Workload(
        name,
        ("events",),
        partial(cedr_query, seconds),
        cedr_answer,
        partial(spark_query, seconds=seconds),
        partial(batch, seconds=seconds),
        ("vs", "ve", "k", "first", "second"),
        bar,
        "hdfs",
        reference,
    )


PATTERN = workload("pattern", SCOPE, 10, "not measured")
"""About 0.4 matches per event."""
