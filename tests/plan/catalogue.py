"""Queries as users write them, each with what it means on canonical histories. One suite runs them everywhere."""

import pickle
from collections.abc import Callable
from typing import NamedTuple

import polars as pl
from hypothesis import settings
from hypothesis import strategies as st

from cedr import api
from cedr import reference as ref
from cedr.columnar.chunk import Chunk
from cedr.plan.consistency import Level
from cedr.plan.optimizer import RULES
from cedr.plan.physical import fragment_of
from cedr.runtime.engine import Engine
from cedr.stream import Stream
from cedr.temporal import History, Row
from cedr.testing import rows

few = settings(max_examples=settings.default.max_examples // 4)
"""For suites that run over all queries: a share of what a law gets."""

SCHEMA = {"m": pl.Int64, "v": pl.Int64}
payloads = rows(m=st.integers(0, 1), v=st.one_of(st.none(), st.integers(0, 3)))


def a(**options) -> Stream:
    return api.source("a", SCHEMA, **options)


def b(**options) -> Stream:
    return api.source("b", SCHEMA, **options)


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
        lambda a: a.where(pl.col("v") > 0).sliding(6).group_by("m").agg(n=api.count(), s=api.sum("v")),
        lambda h: ref.aggregate(
            ref.sliding(ref.select(h, lambda p: (p.v or 0) > 0), 6), by=["m"], n=ref.count(), s=ref.sum_("v")
        ),
    ),
    "agg without group": Query(
        lambda a: a.agg(n=api.count("v"), lo=api.min("v"), hi=api.max("v"), mid=api.median("v")),
        lambda h: ref.aggregate(h, n=ref.count("v"), lo=ref.min_("v"), hi=ref.max_("v"), mid=ref.quantile(0.5)("v")),
    ),
    "where on a group": Query(
        lambda a: a.group_by("m").agg(n=api.count(), s=api.sum("v")).where((pl.col("m") == 1) & (pl.col("n") > 1)),
        lambda h: ref.select(
            ref.aggregate(h, by=["m"], n=ref.count(), s=ref.sum_("v")), lambda p: p.m == 1 and p.n > 1
        ),
    ),
    "aggregate of an aggregate": Query(
        lambda a: a.tumbling(4).group_by("m").agg(n=api.count(), s=api.sum("v")).agg(top=api.max("n")),
        lambda h: ref.aggregate(
            ref.aggregate(ref.tumbling(h, 4), by=["m"], n=ref.count(), s=ref.sum_("v")), top=ref.max_("n")
        ),
    ),
    "group_by an expression": Query(
        lambda a: a.group_by(odd=pl.col("m") + 1).agg(n=api.count()),
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
        lambda a: diamond(a.group_by("m").agg(n=api.count())),
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
    "clip": Query(
        lambda a, b: a.clip(b, on="m").where(pl.col("v") > 1), lambda g, h: ref.select(ref.clip(g, h, same_m), big)
    ),
    "union of both kinds": Query(
        lambda a, b: a.select("m").union(b.group_by("m").agg(n=api.count()).select("m")).distinct(),
        lambda g, h: ref.distinct(
            ref.union(
                ref.project(g, lambda p: Row(m=p.m)),
                ref.project(ref.aggregate(h, by=["m"], n=ref.count()), lambda p: Row(m=p.m)),
            )
        ),
    ),
    "align, finalize": Query(
        lambda a: a.finalize().align(3).where(pl.col("v") > 1).agg(n=api.count()),
        lambda h: ref.aggregate(ref.select(h, big), n=ref.count()),
    ),
}

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
        return pickle.loads(pickle.dumps(self.engine.snapshot()))

    def restore(self, state) -> None:
        self.engine.restore(state)
