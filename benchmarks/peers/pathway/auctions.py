"""Nexmark's queries in Pathway's tables. Windows are emitted once, 5 s after their end; other joins never forget."""

from typing import Any

import pathway as pw
from peers.parameters import DELAY, NEXMARK_HOP, NEXMARK_WINDOW

Table = pw.Table[Any]
SECOND = 1_000
LENGTH, HOP = NEXMARK_WINDOW * SECOND, NEXMARK_HOP * SECOND


def late() -> pw.temporal.ExactlyOnceBehavior:
    return pw.temporal.exactly_once_behavior(shift=DELAY * SECOND)


def q0(bid: Table) -> Table:
    return bid.select(pw.this.ts, pw.this.auction, pw.this.bidder, pw.this.price)


def q1(bid: Table) -> Table:
    return bid.select(pw.this.ts, pw.this.auction, pw.this.bidder, price=pw.this.price * 0.908)


def q2(bid: Table) -> Table:
    return bid.filter(pw.this.auction % 123 == 0).select(pw.this.ts, pw.this.auction, pw.this.price)


def q3(person: Table, auction: Table) -> Table:
    state = person.state
    people = person.filter((state == "OR") | (state == "ID") | (state == "CA"))
    offers = auction.filter(auction.category == 10)
    pairs = offers.join(people, offers.seller == people.number)
    return pairs.select(people.name, people.city, people.state, offers.number)


def finals(auction: Table, bid: Table) -> Table:
    offers = auction.select(auction.number, auction.seller, auction.category, auction.expires, opened=auction.ts)
    pairs = offers.join(bid, offers.number == bid.auction).select(
        bid.auction, bid.price, bid.ts, offers.seller, offers.category, offers.opened, offers.expires
    )
    taken = pairs.filter((pw.this.ts >= pw.this.opened) & (pw.this.ts < pw.this.expires))
    grouped = taken.groupby(taken.auction, taken.seller, taken.category)
    return grouped.reduce(taken.auction, taken.seller, taken.category, final=pw.reducers.max(taken.price))


def q4(auction: Table, bid: Table) -> Table:
    highest = finals(auction, bid)
    return highest.groupby(highest.category).reduce(highest.category, price=pw.reducers.avg(highest.final))


def q5(bid: Table) -> Table:
    window = pw.temporal.sliding(hop=HOP, duration=LENGTH, origin=0)
    counts = bid.windowby(bid.ts, window=window, behavior=late(), instance=bid.auction).reduce(
        auction=pw.this._pw_instance,
        start=pw.this._pw_window_start,
        end=pw.this._pw_window_end,
        n=pw.reducers.count(),
    )
    most = counts.groupby(counts.start).reduce(counts.start, n=pw.reducers.max(counts.n))
    hot = counts.join(most, counts.start == most.start, counts.n == most.n)
    return hot.select(counts.start, counts.end, counts.auction, counts.n)


def q7(bid: Table) -> Table:
    bids = bid.with_columns(start=bid.ts - bid.ts % LENGTH)
    window = pw.temporal.tumbling(duration=LENGTH, origin=0)
    most = bid.windowby(bid.ts, window=window, behavior=late()).reduce(
        start=pw.this._pw_window_start, price=pw.reducers.max(pw.this.price)
    )
    highest = bids.join(most, bids.start == most.start, bids.price == most.price)
    return highest.select(bids.start, bids.auction, bids.bidder, bids.price)


def q8(person: Table, auction: Table) -> Table:
    people = person.select(person.number, person.name, start=person.ts - person.ts % LENGTH)
    offers = auction.select(auction.seller, start=auction.ts - auction.ts % LENGTH)
    sellers = offers.groupby(offers.seller, offers.start).reduce(offers.seller, offers.start)
    found = people.join(sellers, people.number == sellers.seller, people.start == sellers.start)
    return found.select(people.start, people.number, people.name)


P, A, B = "person", "auction", "bid"
NEXMARK = {
    "q0": (q0, (B,)),
    "q1": (q1, (B,)),
    "q2": (q2, (B,)),
    "q3": (q3, (P, A)),
    "q4": (q4, (A, B)),
    "q5": (q5, (B,)),
    "q7": (q7, (B,)),
    "q8": (q8, (P, A)),
}
UNABLE = {"q6": "no operator keeps the last ten rows of a group; a function in Python would sort the whole group"}
