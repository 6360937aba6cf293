"""Loops in plans: what may be in a body, what is refused and why, and the output of `explain`."""

import polars as pl
import pytest
from graph_streams import EDGES, GRAPHS, links, weighed

import cedr
from cedr import api, graphs
from cedr.automata import automaton
from cedr.columnar.chunk import chunk_of
from cedr.plan.iteration import Iterate
from cedr.plan.node import topological
from cedr.temporal import INF, Cti, DivergenceError, Insert, QueryError, Row


def hop(loop):
    return loop.join(links("b"), left_on="end", right_on="start").select("start", end="end_right")


REFUSED = {
    "sliding": (lambda loop: hop(loop).sliding(5), "Sliding 5 cannot be used in a loop: it moves lifetimes"),
    "session": (lambda loop: hop(loop).session(5), "it moves lifetimes"),
    "clip": (lambda loop: loop.clip(links("b"), on="start"), "it moves lifetimes"),
    "align": (lambda loop: hop(loop.align()), "it waits until the loop is done"),
    "level": (lambda loop: hop(loop.with_consistency("strong")), "it waits until the loop is done"),
    "sort": (lambda loop: hop(loop.sort("start")), "it waits until the loop is done"),
    "difference": (lambda loop: hop(loop).difference(links("b")), 'join(how="anti") with a stream from outside'),
    "anti join of the loop": (
        lambda loop: links("b").join(loop, on="start", how="anti"),
        "only the left side may come from the loop",
    ),
    "semi join of the loop": (lambda loop: links("b").join(loop, on="start", how="semi"), "use an inner join"),
    "intersect": (lambda loop: loop.intersect(links("b")), "use a join on all columns"),
    "merge": (lambda loop: loop.merge(links("b")), "use union"),
    "count": (
        lambda loop: hop(loop).group_by("start").agg(end=cedr.count()),
        "only min or max may be in a loop, at the end of the body",
    ),
    "min inside": (
        lambda loop: hop(loop.group_by("start").agg(end=cedr.min("end"))),
        "it may end a body, where it selects the rows that the loop holds",
    ),
    "two aggregates": (lambda loop: hop(loop).agg(start=cedr.min("start"), end=cedr.max("end")), "has 2 aggregates"),
    "top 2": (lambda loop: hop(loop).top_k(2, by="end"), "top_k(1, ...) may end a body"),
    "loop in a loop": (lambda loop: graphs.reachability(loop), "derive both in one loop"),
    "loop in the body of a loop in it": (
        lambda loop: links("b").iterate(lambda inner: inner.join(loop, on="start").select("start", end="end_right")),
        "derive both in one loop",
    ),
    "other columns": (
        lambda loop: hop(loop).select("start", stop="end"),
        "only the left has ['end'], only the right has ['stop']",
    ),
    "no loop": (lambda loop: links("b"), "the body does not use the loop"),
    "no stream": (lambda loop: 5, "iterate: body: the other side is a int; it must be a stream"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_in_a_loop_is_refused_with_the_reason(name):
    body, reason = REFUSED[name]
    with pytest.raises(QueryError) as refused:
        links().iterate(body)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"progress": "fast"}, "iterate(progress='fast'): it is one of 'hybrid', 'hwm', 'probing'"),
        ({"max_iterations": 0}, "iterate(max_iterations=0): it must be a whole number, at least 1"),
        ({"iterations_per_chunk": 1.5}, "iterate(iterations_per_chunk=1.5): it must be a whole number, at least 1"),
    ],
)
def test_settings_are_checked(settings, problem):
    with pytest.raises(QueryError) as refused:
        links().iterate(hop, **settings)
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new"), [("most", "max_iterations"), ("turns", "iterations_per_chunk")], ids=["most", "turns"]
)
@pytest.mark.parametrize(
    ("what", "make"),
    [
        ("iterate", lambda **loop: links().iterate(hop, **loop)),
        ("iterate", lambda **loop: graphs.reachability(links(), **loop)),
        (
            "automaton",
            lambda **loop: automaton(links(), [(1, 2, 3)], start=1, symbol="end", plan="recursive", **loop),
        ),
    ],
    ids=["iterate", "graph", "automaton"],
)
def test_the_old_names_of_settings_work_and_warn(what, make, old, new):
    with pytest.warns(DeprecationWarning, match=rf"{what}: {old}= is now {new}=") as warned:
        query = make(**{old: 7})
    assert [warning.filename for warning in warned] == [__file__]
    assert settings_of(query) == settings_of(make(**{new: 7}))
    with pytest.raises(QueryError, match=f"{old}= is the old name of {new}=; give only {new}="):
        make(**{old: 7, new: 8})


def settings_of(query):
    (loop,) = (node for node in topological(query.plan) if isinstance(node, Iterate))
    return loop.settings


def test_an_unknown_setting_is_an_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'turn'"):
        links().iterate(hop, turn=3)


def test_a_loop_without_end_is_stopped_and_the_input_named():
    """Lengths of all paths, not only of the shortest, on a cycle."""
    edges = weighed()
    roads = api.source("roads", GRAPHS)
    query = edges.iterate(
        lambda loop: loop.join(roads, left_on="end", right_on="start").select(
            "start", end="end_right", length=pl.col("length") + pl.col("length_right")
        ),
        max_iterations=50,
    )
    engine = query.engine()
    engine.push("a", chunk_of([Insert(0, 9, Row(start=1, end=1, length=1))], GRAPHS))
    with pytest.raises(DivergenceError) as stopped:
        engine.push("roads", chunk_of([Insert(0, 9, Row(start=1, end=1, length=2)), Cti(INF)], GRAPHS))
    assert "after 50 iterations, new rows are still derived, such as (start=1, end=1, length=" in str(stopped.value)
    assert "the last rows came from input 'roads'" in str(stopped.value)
    assert "max_iterations= to more than 50" in str(stopped.value)


def test_a_long_way_is_no_divergence_when_it_is_allowed():
    way = [Insert(0, 9, Row(start=i, end=i + 1)) for i in range(100)]
    nodes = api.source("b", {"node": int})
    for limit, per_chunk in ((120, 64), (120, 1000)):
        query = graphs.reachability(links(), nodes, max_iterations=limit, iterations_per_chunk=per_chunk)
        engine = query.engine()
        engine.push("b", chunk_of([Insert(0, 9, Row(node=0)), Cti(INF)], {"node": pl.Int64}))
        out = [engine.push("a", chunk_of(part, EDGES)) for part in (way, [Cti(INF)])]
        assert sum(len(chunk) for chunk in out) == 100


def ring(nodes: int):
    return [Insert(0, INF, Row(start=node, end=(node + 1) % nodes, length=1)) for node in range(nodes)]


def busy(query, chunks: int = 100):
    """The number of rows that come out when every chunk has a new source, and no CTI ever closes the others."""
    engine = query.engine()
    engine.push("roads", chunk_of(ring(8), GRAPHS))
    emitted = [
        engine.push("a", chunk_of([Insert(i, INF, Row(start=100 + i, end=i % 8, length=0))], GRAPHS))
        for i in range(chunks)
    ]
    emitted += [engine.push(name, chunk_of([Cti(INF)], GRAPHS)) for name in ("roads", "a")]
    return sum(int(chunk.is_insert.sum()) for chunk in emitted)


def further(loop, length):
    road = api.source("roads", GRAPHS)
    return loop.join(road, left_on="end", right_on="start").select("start", end="end_right", length=length)


def test_a_busy_loop_is_not_stopped_as_long_as_it_would_come_to_rest():
    """Eight rows of each source; something always circulates, as each chunk gets one iteration."""
    assert (
        busy(weighed().iterate(lambda loop: further(loop, "length"), iterations_per_chunk=1, max_iterations=20)) == 800
    )


def test_a_busy_loop_without_end_is_stopped_and_the_input_named():
    longer = pl.col("length") + pl.col("length_right")
    with pytest.raises(DivergenceError, match=r"after 20 iterations, new rows are still derived.*came from input 'a'"):
        busy(weighed().iterate(lambda loop: further(loop, longer), iterations_per_chunk=1, max_iterations=20))


def test_explain_shows_the_body_and_where_a_loop_runs():
    text = graphs.shortest_paths(weighed()).explain()
    assert "Iterate, progress by hybrid, holds the best by length asc per start, end" in text
    assert "Source loop (start: Int64, end: Int64, length: Int64)" in text
    assert "by start: the loop keeps start in all it derives" in text
    assert "to every shard: any row of the loop may need it" in text
    components = graphs.connected_components(links()).explain()
    assert (
        "the loop runs in one shard, because the best row is chosen among rows that differ in component" in components
    )


def test_what_comes_from_outside_is_an_input_whatever_it_is_made_of():
    outside = links("b").sliding(5).group_by("start").agg(end=cedr.max("end"))
    query = links().iterate(
        lambda loop: loop.join(outside, left_on="end", right_on="start").select("start", end="end_right")
    )
    names = [step.name for step in query.fragment().steps]
    assert names[-1] == "Iterate"
    assert "Aggregate" in names
