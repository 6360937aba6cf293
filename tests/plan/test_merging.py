"""The merge node: which algorithm its members allow, its text in explain, and mistakes."""

import pickle
from dataclasses import replace

import polars as pl
import pytest

import cedr
from cedr.api import source_of_keys
from cedr.columnar.chunk import chunk_of
from cedr.plan.aspects.promises import CTI
from cedr.plan.aspects.properties import Properties
from cedr.plan.merge_policy import Policy
from cedr.plan.nodes.merge import Merge, choose
from cedr.plan.properties import properties
from cedr.plan.schemes import all_schemes
from cedr.temporal import INF, Cti, History, Insert, QueryError, Row

SCHEMA = {"m": pl.Int64, "v": pl.Int64}


def source(name="a", **known):
    return source_of_keys(name, SCHEMA, vs="vs", duration=5, **known)


def runs(stream):
    """The merge of the plan that runs, and what it chose."""
    (merge,) = [step.node for step in stream.fragment().steps if isinstance(step.node, Merge)]
    return choose([properties(m) for m in merge.members], merge.policy, merge.algorithm)


def count(stream):
    return stream.agg(n=cedr.count())


def count_by_m(stream):
    return stream.group_by("m").agg(n=cedr.count())


IN_ORDER = source(ordered=True)
CASES = {
    "1 ordered sources": (IN_ORDER.merge(IN_ORDER.where("v > 0 or v <= 0")), "R2"),
    "1 sources": (source().merge(source()), "R4"),
    "2 cleansed": (
        source(insert_only=False).align(flavour="perfect").merge(source("b").align(flavour="perfect")),
        "R2",
    ),
    "3 a count in order": (count(IN_ORDER).merge(count(IN_ORDER)), "R0"),
    "4 top-k in order": (IN_ORDER.top_k(2, by="v").merge(IN_ORDER.top_k(2, by="v")), "R2"),
    "5 counts per group in order": (count_by_m(IN_ORDER).merge(count_by_m(IN_ORDER)), "R2"),
    "6 counts per group": (count_by_m(source()).merge(count_by_m(source())), "R3"),
    "one of them in order": (count_by_m(IN_ORDER).merge(count_by_m(source("b"))), "R3"),
    "one without a key": (count_by_m(IN_ORDER).merge(source("b").select("m", n="v")), "R4"),
    "policy": (count_by_m(IN_ORDER).merge(count_by_m(IN_ORDER), policy="leader"), "R3"),
    "asked for": (IN_ORDER.merge(IN_ORDER, algorithm="R1"), "R1"),
}


@pytest.mark.parametrize(("stream", "algorithm"), CASES.values(), ids=CASES.keys())
def test_the_algorithm_is_the_simplest_that_the_members_allow(stream, algorithm):
    assert runs(stream).algorithm == algorithm
    assert "Merge <- " in stream.explain()
    assert f": {algorithm}, as " in stream.explain()


def test_why():
    perfect = Properties(ordered=True, insert_only=True)
    assert choose([perfect, perfect]) == ("R2", "inserts in order")
    assert choose([perfect, Properties(insert_only=True, duplicate_free=True)]).why == (
        "order is not known; a payload may be there twice"
    )
    keyed = Properties(ordered=True, insert_only=True, key=frozenset({"m"}), duplicate_free=True)
    assert choose([keyed, keyed], Policy("leader", lag=3)).why == (
        "the policy is leader, fastest, lag 3; no payload twice at a time"
    )
    assert choose([Properties()], algorithm="R4").why == "it was requested"


def test_what_leaves_in_order_is_perfect_and_what_does_not_has_no_key():
    in_order = count_by_m(IN_ORDER).merge(count_by_m(IN_ORDER)).fragment().steps[-1].node
    known = properties(in_order)
    assert (known.perfect, known.key, known.duplicate_free) == (True, frozenset({"m"}), True)
    any_order = count_by_m(source()).merge(count_by_m(source())).fragment().steps[-1].node
    known = properties(any_order)
    assert (known.ordered, known.insert_only, known.key, known.duplicate_free) == (False, False, None, False)
    assert known.finite


def test_the_former_name_of_emits_works_and_warns():
    with pytest.warns(DeprecationWarning, match="Policy: tells is now emits") as warned:
        policy = Policy(tells="leader", lag=2)
    assert warned[0].filename == __file__
    assert policy == Policy("leader", lag=2) == Policy(emits="leader", lag=2)
    with pytest.warns(DeprecationWarning, match="Policy: tells is now emits"):
        assert policy.tells == "leader"
    assert pickle.loads(pickle.dumps(policy)) == replace(policy, fraction=1.0)


def test_one_member_with_ctis_is_enough_unless_the_slowest_counts():
    silent, with_ctis = source("a"), source("b", delay=3)
    for policy, promised in (("first", True), (Policy(progress="slowest"), False)):
        plan = silent.merge(with_ctis, policy=policy).plan
        assert (CTI in all_schemes(plan)[id(plan)]) == promised


def test_the_answer_does_not_wait_for_the_slower_source():
    a, b = (cedr.source(name, {"m": pl.Int64}) for name in "ab")
    engine = a.merge(b).engine()
    first = engine.push("a", chunk_of([Insert(1, 4, Row(m=1)), Cti(6)], {"m": pl.Int64}))
    assert first.elements() == [Insert(1, 4, Row(m=1)), Cti(6)]
    assert engine.push("b", chunk_of([Insert(1, 4, Row(m=1)), Cti(5)], {"m": pl.Int64})).elements() == []


def test_merged_sources_in_a_run():
    a, b = (cedr.source(name, {"m": pl.Int64}) for name in "ab")
    event = Insert(1, 4, Row(m=1))
    merged = a.merge(b).run({"a": [event], "b": [event]}).history()
    assert merged == History([(1, 4, Row(m=1))])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: IN_ORDER.merge(IN_ORDER.select("m")),
            "merge: both streams must have the same columns, but only the left",
        ),
        (lambda: IN_ORDER.merge(IN_ORDER, algorithm="R5"), "merge: algorithm is 'R5'; it is one of 'R0', 'R1'"),
        (lambda: IN_ORDER.merge(IN_ORDER, policy="last"), "emits is 'last'; it is one of 'first', 'reflect'"),
        (lambda: IN_ORDER.merge(IN_ORDER, policy="leader", algorithm="R0"), "R0 emits an event as soon as one input"),
        (
            lambda: IN_ORDER.merge(IN_ORDER, policy=Policy("fraction", 1.5)),
            "fraction is 1.5; it is a share of the inputs",
        ),
        (lambda: IN_ORDER.merge(IN_ORDER, policy=Policy(lag=INF)), "lag is .*; it is a length of time, 0 or more"),
    ],
)
def test_mistakes_are_found_while_writing(make, message):
    with pytest.raises(QueryError, match=message):
        make()
