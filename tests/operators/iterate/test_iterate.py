"""Loops against the oracle: any body, arrival order, slicing and number of iterations per chunk, restored midway."""

from dataclasses import replace

import polars as pl
import pytest
from graph_streams import EDGES, GRAPHS, LINKS, NODES, WEIGHED, AsPorts, busy_graph, in_slices, links, weighed
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_check import check_against_oracle, runs

import cedr
from cedr import api, graphs, testing
from cedr import reference as ref
from cedr.columnar.chunk import chunk_of
from cedr.plan.loop import PROGRESS
from cedr.reference.fixed_point import components, distances, fixed_point, reachable
from cedr.temporal import Cti, History, Insert, Row, canonical

few = settings(max_examples=max(settings.default.max_examples // 2, 1))
HOW = st.fixed_dictionaries(
    {"progress": st.sampled_from(PROGRESS), "iterations_per_chunk": st.sampled_from([1, 2, 64])}
)


def hop(p, q) -> Row:
    return Row(start=p.start, end=q.end)


def meets(p, q) -> bool:
    return p.end == q.start


def one_more(loop: History, edges: History) -> History:
    return ref.inner_join(loop, edges, meets, hop)


@given(run=runs(LINKS, max_size=6), how=HOW)
def test_reachability(run, how):
    query = graphs.reachability(links(), **how)
    check_against_oracle(lambda: AsPorts(query), lambda h: fixed_point(one_more, h, h), run[0], [EDGES], run[1])


@few
@given(run=runs(LINKS, max_size=6))
def test_the_oracle_finds_what_a_search_finds(run):
    history = canonical([e for _, elements in run[0] for e in elements])
    testing.assert_same(fixed_point(one_more, history, history), reachable(history))


@few
@given(data=st.data(), how=HOW)
def test_reachability_from_sources(data, how):
    edges, restore_at = data.draw(runs(LINKS, max_size=5))
    nodes, _ = data.draw(runs(NODES, max_size=3))
    arrivals = data.draw(st.permutations([0] * len(edges) + [1] * len(nodes)))
    rest = [iter(edges), iter(nodes)]
    arrivals = [(port, next(rest[port])[1]) for port in arrivals]
    query = graphs.reachability(links(), api.source("b", {"node": int}), **how)
    schemas = [EDGES, {"node": pl.Int64}]
    check_against_oracle(lambda: AsPorts(query), reachable, arrivals, schemas, restore_at)


@given(random=st.randoms(use_true_random=False), nodes=st.integers(2, 6))
def test_reachability_by_search_trees(random, nodes):
    """What is settled is emitted as the loop emits it."""
    edges = in_slices(random, busy_graph(random, 3 * nodes, nodes))
    sources = [(1, [node_of(e) for e in elements]) for _, elements in in_slices(random, busy_graph(random, 3, nodes))]
    rest = {0: iter(edges), 1: iter(sources)}
    ports = [port for port, slices in enumerate((edges, sources)) for _ in slices]
    random.shuffle(ports)
    arrivals = [next(rest[port]) for port in ports]
    query = graphs.reachability(links(), api.source("b", {"node": int}), settled=True)
    restore_at = {random.randrange(len(arrivals))}
    check_against_oracle(lambda: AsPorts(query), reachable, arrivals, [EDGES, {"node": pl.Int64}], restore_at)


def node_of(e):
    return replace(e, payload=Row(node=e.payload.start)) if hasattr(e, "payload") else e


@given(run=runs(WEIGHED, max_size=6), how=HOW)
def test_shortest_paths(run, how):
    query = graphs.shortest_paths(weighed(), **how)
    check_against_oracle(lambda: AsPorts(query), distances, run[0], [GRAPHS], run[1])


@given(run=runs(LINKS, max_size=5), how=HOW)
def test_connected_components(run, how):
    query = graphs.connected_components(links(), **how)
    check_against_oracle(lambda: AsPorts(query), components, run[0], [EDGES], run[1])


@few
@given(run=runs(LINKS, max_size=6), how=HOW)
def test_causality_chains(run, how):
    def grow(loop, steps):
        joined = ref.inner_join(loop, steps, lambda p, q: p.last == q.start, lambda p, q: (p, q.end))
        fresh = ref.select(joined, lambda pair: pair[1] not in pair[0].chain)
        return ref.project(fresh, lambda pair: Row(first=pair[0].first, last=pair[1], chain=(*pair[0].chain, pair[1])))

    def oracle(h):
        steps = ref.select(h, lambda p: p.start != p.end)
        seed = ref.project(steps, lambda p: Row(first=p.start, last=p.end, chain=(p.start, p.end)))
        return fixed_point(grow, seed, steps)

    query = graphs.causality_chains(links(), event="end", cause="start", **how)
    check_against_oracle(lambda: AsPorts(query), oracle, run[0], [EDGES], run[1])


# --- denser graphs -------------------------------------------------------------------------------------------------

READY_MADE = {
    "reachability": (graphs.reachability, reachable),
    "shortest paths": (graphs.shortest_paths, distances),
    "components": (graphs.connected_components, components),
}


@pytest.mark.parametrize("name", READY_MADE)
@given(random=st.randoms(use_true_random=False), how=HOW, nodes=st.integers(2, 5))
def test_busy_graphs(name, random, how, nodes):
    build, oracle = READY_MADE[name]
    arrivals = in_slices(random, busy_graph(random, 3 * nodes, nodes, weighed=True))
    restore_at = {random.randrange(len(arrivals))}
    check_against_oracle(lambda: AsPorts(build(weighed(), **how)), oracle, arrivals, [GRAPHS], restore_at)


# --- other bodies --------------------------------------------------------------------------------------------------


BODIES = {
    "loop joined with itself": (
        lambda loop, other: other.union(
            loop.join(loop, left_on="end", right_on="start").select("start", end="end_right")
        ),
        lambda loop, other: other + ref.inner_join(loop, loop, meets, hop),
    ),
    "loop twice, with distinct": (
        lambda loop, other: loop.select(start="end", end="start").union(
            loop.join(other, left_on="end", right_on="start").select("start", end="end_right").distinct()
        ),
        lambda loop, other: ref.project(loop, lambda p: Row(start=p.end, end=p.start)) + one_more(loop, other),
    ),
    "anti join": (
        lambda loop, other: loop.select(start="end", end="start").join(other, on=["start", "end"], how="anti"),
        lambda loop, other: ref.anti_join(
            ref.project(loop, lambda p: Row(start=p.end, end=p.start)), other, lambda p, q: p == q
        ),
    ),
    "semi join": (
        lambda loop, other: loop.select(start="end", end=(pl.col("start") + 1) % 3).join(other, on="start", how="semi"),
        lambda loop, other: ref.semi_join(
            ref.project(loop, lambda p: Row(start=p.end, end=(p.start + 1) % 3)), other, lambda p, q: p.start == q.start
        ),
    ),
    "windows and aggregates outside": (
        lambda loop, other: loop.join(
            other.sliding(4).group_by("start").agg(end=cedr.max("end")), left_on="end", right_on="start"
        ).select("start", end="end_right"),
        one_more,
    ),
}
OUTSIDE = {
    "windows and aggregates outside": lambda h: ref.aggregate(ref.sliding(h, 4), by=["start"], end=ref.max_("end"))
}
"""What is done to the other stream before the loop; its lifetimes do not end where the stream's do."""


@pytest.mark.parametrize("name", BODIES)
@few
@given(run=runs(LINKS, ports=2, max_size=4), how=HOW)
def test_other_bodies(name, run, how):
    body, meaning = BODIES[name]
    other = links("b")
    query = links("a").iterate(lambda loop: body(loop, other), **how)
    oracle = lambda g, h: fixed_point(meaning, g, OUTSIDE.get(name, lambda h: h)(h))  # noqa: E731
    check_against_oracle(lambda: AsPorts(query), oracle, run[0], [EDGES] * 2, run[1])


@few
@given(run=runs(WEIGHED, max_size=5), how=HOW)
def test_whole_rows_by_top_k(run, how):
    """The widest path: of each pair the one whose narrowest edge is widest."""
    edges = weighed()
    query = edges.iterate(
        lambda loop: (
            loop.join(edges, left_on="end", right_on="start")
            .select("start", end="end_right", length=pl.min_horizontal("length", "length_right"))
            .group_by("start", "end")
            .top_k(1, by="length")
        ),
        **how,
    )

    def oracle(h):
        widest = lambda g: ref.top_k(g, 1, lambda p: p.length, lambda p: (p.start, p.end))  # noqa: E731
        wider = lambda p, q: Row(start=p.start, end=q.end, length=min(p.length, q.length))  # noqa: E731
        return fixed_point(lambda loop, e: ref.inner_join(loop, e, meets, wider), h, h, best=widest)

    check_against_oracle(lambda: AsPorts(query), oracle, run[0], [GRAPHS], run[1])


# --- state ---------------------------------------------------------------------------------------------------------


@few
@given(history=testing.histories(LINKS, infinite=False))
def test_what_is_definite_is_forgotten(history):
    engine = graphs.reachability(links()).engine()
    engine.push("a", chunk_of([Insert(*e) for e in history], EDGES))
    held = engine.operators[-1].supports.state_size()[0]
    for time in range(1000, 1001 + held):  # where only a few rows are looked at with each progress
        engine.push("a", chunk_of([Cti(time)], EDGES))
    assert engine.operators[-1].supports.state_size()[0] == 0
    assert engine.operators[-1].body.state_rows() == 0
