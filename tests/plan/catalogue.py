"""Queries as users write them, each with what it means on canonical histories. One suite runs them everywhere."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import polars as pl
from hypothesis import settings
from hypothesis import strategies as st
from random_patterns import engine_ids
from storage.through_bytes import through_bytes

import cedr
from cedr import automata
from cedr import reference as ref
from cedr.api import source_of_keys
from cedr.columnar.chunk import Chunk
from cedr.plan.fragment import fragment_of
from cedr.plan.nodes import Match
from cedr.plan.nodes.level import Level
from cedr.plan.optimizer import RULES
from cedr.plan.patterns.tree import (
    AtLeast,
    AtMost,
    CorrelationKey,
    EventType,
    Not,
    Predicate,
    Sequence,
    Unless,
)
from cedr.reference import automata as ra
from cedr.reference import patterns as rp
from cedr.runtime.engine import Engine
from cedr.stream import Stream
from cedr.temporal import History, Interval, Row
from cedr.testing import rows

few = settings(max_examples=settings.default.max_examples // 4)
"""For suites that run over all queries: a share of what a law gets."""

SCHEMA = {"m": pl.Int64, "v": pl.Int64}
payloads = rows(m=st.integers(0, 1), v=st.one_of(st.none(), st.integers(0, 3)))


def a(**options) -> Stream:
    return source_of_keys("a", SCHEMA, **options)


def b(**options) -> Stream:
    return source_of_keys("b", SCHEMA, **options)


class Query(NamedTuple):
    build: Callable[..., Stream]
    oracle: Callable[..., History]
    infinite: bool = True
    """Whether events without end may come in."""

    @property
    def ports(self) -> int:
        return self.build.__code__.co_argcount

    def stream(self, **options) -> Stream:
        return self.build(*(source(**options) for source in (a, b)[: self.ports]))


def big(p) -> bool:
    return p.v is not None and p.v > 1


def same_m(p, q) -> bool:
    return p.m == q.m


def pair(p, q) -> Row:
    return Row(m=(p or q).m, v=p.v if p else None, v_right=q.v if q else None)


def by_m(p):
    return p.m


STATELESS = {
    "where": Query(lambda a: a.where(pl.col("v") > 1), lambda h: ref.select(h, big)),
    "select": Query(
        lambda a: a.select("m", w=pl.col("v") + 1),
        lambda h: ref.project(h, lambda p: Row(m=p.m, w=None if p.v is None else p.v + 1)),
    ),
    "with_columns": Query(
        lambda a: a.with_columns(v=pl.col("v").fill_null(9), w=pl.col("m") * 2).where("v > 1"),
        lambda h: ref.select(ref.project(h, lambda p: Row(m=p.m, v=9 if p.v is None else p.v, w=p.m * 2)), big),
    ),
    "windows": Query(
        lambda a: a.hopping(6, 3, 1).where(pl.col("v") > 1).moving(4).select("v"),
        lambda h: ref.project(ref.moving(ref.hopping(ref.select(h, big), 6, 3, 1), 4), lambda p: Row(v=p.v)),
    ),
    "tumbling, inserts": Query(lambda a: a.tumbling(5).inserts(), lambda h: ref.inserts(ref.tumbling(h, 5))),
    "deletes": Query(lambda a: a.sliding(4).deletes(), lambda h: ref.deletes(ref.sliding(h, 4))),
    "shift": Query(
        lambda a: a.moving(5).shift(-3),
        lambda h: ref.alter_lifetime(ref.moving(h, 5), start=lambda e: e.vs - 3),
    ),
    "slice": Query(
        lambda a: a.slice(occurrence=(4, 12), valid=(None, 10)).where(pl.col("v") > 1).moving(5),
        lambda h: ref.moving(
            ref.slice_valid(ref.slice_occurrence(ref.select(h, big), Interval(4, 12)), Interval(-99, 10)), 5
        ),
    ),
    "alter_lifetime": Query(
        lambda a: a.alter_lifetime(
            start=pl.col("vs") * 2, duration=pl.min_horizontal("length", pl.lit(7)), progress=pl.col("t") * 2 - 7
        ),
        lambda h: ref.alter_lifetime(h, lambda e: e.vs * 2, lambda e: min(e.lifetime.length, 7)),
    ),
    "alter_lifetime of a fixed length": Query(
        lambda a: a.alter_lifetime(start=pl.col("vs") // 3 * 3, duration=5),
        lambda h: ref.alter_lifetime(h, lambda e: e.vs // 3 * 3, lambda e: 5),
    ),
    "chop": Query(lambda a: a.chop(4, 1), lambda h: ref.chop(h, 4, 1), infinite=False),
    "union": Query(
        lambda a, b: a.sliding(3).union(b).where(pl.col("m") == 1),
        lambda g, h: ref.select(ref.union(ref.sliding(g, 3), h), by_m),
    ),
}

STATEFUL = {
    "aggregate": Query(
        lambda a: a.where(pl.col("v") > 0).sliding(6).group_by("m").agg(n=cedr.count(), s=cedr.sum("v")),
        lambda h: ref.aggregate(
            ref.sliding(ref.select(h, lambda p: (p.v or 0) > 0), 6), by=["m"], n=ref.count(), s=ref.sum_("v")
        ),
    ),
    "agg without group": Query(
        lambda a: a.agg(
            n=cedr.count("v"),
            lo=cedr.min("v"),
            hi=cedr.max("v"),
            mid=cedr.median("v"),
            kinds=cedr.count_distinct("v"),
            usual=cedr.mode("v"),
        ),
        lambda h: ref.aggregate(
            h,
            n=ref.count("v"),
            lo=ref.min_("v"),
            hi=ref.max_("v"),
            mid=ref.quantile(0.5)("v"),
            kinds=ref.count_distinct("v"),
            usual=ref.mode("v"),
        ),
    ),
    "where on a group": Query(
        lambda a: a.group_by("m").agg(n=cedr.count(), s=cedr.sum("v")).where((pl.col("m") == 1) & (pl.col("n") > 1)),
        lambda h: ref.select(
            ref.aggregate(h, by=["m"], n=ref.count(), s=ref.sum_("v")), lambda p: p.m == 1 and p.n > 1
        ),
    ),
    "aggregate of an aggregate": Query(
        lambda a: a.tumbling(4).group_by("m").agg(n=cedr.count(), s=cedr.sum("v")).agg(top=cedr.max("n")),
        lambda h: ref.aggregate(
            ref.aggregate(ref.tumbling(h, 4), by=["m"], n=ref.count(), s=ref.sum_("v")), top=ref.max_("n")
        ),
    ),
    "group_by an expression": Query(
        lambda a: a.group_by(odd=pl.col("m") + 1).agg(n=cedr.count()),
        lambda h: ref.aggregate(ref.project(h, lambda p: Row(p, odd=p.m + 1)), by=["odd"], n=ref.count()),
    ),
    "top_k": Query(
        lambda a: a.group_by("m").top_k(1, by="v").where(pl.col("m") == 0),
        lambda h: ref.select(ref.top_k(h, 1, lambda p: p.v, by_m), lambda p: p.m == 0),
    ),
    "distinct": Query(lambda a: a.distinct().where(pl.col("v") > 1), lambda h: ref.select(ref.distinct(h), big)),
    "coalesce": Query(lambda a: a.select("m").coalesce(), lambda h: ref.coalesce(ref.project(h, lambda p: Row(m=p.m)))),
    "difference": Query(
        lambda a, b: a.difference(b).where(pl.col("v") > 1), lambda g, h: ref.select(ref.difference(g, h), big)
    ),
    "difference by key": Query(lambda a, b: a.difference(b, by="m"), lambda g, h: ref.difference(g, h, by_m)),
    "intersect": Query(lambda a, b: a.intersect(b), ref.intersect),
    "join": Query(
        lambda a, b: a.join(b, on="m").where((pl.col("v") > 1) & (pl.col("m") == 1)).select("m", "v_right"),
        lambda g, h: ref.project(
            ref.select(ref.join(g, h, same_m, combine=pair), lambda p: big(p) and p.m == 1),
            lambda p: Row(m=p.m, v_right=p.v_right),
        ),
    ),
    "join where": Query(
        lambda a, b: a.join(b, on="m", where=pl.col("v") <= pl.col("v_right")),
        lambda g, h: ref.join(g, h, lambda p, q: p.m == q.m and None not in (p.v, q.v) and p.v <= q.v, combine=pair),
    ),
    "left join": Query(
        lambda a, b: a.join(b, on="m", how="left").where(pl.col("v") > 1),
        lambda g, h: ref.join(ref.select(g, big), h, same_m, "left", pair),
    ),
    "full join": Query(
        lambda a, b: a.join(b, on="m", how="full").where(pl.col("m") == 1),
        lambda g, h: ref.select(ref.join(g, h, same_m, "full", pair), by_m),
    ),
    "semi join": Query(
        lambda a, b: a.join(b, on="m", how="semi").where(pl.col("m") == 1),
        lambda g, h: ref.select(ref.semi_join(g, h, same_m), by_m),
    ),
    "anti join": Query(
        lambda a, b: a.join(b, on="m", how="anti").where(pl.col("v") > 1),
        lambda g, h: ref.select(ref.anti_join(g, h, same_m), big),
    ),
    "self join": Query(
        lambda a: a.sliding(4).join(a.where(pl.col("v") > 1), on="m"),
        lambda h: ref.join(ref.sliding(h, 4), ref.select(h, big), same_m, combine=pair),
    ),
    "diamond": Query(
        lambda a: diamond(a.group_by("m").agg(n=cedr.count())),
        lambda h: ref.join(
            counts := ref.aggregate(h, by=["m"], n=ref.count()),
            ref.select(counts, lambda p: p.n > 1),
            same_m,
            combine=lambda p, q: Row(m=p.m, n=p.n, n_right=q.n),
        ),
    ),
    "session": Query(
        lambda a: a.session(4, by="m").where(pl.col("m") == 1).select("m"),
        lambda h: ref.project(ref.select(ref.session(h, 4, by_m), by_m), lambda p: Row(m=p.m)),
    ),
    "sort": Query(lambda a: a.where(pl.col("v") > 0).sort("v", "m"), lambda h: ref.select(h, lambda p: (p.v or 0) > 0)),
    "clip": Query(
        lambda a, b: a.clip(b, on="m").where(pl.col("v") > 1), lambda g, h: ref.select(ref.clip(g, h, same_m), big)
    ),
    "union of both kinds": Query(
        lambda a, b: a.select("m").union(b.group_by("m").agg(n=cedr.count()).select("m")).distinct(),
        lambda g, h: ref.distinct(
            ref.union(
                ref.project(g, lambda p: Row(m=p.m)),
                ref.project(ref.aggregate(h, by=["m"], n=ref.count()), lambda p: Row(m=p.m)),
            )
        ),
    ),
    "align, finalize": Query(
        lambda a: a.finalize().align(3).where(pl.col("v") > 1).agg(n=cedr.count()),
        lambda h: ref.aggregate(ref.select(h, big), n=ref.count()),
    ),
}


def matches(pattern, where, outputs, *streams: Stream) -> Stream:
    expressions = tuple((name, pl.col(column)) for name, column in outputs.items())
    return Stream(Match(tuple(s.plan for s in streams), pattern, where, expressions))


def found(pattern, where, output):
    """The oracle's side: event type A is all of a, B all of b; of one stream, A is what is big and B the rest."""
    query = rp.ReferencePatternQuery(pattern, where, output, engine_ids(**SCHEMA))

    def run(*histories: History) -> History:
        if len(histories) == 1:
            histories = (
                ref.select(histories[0], big),
                ref.select(histories[0], lambda p: p.v is not None and p.v <= 1),
            )
        return query.run(dict(zip("AB", histories, strict=True)))

    return run


A, B = EventType("A", 0, var="x"), EventType("B", 1, var="y")
BIG, SMALL = EventType("A", 0, pl.col("v") > 1, var="x"), EventType("B", 0, pl.col("v") <= 1, var="y")
RA, RB = rp.ReferenceEventType("A", "x"), rp.ReferenceEventType("B", "y")
SAME_M = Predicate(("x", "y"), pl.col("x.m") == pl.col("y.m"))
R_SAME_M = rp.ReferencePredicate("x y", lambda x, y: x.payload.m == y.payload.m)

PATTERNS = {
    "sequence": Query(
        lambda a, b: (
            matches(
                Sequence((A, B), 6), (CorrelationKey("m"),), {"k": "x.m", "v": "x.v", "w": "y.v", "t": "y.Vs"}, a, b
            )
            .where(pl.col("w") > 0)
            .select("k", "v", "t")
        ),
        lambda g, h: ref.project(
            ref.select(
                found(
                    rp.SEQUENCE(RA, RB, w=6),
                    (rp.ReferenceCorrelationKey("m"),),
                    lambda i: Row(k=i.bound["x"].payload.m, v=i.bound["x"].payload.v, w=i.bound["y"].payload.v, t=i.vs),
                )(g, h),
                lambda p: (p.w or 0) > 0,
            ),
            lambda p: Row(k=p.k, v=p.v, t=p.t),
        ),
    ),
    "unless": Query(
        lambda a: matches(Unless(BIG, SMALL, 4), (SAME_M,), {"m": "x.m", "v": "x.v"}, a),
        found(rp.UNLESS(RA, RB, w=4), (R_SAME_M,), lambda i: i.payload),
    ),
    "sequences counted": Query(
        lambda a: matches(Sequence((BIG, SMALL), 6), (SAME_M,), {"k": "y.m"}, a).group_by("k").agg(n=cedr.count()),
        lambda h: ref.aggregate(
            found(rp.SEQUENCE(RA, RB, w=6), (R_SAME_M,), lambda i: Row(k=i.payload[1].m))(h), by=["k"], n=ref.count()
        ),
    ),
    "first consume": Query(
        lambda a, b: matches(
            Sequence((replace(A, selection="FIRST", consumption="CONSUME"), B), 6),
            (CorrelationKey("m"),),
            {"m": "x.m", "v": "x.v", "w": "y.v"},
            a,
            b,
        ),
        found(
            rp.SEQUENCE(rp.ReferenceEventType("A", "x", "FIRST", "CONSUME"), RB, w=6),
            (rp.ReferenceCorrelationKey("m"),),
            lambda i: Row(m=i.payload[0].m, v=i.payload[0].v, w=i.payload[1].v),
        ),
    ),
    "atmost": Query(
        lambda a, b: matches(AtMost(2, (A, B), 5), (), {"t": "Vs", "r": "Rt"}, a, b),
        found(rp.ATMOST(2, RA, RB, w=5), (), lambda i: Row(t=i.vs, r=i.rt)),
    ),
    "not": Query(
        lambda a, b: matches(
            Not(Sequence((A, replace(B, var="z")), 7), replace(B, var="y")),
            (SAME_M, Predicate(("y", "z"), pl.col("y.v") < pl.col("z.v"))),
            {"m": "x.m", "w": "z.m"},
            a,
            b,
        ),
        found(
            rp.NOT(RB, rp.SEQUENCE(RA, rp.ReferenceEventType("B", "z"), w=7)),
            (
                R_SAME_M,
                rp.ReferencePredicate(
                    "y z", lambda y, z: None not in (y.payload.v, z.payload.v) and y.payload.v < z.payload.v
                ),
            ),
            lambda i: Row(m=i.payload[0].m, w=i.payload[1].m),
        ),
    ),
    "any": Query(
        lambda a, b: matches(AtLeast(1, (A, B), 1), (CorrelationKey("m"),), {"v": "x.v", "w": "y.v"}, a, b),
        found(
            rp.ANY(RA, RB),
            (rp.ReferenceCorrelationKey("m"),),
            lambda i: Row({n: i.bound[x].payload.v if x in i.bound else None for n, x in (("v", "x"), ("w", "y"))}),
        ),
    ),
}
LADDER = [("S", "low", "1"), ("1", "low", "1"), ("1", "rise", "2"), ("2", "rise", "2"), ("2", "low", "F")]
RISES = automata.step(pl.col("v") > pl.col("r"), r=pl.col("v"))
R_LOW = ra.ReferenceStep(lambda p, s: p.v is not None and p.v <= 1)
R_RISES = ra.ReferenceStep(lambda p, s: p.v is not None and p.v > s["r"], lambda p, s: {"r": p.v})

AUTOMATA = {
    "automaton": Query(
        lambda a: automata.automaton(
            a,
            LADDER,
            start="S",
            final="F",
            steps={"low": pl.col("v") <= 1, "rise": RISES},
            registers={"r": 0},
            by="m",
            window=12,
        ).where(pl.col("m") == 1),
        lambda h: ref.select(
            ra.automaton(
                h,
                LADDER,
                start="S",
                final=["F"],
                steps={"low": R_LOW, "rise": R_RISES},
                registers={"r": 0},
                by=["m"],
                window=12,
            ),
            by_m,
        ),
    ),
    "automaton with a table that changes": Query(
        lambda a, b: automata.automaton(
            a, b.select(source="m", symbol="v", target=1 - pl.col("m")), start=0, symbol="v", by="m"
        ),
        lambda g, h: ra.automaton(
            g,
            ref.project(h, lambda p: Row(source=p.m, symbol=p.v, target=1 - p.m)),
            start=0,
            symbol="v",
            by=["m"],
        ),
    ),
    "regex": Query(
        lambda a: automata.regex(
            "low+ rise{1,2} | rise", a, low=pl.col("v") <= 1, rise=RISES, registers={"r": 0}, by="m"
        ),
        lambda h: ra.regex(
            ("or", ("then", ("repeat", "low", 1, None), ("repeat", "rise", 1, 2)), "rise"),
            h,
            steps={"low": R_LOW, "rise": R_RISES},
            registers={"r": 0},
            by=["m"],
        ),
    ),
}
STATEFUL |= AUTOMATA
STATEFUL |= {f"pattern {name}": query for name, query in PATTERNS.items()}

QUERIES = {**STATELESS, **STATEFUL}


def diamond(counts: Stream) -> Stream:
    return counts.join(counts.where(pl.col("n") > 1), on="m")


class AsOperator:
    """An engine with numbered ports, so that it can be checked like an operator."""

    def __init__(self, stream: Stream, rules=RULES) -> None:
        self.engine = Engine(fragment_of(Level(stream.plan), rules))

    def process(self, port: int, chunk: Chunk) -> Chunk:
        return self.engine.push("ab"[port], chunk)

    def snapshot(self):
        return through_bytes(self.engine.snapshot())

    def restore(self, state) -> None:
        self.engine.restore(state)


def count_apart(a: Stream) -> Stream:
    """The counts of each m, one query for each."""
    return a.where("m = 0").group_by("m").agg(n=cedr.count()).union(a.where("m = 1").group_by("m").agg(n=cedr.count()))


def count_as_sum(a: Stream) -> Stream:
    """The same, computed from a sum of ones."""
    return a.select("m", one=pl.lit(1, dtype=pl.Int64)).group_by("m").agg(n=cedr.sum("one"))


MERGES = {
    "merge": Query(lambda a: a.merge(a.select("m", "v")), lambda h: h),
    "merge of plans": Query(
        lambda a: a.group_by("m").agg(n=cedr.count()).merge(*(plan(a) for plan in (count_apart, count_as_sum))),
        lambda h: ref.aggregate(h, by=["m"], n=ref.count()),
    ),
    "merge of cleansed": Query(
        lambda a: a.align(flavour="perfect").merge(a.select("m", "v").align(flavour="perfect")), lambda h: h
    ),
    "merge by": Query(
        lambda a: a.with_columns(copy=pl.lit("x")).union(a.with_columns(copy=pl.lit("y"))).merge_by("copy"), lambda h: h
    ),
    "merge of half frozen": Query(lambda a: a.distinct().merge(a.distinct(), policy="half-frozen"), ref.distinct),
}
"""Copies of one stream, made by different plans."""
