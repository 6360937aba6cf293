"""Nexmark's queries as dataflows, those that Bytewax can ask with a few operators; for the others, why not."""

from pathlib import Path

import bytewax.operators as op
from bytewax.dataflow import Dataflow, Stream
from bytewax.operators import StatefulBatchLogic
from ends import Clock, Files, Row

STATES = ("OR", "ID", "CA")
BY_HAND = "no operator; the whole query would be Python with state, written by hand"
UNABLE = {
    "q4": f"an average of maxima that change: {BY_HAND}",
    "q5": "a window over the results of windows: clocks belong to keys, so nobody knows when all have emitted a window",
    "q6": f"the last ten of a group that changes: {BY_HAND}",
    "q7": "a window over all keys: clocks belong to keys, and with a single key a single worker would do it all",
    "q8": "a window over two streams: its clock would follow the faster one and drop rows of the other as late",
}
COLUMNS = {
    "q0": ("ts", "auction", "bidder", "price"),
    "q1": ("ts", "auction", "bidder", "price"),
    "q2": ("ts", "auction", "price"),
    "q3": ("name", "city", "state", "id"),
}


def q0(dataflow: Dataflow, folder: Path, clock: Clock) -> Stream[Row]:
    return op.input("bid", dataflow, Files(folder / "bid", clock))


def q1(dataflow: Dataflow, folder: Path, clock: Clock) -> Stream[Row]:
    return op.map("convert", q0(dataflow, folder, clock), lambda bid: (*bid[:3], bid[3] * 0.908))


def q2(dataflow: Dataflow, folder: Path, clock: Clock) -> Stream[Row]:
    some = op.filter("some", q0(dataflow, folder, clock), lambda bid: bid[1] % 123 == 0)
    return op.map("columns", some, lambda bid: (bid[0], bid[1], bid[3]))


def q3(dataflow: Dataflow, folder: Path, clock: Clock) -> Stream[Row]:
    person = op.input("person", dataflow, Files(folder / "person", clock))
    auction = op.input("auction", dataflow, Files(folder / "auction", clock))
    people = op.filter("states", person, lambda row: row[4] in STATES)
    offers = op.filter("category", auction, lambda row: row[3] == 10)
    by_person = op.map("by_person", people, lambda row: (str(row[1]), row[2:5]))
    by_seller = op.map("by_seller", offers, lambda row: (str(row[2]), row[1]))
    found = op.stateful_batch("join", op.merge("both", by_person, by_seller), Seller)
    return op.map("row", found, lambda item: item[1])


class Seller(StatefulBatchLogic[Row | int, Row, None]):
    """A person and the auctions that came before; afterwards auctions pass at once."""

    def __init__(self, resume_state: None) -> None:
        self.person: Row | None = None
        self.offers: list[int] = []

    def on_batch(self, values: list[Row | int]) -> tuple[list[Row], bool]:
        for value in values:
            if isinstance(value, tuple):
                self.person = value
            else:
                self.offers.append(value)
        found: list[Row] = []
        if self.person:
            found, self.offers = [(*self.person, offer) for offer in self.offers], []
        return found, StatefulBatchLogic.RETAIN

    def snapshot(self) -> None:
        return None


NEXMARK = {"q0": q0, "q1": q1, "q2": q2, "q3": q3}
