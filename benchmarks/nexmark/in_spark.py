"""Nexmark's queries in Spark's own streaming, append mode; what it cannot ask, with the reason."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from peers.parameters import NEXMARK_HOP, NEXMARK_WINDOW

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    Streams = Mapping[str, DataFrame]

COLUMNS = {
    "person": "ts timestamp, id long, name string, city string, state string",
    "auction": "ts timestamp, id long, seller long, category long, expires timestamp",
    "bid": "ts timestamp, auction long, bidder long, price long",
}
CHAINED = "append mode takes no aggregate without a window, and only append mode takes an aggregate after another"
UNABLE = {"q4": CHAINED, "q6": CHAINED}


def q0(streams: "Streams") -> "DataFrame":
    return streams["bid"].select("ts", "auction", "bidder", "price")


def q1(streams: "Streams") -> "DataFrame":
    return q0(streams).selectExpr("ts", "auction", "bidder", "price * 0.908D AS price")


def q2(streams: "Streams") -> "DataFrame":
    return streams["bid"].where("auction % 123 = 0").select("ts", "auction", "price")


def q3(streams: "Streams") -> "DataFrame":
    people = streams["person"].where("state IN ('OR', 'ID', 'CA')").withColumnRenamed("id", "who")
    offers = streams["auction"].where("category = 10")
    return offers.join(people, offers.seller == people.who).select("name", "city", "state", "id")


def q5(streams: "Streams") -> "DataFrame":
    """All counts of a window in one list, of which the highest stay."""
    from pyspark.sql import functions as F  # noqa: N812

    length, hop = f"{NEXMARK_WINDOW} seconds", f"{NEXMARK_HOP} seconds"
    counts = streams["bid"].groupBy(F.window("ts", length, hop).alias("w"), "auction").agg(F.count("*").alias("n"))
    listed = counts.groupBy("w").agg(F.collect_list(F.struct("auction", "n")).alias("all"))
    hot = listed.withColumn("most", F.expr("array_max(transform(all, x -> x.n))"))
    each = hot.select("w", F.explode(F.expr("filter(all, x -> x.n = most)")).alias("x"))
    return each.selectExpr("w.start AS start", "w.end AS end", "x.auction AS auction", "x.n AS n")


def q7(streams: "Streams") -> "DataFrame":
    """Bids of a window by price, of which the highest price stays."""
    from pyspark.sql import functions as F  # noqa: N812

    window = F.window("ts", f"{NEXMARK_WINDOW} seconds").alias("w")
    by_price = streams["bid"].groupBy(window, "price").agg(F.collect_list(F.struct("auction", "bidder")).alias("all"))
    highest = by_price.groupBy("w").agg(F.max(F.struct("price", "all")).alias("x"))
    each = highest.select("w", "x.price", F.explode("x.all").alias("b"))
    return each.selectExpr("w.start AS start", "b.auction AS auction", "b.bidder AS bidder", "price")


def q8(streams: "Streams") -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812

    window = F.window("ts", f"{NEXMARK_WINDOW} seconds").alias("w")
    people = streams["person"].groupBy(window, "id", "name").agg(F.count("*").alias("n"))
    sellers = streams["auction"].groupBy(window, F.col("seller").alias("id")).agg(F.count("*").alias("m"))
    return people.join(sellers, ["w", "id"]).selectExpr("w.start AS start", "id", "name")


def cannot(streams: "Streams") -> "DataFrame":
    """The place of a query in UNABLE, which no contest starts."""
    raise LookupError("Spark's own streaming has no such query; UNABLE gives the reason")


QUERIES: "dict[str, Callable[[Streams], DataFrame]]" = {
    "q0": q0,
    "q1": q1,
    "q2": q2,
    "q3": q3,
    "q5": q5,
    "q7": q7,
    "q8": q8,
}
