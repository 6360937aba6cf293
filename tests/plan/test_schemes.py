"""About which columns promises can come, which of them reach the end of a query, and what an Align makes of them."""

import polars as pl
import pytest

import cedr
from cedr.api import source_of_keys
from cedr.plan.node import topological
from cedr.plan.nodes.align import Align
from cedr.plan.nodes.level import Level
from cedr.plan.optimizer import optimize
from cedr.plan.schemes import all_schemes, reaching
from cedr.temporal import INF, Cti, Insert, Row
from cedr.temporal.punctuation import punctuation

SCHEMA = {"k": int, "g": str, "v": int}
FOR_EVER = {"punctuation": "done", "promises": ["k", ["g", "k"]]}


def a(**options):
    return source_of_keys("a", SCHEMA, vs="ts", **options)


def b(**options):
    return source_of_keys("b", SCHEMA, vs="ts", **options)


CTI, K, GK = (), ("k",), ("g", "k")

SCHEMES = {
    "nothing": (a(), {}),
    "elements report progress themselves": (cedr.source("a", SCHEMA), {CTI: False}),
    "delay": (a(delay=5), {CTI: False}),
    "ordered": (a(ordered=True), {CTI: False}),
    "per": (a(delay=5, progress_by="k"), {K: False}),
    "per, idle": (a(delay=5, progress_by="k", idle="1m"), {CTI: False, K: False}),
    "punctuations": (a(**FOR_EVER), {K: True, GK: True}),
    "per, and punctuations about the same": (a(delay=5, progress_by="k", punctuation="done"), {K: True}),
    "forgetting": (a().finalize(remember="5s"), {CTI: False}),
    "where and windows": (a(**FOR_EVER).where("v > 1").sliding(5), {K: True, GK: True}),
    "select": (
        a(**FOR_EVER).select("g", x="k", y="k"),
        {("x",): True, ("y",): True, ("g", "x"): True, ("g", "y"): True},
    ),
    "select of other columns": (a(**FOR_EVER).select("g", k=pl.col("k") + 1), {}),
    "group": (a(delay=5, **FOR_EVER).group_by("k").agg(n=cedr.count()), {CTI: False, K: True}),
    "group by more": (a(**FOR_EVER).group_by("k", "g").agg(n=cedr.count()), {K: True, GK: True}),
    "no group": (a(delay=5, **FOR_EVER).agg(n=cedr.count()), {CTI: False}),
    "top_k": (a(**FOR_EVER).group_by("k").top_k(1, "v"), {K: True}),
    "session": (a(**FOR_EVER).session(5, by="k"), {K: True}),
    "distinct": (a(**FOR_EVER).distinct(), {K: True, GK: True}),
    "union of the same": (a(**FOR_EVER).union(b(**FOR_EVER)), {K: True, GK: True}),
    "union with fewer columns": (a(promises=[["g", "k"]]).union(b(promises="k")), {GK: True}),
    "union with CTIs": (a(**FOR_EVER).union(b(delay=5)), {K: False, GK: False}),
    "union with silence": (a(**FOR_EVER).union(b()), {}),
    "difference": (a(promises="k").difference(b(promises="k")), {K: True}),
    "join": (a(promises="k").join(b(promises="k").select(x="k"), left_on="k", right_on="x"), {K: True}),
    "join by another column": (a(promises="k").join(b(promises="k"), on="g"), {}),
    "clip": (a(promises="k").clip(b(delay=5), on="k"), {K: False}),
    "sort": (a(delay=5, promises="k").sort("k"), {CTI: False, K: True}),
    "sort by another column": (a(delay=5, promises="k").sort("v"), {}),
}


@pytest.mark.parametrize("name", SCHEMES)
def test_schemes(name):
    query, expected = SCHEMES[name]
    assert all_schemes(query.plan)[id(query.plan)] == expected


def test_patterns_pass_promises_about_a_key_that_is_shown():
    feed = cedr.source("feed", {"kind": str, "k": int}, types="kind", progress=cedr.Progress(promises="k"))
    text = "EVENT q WHEN UNLESS(A x, B y, 5) WHERE CorrelationKey(k, EQUAL) OUTPUT"
    shown, hidden = cedr.query(f"{text} x.k AS key", feed), cedr.query(f"{text} x.Vs AS t", feed)
    assert all_schemes(shown.plan)[id(shown.plan)] == {CTI: False, ("key",): True}
    assert all_schemes(hidden.plan)[id(hidden.plan)] == {CTI: False}


def test_a_single_event_passes_what_it_shows():
    feed = cedr.source(
        "feed", {"kind": str, "k": int, "v": int}, types="kind", progress=cedr.Progress(promises=["k", "v"])
    )
    query = cedr.query("EVENT q WHEN A x OUTPUT x.k AS one, x.k AS two, x.Vs AS v", feed)
    assert all_schemes(query.plan)[id(query.plan)] == {CTI: False, ("one",): True, ("two",): True}


def by_align(query) -> list[tuple[tuple[str, ...], ...]]:
    """What each Align of a plan is released by, from the sources up."""
    plan = optimize(Level(query.with_consistency("strong").plan)).plan
    return [node.by for node in topological(plan) if isinstance(node, Align)]


BY_ALIGN = {
    "no state": (a(**FOR_EVER), [(GK, K)]),
    "grouped": (a(**FOR_EVER).group_by("k").agg(n=cedr.count()), [(K,), (K,)]),
    "grouped by another column": (a(**FOR_EVER).group_by("v").agg(n=cedr.count()), [()]),
    "grouped twice": (
        a(**FOR_EVER).group_by("k", "g").agg(n=cedr.count()).group_by("g").agg(n=cedr.max("n")),
        [()],
    ),
    "joined": (a(**FOR_EVER).join(b(**FOR_EVER), on="k"), [(K,), (K,), (K,)]),
    "joined with CTIs": (a(**FOR_EVER).join(b(delay=5), on="k"), [(K,), (), (K,)]),
    "an Align that was written": (a(**FOR_EVER).align().group_by("k").agg(n=cedr.count()), [(K,), (K,), (K,)]),
    "in order already": (a(ordered=True, promises="k").group_by("k").agg(n=cedr.count()), []),
    "sorted": (a(**FOR_EVER).sort("k"), [(K,)]),
}


@pytest.mark.parametrize("name", BY_ALIGN)
def test_an_align_is_released_by_promises_that_reach_the_end(name):
    query, expected = BY_ALIGN[name]
    assert by_align(query) == expected


def test_a_promise_must_reach_the_end_on_every_way():
    stream = a(**FOR_EVER)
    counts, groups = stream.group_by("k").agg(n=cedr.count()), stream.group_by("g").agg(n=cedr.count())
    both = counts.select("n").union(groups.select("n"))
    assert reaching(counts.plan)[id(stream.plan)] == {K}
    assert reaching(both.plan)[id(stream.plan)] == set()


def test_strong_emits_a_key_that_is_done_and_holds_the_others():
    """
    key   0         5         10
    1     |---------)  done
    2     |---------)
    """
    events = cedr.source("a", {"k": int}, progress=cedr.Progress(promises="k"))
    query = events.group_by("k").agg(n=cedr.count()).with_consistency("strong")
    one, two = Insert(0, 5, Row(k=1)), Insert(0, 5, Row(k=2))
    results = list(query.updates(iter([[one, two], [punctuation(k=1)], [Cti(INF)]]), close=False))
    assert [r.table().rows() for r in results] == [[], [(0, 5, 1, 1)], [(0, 5, 1, 1), (0, 5, 2, 1)]]


def test_a_sorted_answer_is_not_put_in_order_of_time():
    """In strong mode, too: 9 starts first, but comes last."""
    query = cedr.source("a", {"k": int}).sort("k").with_consistency("strong")
    given = [Insert(0, 5, Row(k=9)), Insert(3, 5, Row(k=1))]
    assert [e.payload.k for e in query.run(given).elements() if isinstance(e, Insert)] == [1, 9]
