"""Patterns whose events carry promises about their key: matches become sure, are forgotten and promised key by key."""

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operators.patterns.pattern_check import LATENCIES, check, made, pattern_runs
from oracle_check import run
from random_patterns import SCHEMA, Pair, ask, asked

from cedr.columnar.chunk import chunk_of
from cedr.plan.patterns import tree as plan
from cedr.reference import patterns as ref
from cedr.temporal import INF, Cti, Insert, Row
from cedr.temporal.punctuation import puncts, punctuation
from cedr.temporal.stream import data

ABOUT = {"m": [0, 1], "n": [0, 1, 2]}


def by_m(query):
    """The query with the key m, which its output shows."""
    where = (ref.ReferenceCorrelationKey("m"), *query.query.where), (plan.CorrelationKey("m"), *query.node.where)
    return replace(query, query=replace(query.query, where=where[0]), node=replace(query.node, where=where[1]))


@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("operator", ["sequence", "atleast", "atmost", "unless", "not", "cancel"])
@given(data=st.data())
def test_each_operator(operator, latency, data):
    query = by_m(data.draw(asked(depth=1, operator=operator)))
    check(query, latency, data.draw(pattern_runs(query, about=ABOUT)))


@pytest.mark.parametrize("latency", LATENCIES)
@given(data=st.data())
def test_nested(latency, data):
    query = data.draw(asked(depth=3))
    check(query, latency, data.draw(pattern_runs(query, about=ABOUT)))


@pytest.mark.parametrize("operator", ["sequence", "atleast"])
@given(data=st.data(), latency=st.sampled_from(LATENCIES))
def test_selection_and_consumption(operator, latency, data):
    query = by_m(data.draw(asked(depth=1, modes=True, operator=operator)))
    check(query, latency, data.draw(pattern_runs(query, about=ABOUT)))


# --- by example ------------------------------------------------------------------------------------------------------


def event(kind, var):
    return Pair(ref.ReferenceEventType(kind, var), plan.EventType(kind, 0, pl.col("kind") == kind, var=var))


A, B = event("A", "a"), event("B", "b")
KEY = ((ref.ReferenceCorrelationKey("m"),), (plan.CorrelationKey("m"),))
UNLESS = ask(Pair(ref.UNLESS(A.oracle, B.oracle, w=5), plan.Unless(A.plan, B.plan, 5)), KEY, ())
SEQUENCE = ask(Pair(ref.SEQUENCE(A.oracle, B.oracle, w=5), plan.Sequence((A.plan, B.plan), 5)), KEY, ())
SINGLE = ask(A, extra=())


def e(kind, m, vs):
    return Insert(vs, vs + 1, Row(kind=kind, m=m, n=1))


def fed(query, *chunks, restore_at=(), latency="perfect"):
    arrivals = [(0, elements) for elements in chunks]
    return run(made(query, latency), arrivals, [SCHEMA], restore_at)


#   key 0    A at 2                                 no more of 0 before 7
#   key 1                A at 3
#   emitted                                         the match of key 0 at 2: no B before 7 can come


def test_a_match_is_sure_by_the_front_of_its_key():
    for restore_at in ((), (1, 2)):
        out = fed(
            UNLESS, [e("A", 0, 2), e("A", 1, 3)], [punctuation(7, m=0)], [punctuation(m=0)], restore_at=restore_at
        )
        assert [[x.vs for x in data(o)] for o in out] == [[], [2], []]
        assert [puncts(o) for o in out] == [[], [punctuation(3, a_m=0)], [punctuation(a_m=0)]]


def test_a_covered_row_shows_no_progress_of_other_keys():
    out = fed(UNLESS, [e("A", 1, 3)], [e("A", 0, 30), punctuation(m=0)], [e("A", 1, 20)])
    assert [[x.vs for x in data(o)] for o in out] == [[], [30], [3]]


def test_promises_pass_under_the_names_the_output_gives_the_key_and_only_if_it_does():
    out = fed(SEQUENCE, [punctuation(9, m=0)], [punctuation(n=1)])
    assert [set(puncts(o)) for o in out] == [{punctuation(9, a_m=0), punctuation(9, b_m=0)}, set()]
    hidden = replace(SEQUENCE, node=replace(SEQUENCE.node, outputs=(("t", pl.col("Vs")),)))
    assert [puncts(o) for o in fed(hidden, [punctuation(9, m=0)])] == [[]]


def test_a_single_event_passes_promises_about_what_it_shows():
    assert puncts(fed(SINGLE, [punctuation(9, m=0)])[0]) == [punctuation(9, a_m=0)]


def test_events_of_keys_that_are_done_are_forgotten():
    operator = made(SEQUENCE, "perfect")()
    for key in range(300):
        chunk = [e("A", key, 2), e("B", key, 4), e("A", key, 5), punctuation(m=key)]
        operator.process(0, chunk_of(chunk, SCHEMA))
        assert operator.metrics.state_rows == 0
    assert operator.metrics.rows_out == 300


def test_without_promises_about_keys_nothing_changes():
    operator = made(SEQUENCE, "perfect")()
    operator.process(0, chunk_of([e("A", 0, 2), e("B", 0, 4), punctuation(n=1), Cti(3)], SCHEMA))
    assert not operator.front.keyed


def test_a_cti_does_not_emit_what_has_no_key():
    atmost = ask(Pair(ref.ATMOST(1, A.oracle, w=8), plan.AtMost(1, (A.plan,), 8)), KEY, ("Rt",))
    for latency in LATENCIES:
        out = fed(atmost, [e("A", None, 0)], [Cti(1)], [Cti(INF)], latency=latency)
        assert [(x.vs, x.ve) for o in out for x in data(o)] == [(0, 8)]
