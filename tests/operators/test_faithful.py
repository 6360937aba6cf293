"""Faithful and proper: the paper's laws for queries of the engine.

Rows last for ever and punctuations reach to infinity, so a stream is a table that arrives piece by piece, and each
operator has the table operator as its meaning. At strong consistency, after each slice, what is emitted must hold
whatever follows (safe), what holds whatever follows must be emitted (complete), and nothing may come that a punctuation
excluded (proper). Here more may follow than in the paper: a row may also be retracted, unless a punctuation is about
it.
"""

from collections import Counter
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import Any

import polars as pl
import pytest
import sliced_lists as sl
from hypothesis import given
from hypothesis import strategies as st
from oracle_check import arrivals_of

import cedr
from cedr import reference as ref
from cedr.reference import punctuated
from cedr.temporal import INF, MIN, History, Insert, Row, validate
from cedr.temporal.punctuation import Punctuation, puncts, set_match, set_nomatch_ts, tups
from cedr.temporal.stream import data

ROW = ("zone", "hour")
CALL = ("phone", "hour")
MOST_ROWS = 4


@dataclass(frozen=True)
class Query:
    """A query over tables, what it means, and the columns that punctuations must be about for it to be complete.

    in_order: rows of several inputs become one stream, which strong consistency emits in order; so a row waits until
    all inputs have excluded it, though it will not go away.
    """

    build: Any
    meaning: Any
    about: tuple[str, ...]
    tables: tuple[tuple[str, ...], ...] = (ROW,)
    in_order: bool = False

    def over(self, about) -> cedr.Stream:
        sources = [
            cedr.source(
                f"s{i}",
                dict.fromkeys(names, int),
                progress=cedr.Progress(promises=subsets([n for n in about if n in names])),
            )
            for i, names in enumerate(self.tables)
        ]
        return self.build(*sources).with_consistency("strong")

    def answer(self, *tables: list[Row]) -> Counter:
        found = self.meaning(*(History((0, INF, t) for t in table) for table in tables))
        assert all((e.vs, e.ve) == (0, INF) for e in found)
        return Counter(e.payload for e in found)


def subsets(names: list[str]) -> list[list[str]]:
    """A pattern may be about any value, so a punctuation may be about fewer columns."""
    return [list(chosen) for size in range(1, len(names) + 1) for chosen in combinations(names, size)]


def same_hour(p: Row, q: Row) -> bool:
    return p.hour == q.hour


def merge(p: Row, q: Row | None) -> Row:
    return p.replace(**q) if q else p.replace(phone=None)


QUERIES = {
    "where": Query(lambda s: s.where(pl.col("hour") <= 1), lambda h: ref.select(h, lambda p: p.hour <= 1), ROW),
    "select": Query(lambda s: s.select("hour"), lambda h: ref.project(h, lambda p: p.pick("hour")), ("hour",)),
    "distinct": Query(lambda s: s.distinct(), ref.distinct, ROW),
    "group_by": Query(
        lambda s: s.group_by("zone").agg(n=cedr.count(), last=cedr.max("hour")),
        lambda h: ref.aggregate(h, by=["zone"], n=ref.count(), last=ref.max_("hour")),
        ("zone",),
    ),
    "top_k": Query(
        lambda s: s.group_by("zone").top_k(1, by="hour"),
        lambda h: ref.top_k(h, 1, lambda p: p.hour, by=lambda p: p.zone),
        ("zone",),
    ),
    "union": Query(lambda s, t: s.union(t), ref.union, ("hour",), (ROW, ROW), in_order=True),
    "difference": Query(lambda s, t: s.difference(t), ref.difference, ("hour",), (ROW, ROW)),
    "intersect": Query(lambda s, t: s.intersect(t), ref.intersect, ("hour",), (ROW, ROW)),
    "coalesce": Query(lambda s: s.coalesce(), ref.coalesce, ROW),
    "windows": Query(lambda s: s.sliding(INF).where(pl.col("zone") >= 0), lambda h: ref.sliding(h, INF), ROW),
    "outages": Query(
        lambda s, t, u: s.union(t).distinct().difference(u),
        lambda h, g, k: ref.difference(ref.distinct(ref.union(h, g)), k),
        ("hour",),
        (ROW, ROW, ROW),
        in_order=True,
    ),
    "join": Query(
        lambda s, t: s.join(t, on="hour"),
        lambda h, g: ref.inner_join(h, g, same_hour, merge),
        ("hour",),
        (ROW, CALL),
    ),
    "semi join": Query(
        lambda s, t: s.join(t, on="hour", how="semi"),
        lambda h, g: ref.semi_join(h, g, same_hour),
        ("hour",),
        (ROW, CALL),
    ),
    "left join": Query(
        lambda s, t: s.join(t, on="hour", how="left"),
        lambda h, g: ref.join(h, g, same_hour, "left", merge),
        ("hour",),
        (ROW, CALL),
    ),
    "pattern": Query(
        lambda s: cedr.query("EVENT found WHEN s0 x WHERE x.hour <= 1 OUTPUT x.zone AS zone, x.hour AS hour", s),
        lambda h: ref.select(h, lambda p: p.hour <= 1),
        ROW,
    ),
    "anti join": Query(
        lambda s, t: s.join(t, on="hour", how="anti"),
        lambda h, g: ref.anti_join(h, g, same_hour),
        ("hour",),
        (ROW, CALL),
    ),
}


def emitted_by(query: cedr.Stream, arrivals) -> list:
    """The results after each slice."""
    return list(query.updates(iter([{f"s{port}": list(map(element, xs))} for port, xs in arrivals]), close=False))


def element(x):
    return x if isinstance(x, Punctuation) else Insert(0, INF, x)


def what_follows(seen, names) -> list[list[Row]]:
    """The possible tables: unchanged, with copies of a row, with one less, without all that may go, with all rows."""
    rows, punctuations = tups(seen), puncts(seen)
    allowed = set_nomatch_ts(sl.rows(names, (*sl.NAMED, sl.FRESH)), punctuations)
    may_go = set_nomatch_ts(rows, punctuations)
    less = [Counter(rows) - Counter([t]) for t in dict.fromkeys(may_go)] + [Counter(rows) - Counter(may_go)]
    more = [[*rows, *[t] * MOST_ROWS] for t in allowed]
    return [rows, *more, *(list(left.elements()) for left in less), [*rows, *allowed]]


def answers(query: Query, seen) -> list[Counter]:
    choices = [what_follows(s, names) for s, names in zip(seen, query.tables, strict=True)]
    tables = [tups(s) for s in seen]
    alone = [[*tables[:i], table, *tables[i + 1 :]] for i, possible in enumerate(choices) for table in possible]
    together = [[possible[end] for possible in choices] for end in (-1, -2)]
    return [query.answer(*chosen) for chosen in [*alone, *together]]


def check(query: Query, about, arrivals, complete: bool) -> None:
    results = emitted_by(query.over(about), arrivals)
    validate([e for result in results for e in result.elements()])
    seen: list[list] = [[] for _ in query.tables]
    for (port, xs), result in zip(arrivals, results, strict=True):
        seen[port] += xs
        emitted = Counter(e.payload for e in result.history())
        assert all((e.vs, e.ve) == (0, INF) for e in result.history())
        possible = answers(query, seen)
        for answer in possible:
            assert emitted <= answer, f"{emitted - answer} was emitted after {seen} and may turn out wrong"
        if complete:
            certain = reduce(Counter.__and__, possible)
            if query.in_order:
                certain = Counter(t for t in certain.elements() if all(set_match(t, puncts(s)) for s in seen))
            assert certain <= emitted, f"{certain - emitted} was kept back after {seen} and is certain"


@st.composite
def sliced_tables(draw, query: Query, about) -> list[tuple[int, list]]:
    """Slices of all tables, in turn at random."""
    tables = [
        draw(sl.lists(names, [name for name in about if name in names], size=MOST_ROWS)) for names in query.tables
    ]
    return [(port, xs) for port, xs in draw(arrivals_of(tables)) if xs]


@pytest.mark.parametrize("name", QUERIES)
@given(drawn=st.data())
def test_a_query_is_faithful_and_proper(name, drawn):
    query = QUERIES[name]
    others = [names for names in (["zone"], ["hour"], ROW) if all(set(names) <= set(t) for t in query.tables)]
    about = drawn.draw(st.sampled_from([query.about, *others]))
    arrivals = drawn.draw(sliced_tables(query, about))
    check(query, about, arrivals, complete=about == query.about)


@given(sl.sliced(("n", "tag"), about=["n"]))
def test_sort_emits_what_the_iterator_of_the_paper_emits(slices):
    query = (
        cedr.source("s0", {"n": int, "tag": int}, progress=cedr.Progress(promises="n"))
        .sort("n")
        .with_consistency("strong")
    )
    slices = [xs for xs in slices if xs]
    results = emitted_by(query, [(0, xs) for xs in slices])
    expected = [tups(out) for out in punctuated.unary(punctuated.sort("n", MIN), slices)]
    assert [[e.payload for e in data(result.elements())] for result in results] == expected
