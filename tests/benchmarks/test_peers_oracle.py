"""The queries of `./cedr bench peers` against the oracle, over small inputs with late and corrected rows."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from nexmark.generator import settled
from peers import data
from peers.answers import disagreement
from peers.data import SECOND, Shape
from peers.parameters import APART, HIGH, HOP, LOW, NEXMARK_HOP, NEXMARK_WINDOW, SCOPE, SLIDING, WINDOW
from peers.questions import QUESTIONS

from cedr import reference as ref
from cedr.reference import patterns
from cedr.temporal import INF, Event, History, Row

SHAPE = Shape(events=600, files=3, keys=5, rate=20, grain=1_000)
SIZES = {"pattern": 120, "q3": 3_000, "q8": 3_000}
"""The oracle tries all combinations of three events; few people register."""
Histories = Mapping[str, History]


def history(table: pl.DataFrame) -> History:
    """Events of one instant; auctions live until they expire."""
    table = settled(table) if "ve_new" in table.columns else table
    ends = "expires" if "expires" in table.columns else None
    numbers = table.with_columns(pl.col(pl.Datetime).dt.epoch("us"))
    payload = [c for c in table.columns if c not in ("ts", "expires")]
    return History(
        Event(row["ts"], row[ends] if ends else row["ts"] + 1, Row({name: row[name] for name in payload}))
        for row in numbers.iter_rows(named=True)
    )


# --- the five workloads --------------------------------------------------------------------------------------------


def windows(h: Histories, hop: int) -> History:
    aggregates = {"n": ref.count(), "s": ref.sum_("v"), "a": ref.avg("v"), "m": ref.max_("v")}
    return ref.aggregate(ref.hopping(h["events"], WINDOW * SECOND, hop * SECOND), ("k",), **aggregates)


def join(h: Histories) -> History:
    left, right = (ref.sliding(h[side], APART * 1_000) for side in ("left", "right"))
    return ref.inner_join(left, right, lambda p, q: p.k == q.k, lambda p, q: Row(k=p.k, v=p.v, v_right=q.v))


def sliding(h: Histories) -> History:
    return ref.aggregate(ref.sliding(h["events"], SLIDING * SECOND), ("k",), s=ref.sum_("v"))


def pattern(h: Histories) -> History:
    x, y, z = (patterns.ReferenceEventType("events", name) for name in "xyz")
    where = (
        patterns.ReferenceCorrelationKey("k", "EQUAL"),
        patterns.ReferencePredicate("x", lambda x: x.payload.v < LOW),
        patterns.ReferencePredicate("y", lambda y: LOW <= y.payload.v < HIGH),
        patterns.ReferencePredicate("z", lambda z: z.payload.v >= HIGH),
    )
    query = patterns.ReferencePatternQuery(
        patterns.NOT(z, patterns.SEQUENCE(x, y, w=SCOPE * SECOND)),
        where,
        lambda m: Row(k=m.cbt[0].payload.k, first=m.cbt[0].payload.v, second=m.cbt[1].payload.v),
    )
    return query.run(h)


# --- Nexmark -------------------------------------------------------------------------------------------------------


def q1(h: Histories) -> History:
    return ref.project(h["bid"], lambda p: Row(auction=p.auction, bidder=p.bidder, price=p.price * 0.908))


def q2(h: Histories) -> History:
    some = ref.select(h["bid"], lambda p: p.auction % 123 == 0)
    return ref.project(some, lambda p: Row(auction=p.auction, price=p.price))


def q3(h: Histories) -> History:
    people = ref.inserts(ref.select(h["person"], lambda p: p.state in ("OR", "ID", "CA")))
    offers = ref.inserts(ref.select(h["auction"], lambda p: p.category == 10))
    return ref.inner_join(
        offers,
        people,
        lambda p, q: p.seller == q.id,
        lambda p, q: Row(name=q.name, city=q.city, state=q.state, id=p.id),
    )


def finals(h: Histories) -> History:
    got = ref.inner_join(
        h["bid"],
        h["auction"],
        lambda p, q: p.auction == q.id,
        lambda p, q: Row(auction=q.id, seller=q.seller, category=q.category, price=p.price),
    )
    return ref.aggregate(ref.inserts(got), ("auction", "seller", "category"), final=ref.max_("price"))


def q4(h: Histories) -> History:
    return ref.aggregate(finals(h), ("category",), price=ref.avg("final"))


def most(counts: History, column: str) -> History:
    """Rows that have, at an instant, the highest value of all."""
    highest = ref.aggregate(counts, most=ref.max_(column))
    return ref.inner_join(counts, highest, lambda p, q: p[column] == q.most, lambda p, q: p)


def q5(h: Histories) -> History:
    lives = ref.hopping(h["bid"], NEXMARK_WINDOW * SECOND, NEXMARK_HOP * SECOND)
    return most(ref.aggregate(lives, ("auction",), n=ref.count()), "n")


def q6(h: Histories) -> History:
    last = ref.top_k(finals(h), 10, lambda p: p.auction, lambda p: p.seller)
    return ref.aggregate(last, ("seller",), price=ref.avg("final"))


def q7(h: Histories) -> History:
    return most(ref.tumbling(h["bid"], NEXMARK_WINDOW * SECOND), "price")


def q8(h: Histories) -> History:
    people, auctions = (ref.tumbling(h[name], NEXMARK_WINDOW * SECOND) for name in ("person", "auction"))
    sellers = ref.distinct(ref.project(auctions, lambda p: Row(id=p.seller)))
    return ref.inner_join(people, sellers, lambda p, q: p.id == q.id, lambda p, q: Row(id=p.id, name=p.name))


ORACLE = {
    "hopping": partial(windows, hop=HOP),
    "tumbling": partial(windows, hop=WINDOW),
    "join": join,
    "sliding": sliding,
    "pattern": pattern,
    "q0": lambda h: h["bid"],
    **{query.__name__: query for query in (q1, q2, q3, q4, q5, q6, q7, q8)},
}


def table(found: History) -> pl.DataFrame:
    return pl.DataFrame([{"vs": vs, "ve": None if ve == INF else ve, **dict(payload)} for vs, ve, payload in found])


def answered(name: str, tmp_path: Path) -> tuple[Histories, History]:
    workload = QUESTIONS[name].workload
    QUESTIONS[name].write(tmp_path, workload.streams, replace(SHAPE, events=SIZES.get(name, SHAPE.events)))
    tables = data.read(tmp_path, workload.streams)
    files = zip(*(data.files(tmp_path / s) for s in workload.streams), strict=True)
    arriving = (dict(zip(workload.streams, map(pl.read_parquet, row), strict=True)) for row in files)
    result = workload.cedr_query().run(arriving, chunk_size=50)
    assert result.late().is_empty()
    return {stream: history(rows) for stream, rows in tables.items()}, result.history()


@pytest.mark.parametrize("name", QUESTIONS)
def test_cedr_answers_as_the_oracle_does(name, tmp_path):
    given, found = answered(name, tmp_path)
    expected = table(ORACLE[name.removesuffix("-corrected")](given))
    assert expected.height >= 3
    exact = tuple(c for c, kind in expected.schema.items() if not kind.is_float() or c in ("v", "v_right", "first"))
    assert disagreement("cedr", table(found), expected, exact, key="vs") is None


def test_averages_are_of_more_than_one_value(tmp_path):
    """Otherwise the comparison could not distinguish an average from a maximum."""
    given, _ = answered("hopping", tmp_path)
    rows = table(windows(given, HOP))
    assert rows["n"].max() > 2
    assert any(not math.isclose(a, m) for a, m in rows.select("a", "m").iter_rows())
