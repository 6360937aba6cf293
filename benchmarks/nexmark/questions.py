"""Nexmark's nine queries as questions of `./cedr bench peers`, over bids that are never corrected and bids that are."""

from collections.abc import Callable
from functools import partial

import polars as pl
from peers.parameters import NEXMARK_HOP, NEXMARK_WINDOW
from peers.workload import Workload

from nexmark import in_cedr, in_polars, in_spark

Answer = Callable[[pl.DataFrame], pl.DataFrame]


def at_instants(table: pl.DataFrame) -> pl.DataFrame:
    return table.rename({"vs": "ts"}).drop("ve")


def untimed(table: pl.DataFrame) -> pl.DataFrame:
    return table.drop("vs", "ve")


def in_the_end(table: pl.DataFrame) -> pl.DataFrame:
    """What holds for ever."""
    return table.filter(pl.col("ve").is_null()).drop("vs", "ve")


def hops(table: pl.DataFrame) -> pl.DataFrame:
    """A row that lasts for several hops means that these windows have the same answer."""
    hop, length = pl.duration(seconds=NEXMARK_HOP), pl.duration(seconds=NEXMARK_WINDOW)
    ends = pl.datetime_ranges(pl.col("vs") + hop, "ve", interval=f"{NEXMARK_HOP}s")
    each = table.with_columns(end=ends).explode("end", empty_as_null=False)
    return each.select((pl.col("end") - length).alias("start"), "end", "auction", "n")


def windows(table: pl.DataFrame) -> pl.DataFrame:
    return table.rename({"vs": "start"}).drop("ve")


P, A, B = "person", "auction", "bid"
ABOUT: dict[str, tuple[str, tuple[str, ...], Answer, tuple[str, ...], str]] = {
    "q0": ("all bids", (B,), at_instants, ("ts", "auction", "bidder", "price"), "auction"),
    "q1": ("all bids in another currency", (B,), at_instants, ("ts", "auction", "bidder", "price"), "auction"),
    "q2": ("bids for some auctions", (B,), at_instants, ("ts", "auction", "price"), "auction"),
    "q3": ("who sells in a category, in three states", (P, A), untimed, ("id", "name", "city", "state"), "id"),
    "q4": ("average highest bid by category", (A, B), in_the_end, ("category",), "category"),
    "q5": ("auctions with most bids, in hopping windows", (B,), hops, ("start", "end", "auction", "n"), "auction"),
    "q6": ("average highest bid of a seller's last ten", (A, B), in_the_end, ("seller",), "seller"),
    "q7": ("the highest bid, in tumbling windows", (B,), windows, ("start", "auction", "bidder", "price"), "auction"),
    "q8": ("new people who sell at once, in tumbling windows", (P, A), windows, ("start", "id", "name"), "id"),
}
"""What it asks, the streams, how cedr's table becomes the answer, the columns that are exact, the one with FLUSH."""


def workload(name: str, corrected: bool = False) -> Workload:
    _, streams, answer, exact, key = ABOUT[name]
    spark_query = in_spark.QUERIES.get(name, in_spark.cannot)
    return Workload(
        name,
        streams,
        partial(getattr(in_cedr, name), corrected),
        answer,
        spark_query,
        getattr(in_polars, name),
        exact,
        0,
        "rocksdb" if len(streams) > 1 else "hdfs",
        "",
        {"spark": in_spark.UNABLE[name]} if name in in_spark.UNABLE else {},
        key,
        in_spark.COLUMNS,
        close=True,
    )
