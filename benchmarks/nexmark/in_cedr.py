"""Nexmark's queries in cedr. Each gets `corrected`: whether bids may be retracted and replaced.

Windows are lifetimes: in hopping and tumbling windows an event lives on a grid, and whatever lives together is
aggregated or joined. What has no window lives for ever, `inserts()`; its answer is what holds in the end.
"""

import polars as pl
from peers.parameters import NEXMARK_HOP, NEXMARK_WINDOW

import cedr
from nexmark.streams import auction, bid, person

WINDOW, HOP = f"{NEXMARK_WINDOW}s", f"{NEXMARK_HOP}s"


def q0(corrected: bool) -> cedr.Stream:
    return bid(corrected)


def q1(corrected: bool) -> cedr.Stream:
    return bid(corrected).with_columns(price=pl.col("price") * 0.908)


def q2(corrected: bool) -> cedr.Stream:
    return bid(corrected).where(pl.col("auction") % 123 == 0).select("auction", "price")


def q3(corrected: bool) -> cedr.Stream:
    people = person().where(pl.col("state").is_in(["OR", "ID", "CA"])).inserts()
    offers = auction().where(pl.col("category") == 10).inserts()
    return offers.join(people, left_on="seller", right_on="id").select("name", "city", "state", "id")


def finals(corrected: bool) -> cedr.Stream:
    """The highest bid of each auction so far, of those it got while it was open."""
    got = bid(corrected).join(auction(), left_on="auction", right_on="id").inserts()
    return got.group_by("auction", "seller", "category").agg(final=cedr.max("price"))


def q4(corrected: bool) -> cedr.Stream:
    return finals(corrected).group_by("category").agg(price=cedr.avg("final"))


def q5(corrected: bool) -> cedr.Stream:
    counts = bid(corrected).hopping(WINDOW, HOP).group_by("auction").agg(n=cedr.count())
    return counts.join(counts.agg(most=cedr.max("n")), left_on="n", right_on="most")


def q6(corrected: bool) -> cedr.Stream:
    """Auctions are numbered as they open: the last ten of a seller are those with the highest numbers."""
    last = finals(corrected).group_by("seller").top_k(10, by="auction")
    return last.group_by("seller").agg(price=cedr.avg("final"))


def q7(corrected: bool) -> cedr.Stream:
    bids = bid(corrected).tumbling(WINDOW)
    return bids.join(bids.agg(most=cedr.max("price")), left_on="price", right_on="most")


def q8(corrected: bool) -> cedr.Stream:
    sellers = auction().tumbling(WINDOW).select(id="seller").distinct()
    return person().tumbling(WINDOW).select("id", "name").join(sellers, on="id")
