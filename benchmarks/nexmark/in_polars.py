"""Nexmark's queries over all events at once, in polars: the answers everybody's are compared with."""

from collections.abc import Mapping

import polars as pl
from peers.parameters import NEXMARK_HOP, NEXMARK_WINDOW

from nexmark.generator import settled

Tables = Mapping[str, pl.DataFrame]
LENGTH = pl.duration(seconds=NEXMARK_WINDOW)


def bids(tables: Tables) -> pl.DataFrame:
    return settled(tables["bid"])


def q0(tables: Tables) -> pl.DataFrame:
    return bids(tables).select("ts", "auction", "bidder", "price")


def q1(tables: Tables) -> pl.DataFrame:
    return q0(tables).with_columns(price=pl.col("price") * 0.908)


def q2(tables: Tables) -> pl.DataFrame:
    return bids(tables).filter(pl.col("auction") % 123 == 0).select("ts", "auction", "price")


def q3(tables: Tables) -> pl.DataFrame:
    people = tables["person"].filter(pl.col("state").is_in(["OR", "ID", "CA"]))
    offers = tables["auction"].filter(pl.col("category") == 10)
    pairs = offers.join(people, left_on="seller", right_on="id")
    return pairs.select("name", "city", "state", "id")


def finals(tables: Tables) -> pl.DataFrame:
    pairs = bids(tables).join(tables["auction"], left_on="auction", right_on="id", suffix="_opened")
    while_open = pairs.filter(pl.col("ts").is_between("ts_opened", "expires", closed="left"))
    return while_open.group_by("auction", "seller", "category").agg(final=pl.max("price"))


def q4(tables: Tables) -> pl.DataFrame:
    return finals(tables).group_by("category").agg(price=pl.mean("final"))


def q5(tables: Tables) -> pl.DataFrame:
    last = bids(tables).select("auction", start=pl.col("ts").dt.truncate(f"{NEXMARK_HOP}s"))
    backs = [pl.duration(seconds=back) for back in range(0, NEXMARK_WINDOW, NEXMARK_HOP)]
    each = pl.concat([last.with_columns(pl.col("start") - back) for back in backs])
    counts = each.group_by("start", "auction").agg(n=pl.len())
    hot = counts.filter(pl.col("n") == pl.col("n").max().over("start"))
    return hot.select("start", (pl.col("start") + LENGTH).alias("end"), "auction", "n")


def q6(tables: Tables) -> pl.DataFrame:
    last = finals(tables).sort("auction").group_by("seller").tail(10)
    return last.group_by("seller").agg(price=pl.mean("final"))


def q7(tables: Tables) -> pl.DataFrame:
    windows = bids(tables).with_columns(start=pl.col("ts").dt.truncate(f"{NEXMARK_WINDOW}s"))
    highest = windows.filter(pl.col("price") == pl.col("price").max().over("start"))
    return highest.select("start", "auction", "bidder", "price")


def q8(tables: Tables) -> pl.DataFrame:
    start = pl.col("ts").dt.truncate(f"{NEXMARK_WINDOW}s").alias("start")
    sellers = tables["auction"].select(start, id="seller").unique()
    return tables["person"].select(start, "id", "name").join(sellers, on=["start", "id"])
