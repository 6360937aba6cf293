"""Queries in stages: how many there are and why, and that many shards together give the oracle's answer."""

import os
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_check import check_against_oracle, runs
from plan import catalogue
from plan.catalogue import MERGES, QUERIES, SCHEMA, Query, few, payloads

import cedr
from cedr import api, graphs
from cedr import reference as ref
from cedr.automata import automaton
from cedr.columnar.chunk import Chunk, concat, empty
from cedr.columnar.sharding import shards_of, split
from cedr.plan.explain import stages
from cedr.plan.nodes.level import Level
from cedr.plan.optimizer import RULES, optimize
from cedr.plan.partial_aggregates import aggregate_in_parts
from cedr.plan.partitioning import StagedPlan, staged
from cedr.plan.tree import tree
from cedr.runtime.engine import Engine
from cedr.stream import Stream
from cedr.temporal import INF, MIDDLE, MIN, QueryError

# --- a cluster in this process -------------------------------------------------------------------------------------
#
#   source ─ packer: path fragment ─ split ─┬─ shard 0: stage 1 ─ split ─┬─ shard 0: stage 2 ─┬─ answer
#                                           └─ shard 1: stage 1 ─ split ─┴─ shard 1: stage 2 ─┘


class Cluster:
    """A staged plan on P shards, made to look like an operator. `batch` arrivals go through the stages at once."""

    def __init__(self, plan: StagedPlan, shards: int, packers: int = 1, batch: int = 1) -> None:
        self.plan, self.shards, self.packers, self.batch = plan, shards, packers, batch
        self.paths = [Engine(path.fragment) for path in plan.paths]
        self.engines = [[Engine(stage.fragment) for _ in range(shards)] for stage in plan.stages]
        self.ctis: dict[int, list[int]] = {}
        """How far each shard is with each exchange; 0 is the answer."""
        self.waiting: list[tuple[str, Chunk]] = []

    def process(self, port: int, chunk: Chunk) -> Chunk:
        self.waiting.append(("ab"[port], chunk))
        if len(self.waiting) < self.batch and chunk.cti != INF:
            return empty(self.plan.schema)
        arrived, self.waiting = self.waiting, []
        return self.run({name: concat([c for n, c in arrived if n == name]) for name, _ in arrived})

    def run(self, arrived: dict[str, Chunk]) -> Chunk:
        inboxes = [[{} for _ in range(self.shards)] for _ in self.plan.stages]
        for path, engine in zip(self.plan.paths, self.paths, strict=True):
            if path.source in arrived:
                rows, cti = self.pack(path, arrived[path.source].rows), arrived[path.source].cti
                progress = engine.push(path.source, empty(path.fragment.sources[path.source].schema, cti)).cti
                self.deliver(inboxes, path.exchange, rows, progress)
        for stage, engines in zip(self.plan.stages, self.engines, strict=True):
            outputs = [engine.feed(inbox) for engine, inbox in zip(engines, inboxes[stage.number - 1], strict=True)]
            for origin, exchange in stage.outputs:
                rows, progress = self.gather(exchange.number, exchange.schema, [t.get(origin) for t in outputs])
                self.deliver(inboxes, exchange, rows, progress)
        return Chunk(*self.gather(0, self.plan.schema, [t.get(stage.fragment.output) for t in outputs]))

    def pack(self, path, rows: pl.DataFrame) -> pl.DataFrame:
        """What packers make of their shares, in no order."""
        shares = [rows.gather_every(self.packers, n) for n in reversed(range(self.packers))]
        return pl.concat([Engine(path.fragment).push(path.source, Chunk(share)).rows for share in shares])

    def gather(self, number: int, schema, chunks: list[Chunk | None]) -> tuple[pl.DataFrame, int]:
        """The rows of all shards, and the progress all of them have made, if it is new."""
        found = [empty(schema) if c is None else c for c in chunks]
        before = self.ctis.get(number, [MIN] * self.shards)
        self.ctis[number] = [max(t, c.cti) for t, c in zip(before, found, strict=True)]
        now = min(self.ctis[number])
        return concat(found).rows, now if now > min(before) else MIN

    def deliver(self, inboxes, exchange, rows: pl.DataFrame, cti: int) -> None:
        parts = split(rows, shards_of(rows, exchange.keys, self.shards), self.shards)
        parts = [rows] * self.shards if exchange.broadcast else parts
        for inbox, part in zip(inboxes[exchange.stage - 1], parts, strict=True):
            inbox[exchange.name] = Chunk(part, cti)

    def snapshot(self):
        engines = [[e.snapshot() for e in engines] for engines in (self.paths, *self.engines)]
        return engines, self.ctis, [(name, c.rows, c.cti, c.promises) for name, c in self.waiting]

    def restore(self, state) -> None:
        saved, self.ctis, waiting = state
        self.waiting = [(name, Chunk(rows, cti, promises=promises)) for name, rows, cti, promises in waiting]
        for engines, states in zip((self.paths, *self.engines), saved, strict=True):
            for engine, of_engine in zip(engines, states, strict=True):
                engine.restore(of_engine)


TWO_STAGES = {
    "two groups": Query(
        lambda a: a.group_by("m", "v").agg(n=cedr.count()).group_by("n").agg(k=cedr.count()),
        lambda h: ref.aggregate(ref.aggregate(h, by=["m", "v"], n=ref.count()), by=["n"], k=ref.count()),
    ),
    "late partner": Query(
        lambda a, b: a.group_by("m").agg(n=cedr.count()).group_by("n").agg(m=cedr.max("m")).join(b.finalize(), on="m"),
        lambda g, h: ref.join(
            ref.aggregate(ref.aggregate(g, by=["m"], n=ref.count()), by=["n"], m=ref.max_("m")),
            h,
            lambda p, q: p.m == q.m,
            combine=lambda p, q: p.replace(v=q.v),
        ),
    ),
    "all partial": Query(
        lambda a: a.agg(n=cedr.count(), k=cedr.count("v"), s=cedr.sum("v"), lo=cedr.min("v"), avg=cedr.avg("v")),
        lambda h: ref.aggregate(
            h, n=ref.count(), k=ref.count("v"), s=ref.sum_("v"), lo=ref.min_("v"), avg=ref.avg("v")
        ),
    ),
    "top_k with rank": Query(
        lambda a: a.top_k(2, by="v", rank="place").select("v", "place"),
        lambda h: ref.project(ref.top_k(h, 2, lambda p: p.v, rank="place"), lambda p: p.pick("v", "place")),
    ),
    "join of unlike groups": Query(
        lambda a, b: (
            a.group_by("m").agg(v=cedr.max("v")).join(b.group_by("v").agg(m=cedr.max("m")), on=["m", "v"], how="semi")
        ),
        lambda g, h: ref.semi_join(
            ref.aggregate(g, by=["m"], v=ref.max_("v")),
            ref.aggregate(h, by=["v"], m=ref.max_("m")),
            lambda p, q: p.m == q.m and p.v == q.v is not None,
        ),
    ),
    "union of unlike groups": Query(
        lambda a, b: (
            a.group_by("m", "v")
            .agg(n=cedr.count())
            .select("m", "v")
            .union(b.group_by("v").agg(m=cedr.max("m"), w=cedr.min("v")).select("m", v="w"))
            .distinct()
        ),
        lambda g, h: ref.distinct(
            ref.union(
                ref.project(ref.aggregate(g, by=["m", "v"], n=ref.count()), lambda p: p.pick("m", "v")),
                ref.project(ref.aggregate(h, by=["v"], m=ref.max_("m")), lambda p: p.pick("m", "v")),
            )
        ),
    ),
    "union of stages": Query(
        lambda a, b: (
            a.group_by("m")
            .agg(n=cedr.count())
            .group_by("n")
            .agg(m=cedr.max("m"))
            .select("m")
            .union(b.select("m"))
            .distinct()
        ),
        lambda g, h: ref.distinct(
            ref.union(
                ref.project(
                    ref.aggregate(ref.aggregate(g, by=["m"], n=ref.count()), by=["n"], m=ref.max_("m")),
                    lambda p: p.pick("m"),
                ),
                ref.project(h, lambda p: p.pick("m")),
            )
        ),
    ),
}
EVERYTHING = {**QUERIES, **MERGES, **TWO_STAGES}


@cache
def plan_of(name: str, latency: str, level: str, options: tuple) -> StagedPlan:
    stream = EVERYTHING[name].stream(**dict(options)).with_latency(latency)
    return staged(
        Level((stream.with_consistency(block=3) if level == "block" else stream.with_consistency(level)).plan)
    )


@pytest.mark.parametrize("name", EVERYTHING)
@few
@given(data=st.data())
def test_shards_together_give_the_oracles_answer(name, data):
    query = EVERYTHING[name]
    latency = data.draw(st.sampled_from(["perfect", "ordered", "eager"]))
    level = data.draw(st.sampled_from(["strong", "middle", "block"]))
    only_inserts = data.draw(st.booleans())
    plan = plan_of(name, latency, level, (("insert_only", only_inserts),))
    size = [data.draw(st.integers(1, most)) for most in (3, 2, 2)]
    options = {"infinite": query.infinite, "adjusts": query.infinite and not only_inserts}
    arrivals, restore_at = data.draw(runs(payloads, query.ports, max_size=5, **options))
    check_against_oracle(lambda: Cluster(plan, *size), query.oracle, arrivals, [SCHEMA] * query.ports, restore_at)


def test_sources_in_order_and_with_external_ctis_are_taken_as_they_come():
    """Tasks of Spark give no order, and the runtime turns external CTIs into ordinary ones."""
    stream = left(ordered=True, external_ctis=True).group_by("m").agg(n=cedr.count())
    plan = plan_for(stream.with_consistency("strong"))
    (declared,) = plan.sources.values()
    assert (declared.ordered, declared.external, declared.delay) == (True, True, None)
    (used,) = plan.paths[0].fragment.sources.values()
    assert (used.ordered, used.external, used.delay) == (False, False, 0)
    assert steps(plan) == [["Finalize", "Align", "Aggregate"]]
    assert plan_for(left(ordered=True, delay=5)).paths[0].fragment.sources["a"].delay == 5


# --- how many stages, and why --------------------------------------------------------------------------------------

left, right = catalogue.a, catalogue.b


def counts(stream: Stream, *by: str) -> Stream:
    return stream.group_by(*by).agg(n=cedr.count())


def how_many(stream: Stream) -> Stream:
    return stream.group_by("n").agg(k=cedr.count())


def plan_for(stream: Stream) -> StagedPlan:
    return staged(Level(stream.plan))


def steps(plan: StagedPlan) -> list[list[str]]:
    return [[step.name for step in stage.fragment.steps] for stage in plan.stages]


def exchanges(plan: StagedPlan) -> list[tuple]:
    """Where from, where to, and the keys, of all exchanges in their order."""
    found = [(path.source, path.exchange) for path in plan.paths]
    found += [(stage.number, exchange) for stage in plan.stages for _, exchange in stage.outputs]
    return [
        (origin, e.stage, "broadcast" if e.broadcast else e.keys)
        for origin, e in sorted(found, key=lambda f: f[1].number)
    ]


WIDE = {"a": pl.Int64, "b": pl.Int64, "c": pl.Int64, "l": pl.List(pl.Int64)}


def wide(name: str = "w") -> Stream:
    return api.source(name, WIDE)


def computed(stream: Stream) -> Stream:
    return stream.with_columns(x=pl.col("a") % 10)


CASES = {
    "groups of groups": lambda: counts(counts(wide(), "a", "b"), "a"),
    "groups of other groups": lambda: how_many(counts(wide(), "a")),
    "groups of groups, renamed": lambda: counts(counts(wide(), "a", "b").select(x="b", y="a"), "x"),
    "a computed key on the path": lambda: counts(computed(wide()), "x"),
    "a computed key after state": lambda: counts(computed(counts(wide(), "a")), "x"),
    "a computed key after state and a where": lambda: counts(computed(counts(wide(), "a").where(pl.col("n") > 1)), "x"),
    "where and windows keep keys": lambda: counts(counts(wide(), "a").where(pl.col("n") > 1).sliding(5), "a"),
    "join, then a group": lambda: counts(wide().join(wide("v"), on="a"), "b"),
    "join, then a group by one of its keys": lambda: counts(wide().join(wide("v"), on=["a", "b"]), "b"),
    "join of a group": lambda: counts(wide(), "b").join(wide("v"), on="b"),
    "join of a group, on more keys": lambda: wide("v").join(
        wide().group_by("b").agg(a=cedr.max("a")), on=["a", "b"], how="left"
    ),
    "join of groups in other orders": lambda: counts(wide(), "b", "a").join(counts(wide("v"), "a", "b"), on=["a", "b"]),
    "join of unlike groups": lambda: (
        wide().group_by("a").agg(b=cedr.max("b")).join(wide("v").group_by("b").agg(a=cedr.max("a")), on=["a", "b"])
    ),
    "join with renamed keys": lambda: counts(wide().join(wide("v"), left_on="a", right_on="b"), "a"),
    "join of stages": lambda: how_many(counts(wide(), "a")).join(wide("v"), left_on="n", right_on="a"),
    "join with an earlier stage": lambda: (
        wide().group_by("b").agg(a=cedr.max("a")).group_by("a").agg(k=cedr.count()).join(counts(wide("v"), "a"), on="a")
    ),
    "join without key": lambda: wide().join(wide("v").select("a")),
    "join of one shard with many": lambda: wide().group_by().agg(a=cedr.median("a")).join(wide("v"), on="a"),
    "self join": lambda: wide().join(wide().where(pl.col("b") > 1), on="a"),
    "a source joined with itself": lambda: wide().join(wide(), on="a"),
    "diamond": lambda: catalogue.diamond(counts(wide(), "a").select(m="a", n="n")),
    "diamond with different keys": lambda: both(counts(wide(), "a", "b")),
    "distinct": lambda: wide().distinct(),
    "distinct, then a group": lambda: counts(wide().select("a", "b", "c").distinct(), "c"),
    "difference and intersect": lambda: wide().difference(wide("v")).intersect(wide("u")),
    "nothing but lists": lambda: wide().select("l").distinct(),
    "group by a list": lambda: counts(wide(), "l"),
    "group by a list and more": lambda: counts(wide(), "l", "a"),
    "union, then a group": lambda: counts(wide().union(wide("v")), "a"),
    "union of groups": lambda: counts(counts(wide(), "a").union(counts(wide("v"), "a")), "a"),
    "union of unlike groups": lambda: counts(
        counts(wide(), "a").select("a").union(counts(wide("v"), "b").select(a="b")).union(wide("u").select("a")), "a"
    ),
    "union of groups with other keys": lambda: (
        counts(wide(), "a", "b")
        .select("a", "b")
        .union(wide("v").group_by("c").agg(a=cedr.max("a"), b=cedr.max("b")).select("a", "b"))
        .distinct()
    ),
    "union of differently spread rows": lambda: counts(
        counts(wide(), "b", "c").select(a="b").union(wide("u").select("a")), "a"
    ),
    "count of all": lambda: wide().agg(n=cedr.count()),
    "median of all": lambda: wide().agg(m=cedr.median("a")),
    "top_k of all": lambda: wide().top_k(3, by="a"),
    "session of all": lambda: wide().session(5),
    "clip": lambda: wide().clip(wide("v"), left_on="a", right_on="b"),
    "count of groups": lambda: counts(wide(), "a").agg(n=cedr.count()),
    "group of one shard": lambda: counts(wide().agg(a=cedr.median("a")), "a"),
    "without state": lambda: wide().where(pl.col("a") > 1).select("b"),
    "strong": lambda: how_many(counts(wide(), "a")).with_consistency("strong"),
    "loop": lambda: reach(wide()),
    "loop, strong": lambda: reach(wide()).with_consistency("strong"),
    "loop, then a group": lambda: counts(reach(wide()), "a"),
    "loop, then another group": lambda: counts(reach(wide()), "b"),
    "loop and its input": lambda: reach(wide()).union(wide().select("a", "b")),
    "loop over groups": lambda: reach(wide().group_by("a").agg(b=cedr.max("b"))),
    "loop over one row": lambda: reach(wide().agg(a=cedr.median("a"), b=cedr.median("b"))),
    "loop with groups next to it": lambda: (
        wide().select("a", "b").iterate(lambda loop: loop.join(counts(wide("v"), "a", "b"), on="b").select("a", b="n"))
    ),
    "loop joined on what it keeps": lambda: (
        wide()
        .select("a", "b")
        .iterate(lambda loop: loop.join(wide("v"), left_on=["a", "b"], right_on=["b", "a"]).select("a", b="c"))
    ),
    "loop joined in two ways": lambda: (
        wide()
        .select("a", "b")
        .iterate(lambda loop: loop.join(wide("v"), on="a").join(wide("v").select("b"), on="b").select("a", b="c"))
    ),
    "loop with itself": lambda: (
        wide().select("a", "b").iterate(lambda loop: loop.join(loop, on="a", suffix="2").select("a", b="b2"))
    ),
    "loop with itself, on the other column": lambda: (
        wide()
        .select("a", "b")
        .iterate(lambda loop: loop.join(loop, left_on="b", right_on="a").select("a", b="b_right"))
    ),
    "loop with rows added": lambda: (
        wide()
        .select("a", "b")
        .iterate(lambda loop: loop.join(wide("v"), on="b").select("a", b="c").union(wide("u").select("a", "b")))
    ),
    "loop with rows added that it joins": lambda: wide().select("a", "b").iterate(joined_and_added),
    "loop of the best": lambda: graphs.shortest_paths(wide(), start="a", end="b", length="c"),
    "loop of the best of all": lambda: graphs.connected_components(wide(), start="a", end="b"),
    "search trees": lambda: graphs.reachability(wide(), wide("v"), start="a", end="b", node="c", settled=True),
    "automaton with a table": lambda: automaton(
        wide(), api.source("t", {"source": str, "symbol": int, "target": str}), start="s", symbol="b", by="a"
    ),
}


def reach(edges: Stream) -> Stream:
    return graphs.reachability(edges, start="a", end="b")


def joined_and_added(loop: Stream) -> Stream:
    more = wide("v").select("a", "b")
    return loop.join(more, left_on="b", right_on="a").select("a", b="b_right").union(more)


def both(stream: Stream) -> Stream:
    return counts(stream, "a").select(x="a").union(counts(stream, "b").select(x="b"))


def test_golden():
    """`CEDR_WRITE_GOLDEN=1 pytest tests/plan/test_partitioning.py` writes it again."""
    path = Path(__file__).parent / "golden" / "stages.txt"
    parts = ["\n".join([title, *stages(Level(build().plan), RULES)]) for title, build in CASES.items()]
    text = "\n\n".join(parts) + "\n"
    if os.environ.get("CEDR_WRITE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize(
    ("case", "expected"),
    {
        "groups of groups": [("w", 1, ("a",))],
        "groups of groups, renamed": [("w", 1, ("b",))],
        "groups of other groups": [("w", 1, ("a",)), (1, 2, ("n",))],
        "a computed key on the path": [("w", 1, ("x",))],
        "a computed key after state": [("w", 1, ("a",)), (1, 2, ("x",))],
        "join, then a group": [("w", 1, ("a",)), ("v", 1, ("a",)), (1, 2, ("b",))],
        "join, then a group by one of its keys": [("w", 1, ("b",)), ("v", 1, ("b",))],
        "join of a group, on more keys": [("v", 1, ("b",)), ("w", 1, ("b",))],
        "join of groups in other orders": [("w", 1, ("a", "b")), ("v", 1, ("a", "b"))],
        "join with renamed keys": [("w", 1, ("a",)), ("v", 1, ("b",))],
        "join of stages": [("w", 1, ("a",)), (1, 2, ("n",)), ("v", 2, ("a",))],
        "join without key": [("w", 1, ()), ("v", 1, ())],
        "self join": [("w", 1, ("a",)), ("w", 1, ("a",))],
        "a source joined with itself": [("w", 1, ("a",))],
        "diamond": [("w", 1, ("a",))],
        "distinct": [("w", 1, ("a", "b", "c"))],
        "nothing but lists": [("w", 1, ())],
        "group by a list and more": [("w", 1, ("a",))],
        "count of all": [("w", 1, None), (1, 2, ())],
        "median of all": [("w", 1, ())],
        "top_k of all": [("w", 1, None), (1, 2, ())],
        "without state": [("w", 1, None)],
        "loop": [("w", 1, ("a",)), ("w", 1, "broadcast")],
        "loop, then a group": [("w", 1, ("a",)), ("w", 1, "broadcast")],
        "loop over groups": [("w", 1, ("a",)), (1, 2, ("a",)), (1, 2, "broadcast")],
        "loop over one row": [("w", 1, ())],
        "loop with groups next to it": [("w", 2, ("a",)), ("v", 1, ("a", "b")), (1, 2, "broadcast")],
        "loop joined on what it keeps": [("w", 1, ("a",)), ("v", 1, ("b",))],
        "loop joined in two ways": [("w", 1, ("a",)), ("v", 1, ("a",)), ("v", 1, "broadcast")],
        "loop with itself": [("w", 1, ("a",))],
        "loop with itself, on the other column": [("w", 1, ())],
        "loop with rows added": [("w", 1, ("a",)), ("v", 1, "broadcast"), ("u", 1, ("a",))],
        "loop with rows added that it joins": [("w", 1, ()), ("v", 1, ())],
        "loop of the best": [("w", 1, ("a",)), ("w", 1, "broadcast")],
        "search trees": [("v", 1, ("c",)), ("w", 1, "broadcast")],
        "automaton with a table": [("w", 1, ("a",)), ("t", 1, "broadcast")],
    }.items(),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_exchanges(case, expected):
    assert sorted(exchanges(plan_for(CASES[case]())), key=str) == sorted(expected, key=str)


def test_a_path_does_without_state_and_the_stage_checks():
    plan = plan_for(left(insert_only=True).where(pl.col("v") > 1).sliding(5))
    assert [step.name for step in plan.paths[0].fragment.steps] == ["Fused"]
    assert steps(plan) == [["Guard"]]
    assert plan.schema == SCHEMA


def test_order_is_restored_where_it_is_promised():
    groups = how_many(counts(wide(), "a"))
    assert steps(plan_for(groups))[1] == ["Aggregate"]
    assert steps(plan_for(groups.with_consistency("strong")))[1] == ["Align", "Aggregate"]


def test_shared_rows_leave_once():
    plan = plan_for(both(counts(wide(), "a", "b")))
    assert len(plan.paths) == 1
    assert [step for stage in steps(plan) for step in stage].count("Aggregate") == 3


def test_clocks_are_refused():
    held = left().align(5, clock=lambda: 0).group_by("m").agg(n=cedr.count())
    with pytest.raises(QueryError, match=r"align\(clock=...\): rows cannot be held by a clock on Spark"):
        plan_for(held)
    assert "On Spark\n  not possible: align(clock=...)" in held.explain()


def test_two_sources_of_one_name_are_refused():
    with pytest.raises(QueryError, match="two different sources are called 'a'"):
        plan_for(left().join(api.source("a", {"m": int}), on="m"))


def test_a_part_of_a_query_has_no_level_of_its_own():
    with pytest.raises(QueryError, match="has no level of its own"):
        plan_for(left()).stages[0].fragment.at_level(MIDDLE)


# --- aggregates in parts -------------------------------------------------------------------------------------------


def parts_of(stream: Stream) -> list[str]:
    plan = optimize(Level(stream.plan)).plan
    return [line.strip() for line in tree(aggregate_in_parts(plan)) if "Aggregate" in line or "TopK" in line]


def test_aggregates_in_parts():
    assert parts_of(left().agg(n=cedr.count(), lo=cedr.min("v"))) == [
        "Aggregate: n=sum(n), lo=min(lo) (perfect)",
        "PartialAggregate: n=count(), lo=min(v) (perfect)",
    ]
    assert parts_of(left().agg(s=cedr.sum("v"), d=cedr.stddev("v"))) == [
        "Aggregate: s=sum(v) of s, d=stddev(v) of d (perfect)",
        "PartialAggregate: s=partial sum(v), d=partial stddev(v) (perfect)",
    ]
    assert parts_of(left().top_k(2, by="v", rank="r")) == [
        "TopK 2 in order of v desc, rank as r (perfect)",
        "PartialTopK 2 in order of v desc (perfect)",
    ]


@pytest.mark.parametrize("whole", [cedr.first("v"), cedr.last("v"), cedr.median("v")], ids=str)
def test_what_cannot_be_made_of_parts_stays_whole(whole):
    assert len(parts_of(left().agg(n=cedr.count(), x=whole))) == 1


def test_names_of_parts_are_free():
    stream = left().agg(x=cedr.avg("v"), x_sum=cedr.count(), x_count=cedr.max("m"))
    plan = plan_for(stream)
    assert plan.schema == stream.schema
    assert plan.stages[-1].fragment.schema == stream.schema


TYPES = [pl.Int8, pl.UInt32, pl.Int64, pl.Float32, pl.Float64, pl.Boolean]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_parts_give_the_same_values_and_types(kind):
    """Ten rows that live together, with missing values; of the last five instants only missing ones."""
    values = [1, 0, None, 1, 1, 0, None, 1, None, 1]
    rows = pl.DataFrame(
        {"_vs": range(10), "_ve_old": range(10), "_ve_new": [12] * 8 + [20, 13], "v": pl.Series(values).cast(kind)}
    )
    source = api.source("a", {"v": kind})
    stream = source.agg(n=cedr.count("v"), s=cedr.sum("v"), lo=cedr.min("v"), hi=cedr.max("v"), mean=cedr.avg("v"))
    chunk = Chunk(rows, INF)
    sharded = Cluster(plan_for(stream), shards=3).process(0, chunk)
    direct = stream.engine().push("a", chunk)
    assert sharded.rows.schema == direct.rows.schema
    assert sharded.rows.sort("_vs").equals(direct.rows.sort("_vs"))
