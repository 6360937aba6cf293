"""Equal parts of a pattern are computed once, and the answer is the oracle's, as ever."""

import math
from dataclasses import replace
from datetime import datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operators.patterns.pattern_check import LATENCIES, check, made, pattern_runs
from operators.patterns.test_matcher import event
from oracle_check import run
from random_patterns import SCHEMA, Pair, ask, asked

from cedr import api
from cedr.operators.patterns import forms
from cedr.plan.nodes import Match
from cedr.plan.patterns.sharing import parts_under
from cedr.plan.patterns.tree import (
    AtLeast,
    AtMost,
    CancelWhen,
    CorrelationKey,
    EventType,
    Not,
    Predicate,
    Sequence,
    Unless,
)
from cedr.reference import patterns as ref
from cedr.temporal import END, Insert, QueryError, Row, canonical

# --- random patterns that repeat themselves ------------------------------------------------------------------------


def refused(query) -> bool:
    try:
        query.node.schema  # noqa: B018 checks the node
    except QueryError as e:
        assert "remove CONSUME" in str(e)  # noqa: PT017 other errors are failures
        return True
    return False


def shares(query) -> bool:
    node = query.node
    return any(p.same_as and p.leaf < 0 for p in parts_under(node.key, node.pattern, node.where).walk())


@pytest.mark.parametrize("modes", [False, True])
@pytest.mark.parametrize("latency", LATENCIES)
@given(data=st.data())
def test_repeated_patterns(latency, modes, data):
    query = data.draw(asked(depth=3, modes=modes, repeats=8).filter(lambda q: not refused(q) and shares(q)))
    check(query, latency, data.draw(pattern_runs(query)))


# --- which parts are the same --------------------------------------------------------------------------------------
#
# a, b and c are events of the types A, B and C; u, v and w others of the same types.

FEED = api.source("feed", SCHEMA).plan
A, B, C, U, V, W = (
    EventType(kind, 0, pl.col("kind") == kind, var=var)
    for kind, var in zip("ABCABC", ["a", "b", "c", "u", "v", "w"], strict=True)
)
DAY = datetime(2024, 1, 1)
AB, UV = Sequence((A, B), 5), Sequence((U, V), 5)


def p(expression, *variables):
    return Predicate(variables, expression)


def more(x, y):
    return p(pl.col(f"{x}.n") > pl.col(f"{y}.n"), x, y)


def same(x, y, a="m", b="m"):
    return p(pl.col(f"{x}.{a}") == pl.col(f"{y}.{b}"), x, y)


def both(one, other):
    return AtLeast(2, (one, other), 20)


def repeated(pattern, *where):
    """The parts computed for others, by the variables of both."""
    node = Match((FEED,), pattern, where, (("t", pl.col("Vs")),))
    node.schema  # noqa: B018 checks the node
    parts = [part for part in parts_under(node.key, pattern, where).walk() if part.same_as and part.leaf < 0]
    return {names(part): names(part.same_as) for part in parts}


def names(part):
    return "".join(leaf.pattern.var for leaf in part.leaves())


def first(event_type):
    return replace(event_type, selection="FIRST")


def consumed(event_type):
    return replace(event_type, consumption="CONSUME")


def hidden(x):
    """A condition that cannot be written down, as it holds a function of the module."""
    return p(pl.col(f"{x}.n").map_batches(lambda n: n > 0, return_dtype=pl.Boolean), x)


@pytest.mark.parametrize(
    ("pattern", "where"),
    [
        (both(AB, UV), ()),
        (both(AB, Unless(UV, C, 3)), ()),
        (Unless(AB, UV, 9), ()),
        (CancelWhen(AB, UV), ()),
        (both(AB, AtMost(2, (UV,), 5)), ()),
        (both(AtLeast(1, (A, B), 5), AtLeast(1, (U, V), 5)), ()),
        (both(AtMost(1, (A, B), 5), AtMost(1, (U, V), 5)), ()),
        (both(CancelWhen(A, B), CancelWhen(U, V)), ()),
        (both(AB, UV), [CorrelationKey("m")]),
        (both(AB, UV), [CorrelationKey("n", "UNIQUE")]),
        (both(AB, UV), [more("a", "b"), more("u", "v")]),
        (both(AB, UV), [more("a", "b"), p(pl.col("v.Vs") > 3, "v"), p(pl.col("b.Vs") > 3, "b"), more("u", "v")]),
        (both(AB, UV), [p(pl.col(f"{x}.Vs").cast(pl.Datetime("us")) > DAY, x) for x in "au"]),
        (both(AB, UV), [more("a", "v")]),  # evaluated for both together, later
        (both(AB, UV), [same("a", "b"), same("b", "u"), same("u", "v")]),
        (both(replace(AB, var="s"), replace(UV, var="t")), [p(pl.col(f"{x}.Id") > 0, x) for x in "st"]),
        (Unless(C, both(AB, UV), 5), [more("a", "c"), more("u", "c")]),  # both around the same C
        (both(first(AB), UV), ()),  # how it is selected does not change what it is
        (both(Sequence((first(A), B), 5), Sequence((first(U), V), 5)), ()),
    ],
)
def test_the_same(pattern, where):
    assert repeated(pattern, *where) == {"uv": "ab"}


@pytest.mark.parametrize(
    ("pattern", "where"),
    [
        (both(AB, Sequence((U, V), 6)), ()),
        (both(AB, Sequence((V, U), 5)), ()),
        (both(AB, Sequence((U, W), 5)), ()),
        (both(AB, Sequence((U,), 5)), ()),
        (both(AB, AtLeast(2, (U, V), 5)), ()),
        (both(AtLeast(1, (A, B), 5), AtLeast(2, (U, V), 5)), ()),
        (both(AtMost(1, (A, B), 5), AtMost(2, (U, V), 5)), ()),
        (both(Unless(A, B, 5), Unless(U, V, 6)), ()),
        (both(Unless(A, B, 5), CancelWhen(U, V)), ()),
        (both(AB, UV), [more("a", "b")]),
        (both(AB, UV), [more("a", "b"), more("v", "u")]),
        (both(AB, UV), [p(pl.col("a.n") > 1, "a"), p(pl.col("u.n") > 2, "u")]),
        (both(AB, UV), [p(pl.col("a.n") > 1, "a"), p(pl.col("v.n") > 1, "v")]),
        (both(AB, UV), [p(pl.col("a.Id") > 1, "a")]),
        (both(AB, UV), [hidden("a"), hidden("u")]),
        (both(AB, UV), [p(pl.col("a.n") < math.inf, "a"), p(pl.col("u.n") < -math.inf, "u")]),
        (both(AB, UV), [same("a", "b", "m", "n"), same("b", "u", "n", "n"), same("u", "v", "n", "m")]),  # other keys
        (Unless(AB, UV, 9), [more("a", "u")]),  # only those that fit this AB
        (Unless(AB, both(UV, W), 9), [more("a", "w")]),  # UV is looked for around each AB
        (Unless(AB, UV, 9), [CorrelationKey("n", "UNIQUE")]),
        (Unless(C, both(AB, UV), 5), [more("a", "c"), more("c", "u")]),
        (Unless(Sequence((C, W), 5), both(AB, UV), 5), [more("a", "c"), more("u", "w")]),
        (both(Sequence((first(A), B), 5), UV), ()),
        (both(Sequence((consumed(A), B), 5), Sequence((consumed(U), V), 5)), ()),
        (both(AB, Sequence((EventType("A", 0, pl.col("n") > 1, var="u"), V), 5)), ()),
        (both(AB, Sequence((replace(U, name="D"), V), 5)), ()),  # its events have other ids
    ],
)
def test_not_the_same(pattern, where):
    assert repeated(pattern, *where) == {}


def test_parts_of_a_part_that_is_the_same():
    """Of NOT(C, SEQUENCE(A, B)) that occurs twice, the sequence inside and the whole are each named once."""
    twice = both(Not(AB, C), Not(UV, W))
    assert repeated(twice) == {"uvw": "abc", "uv": "ab"}
    assert repeated(both(Unless(both(AB, UV), C, 5), W)) == {"uv": "ab"}


# --- how often it is computed --------------------------------------------------------------------------------------
#
# Each SEQUENCE of two is one range join, and so is ALL around it.


def pair(one, other, w=5):
    return Pair(ref.SEQUENCE(one.oracle, other.oracle, w=w), Sequence((one.plan, other.plan), w))


def sequences(w, *where):
    """ALL(SEQUENCE(A, B, 5), UNLESS(SEQUENCE(A, B, w), C, 3), 10)"""
    a, b, c, u, v = (event(kind, var) for kind, var in zip("ABCAB", "abcuv", strict=True))
    one, other = pair(a, b), pair(u, v, w)
    unless = Pair(ref.UNLESS(other.oracle, c.oracle, w=3), Unless(other.plan, c.plan, 3))
    return ask(
        Pair(ref.ALL(one.oracle, unless.oracle, w=10), AtLeast(2, (one.plan, unless.plan), 10)), where or ((), ())
    )


@pytest.mark.parametrize(("w", "joins"), [(5, 2), (6, 3)])
def test_a_repeated_sequence_is_joined_once(w, joins, monkeypatch):
    query, calls = sequences(w), []

    def counted(*arguments, join=forms.between):
        calls.append(arguments)
        return join(*arguments)

    monkeypatch.setattr(forms, "between", counted)
    rows = [Insert(t, t + 1, Row(kind="AB"[t % 2], m=0, n=t)) for t in range(6)]
    run(made(query, "eager"), [(0, rows)], [SCHEMA])
    assert len(calls) == 2 * joins  # over the events before the chunk, and over those after


def test_equal_event_types_are_evaluated_once():
    operator = made(sequences(5), "eager")()
    assert len(operator.entry.accepts) == 3
    run(lambda: operator, [(0, [Insert(0, 1, Row(kind="A", m=0, n=0))])], [SCHEMA])
    assert operator.events.events.flat().bits.tolist() == [1]


# --- by hand -------------------------------------------------------------------------------------------------------
#
#   A  1                ATMOST(1, A, 3) is [1, 3) and [4, 6), and again [12, 15); each is used for both parameters
#   A      3
#   A            12


def test_what_an_atmost_counted_is_known_of_each_of_its_copies():
    one, other = (
        Pair(ref.ATMOST(1, a.oracle, w=3, var=var), AtMost(1, (a.plan,), 3, var=var))
        for a, var in ((event("A", "a"), "s"), (event("A", "u"), "t"))
    )
    query = ask(Pair(ref.SEQUENCE(one.oracle, other.oracle, w=4), Sequence((one.plan, other.plan), 4)), extra=("cbt",))
    rows = [Insert(t, t + 1, Row(kind="A", m=0, n=0)) for t in (1, 3, 12)]
    out = check(query, "eager", ([(0, rows), (0, [END])], {1}))
    assert [[c["vs"] for c in e.payload.cbt] for e in canonical(out)] == [[1, 3]]


#   A  1 2 3          UNLESS(A, A, 5) where the second is more than the first: both accept the same events
#   n  2 1 3


def test_an_event_type_that_forbids_itself():
    a, u = event("A", "a"), event("A", "u")
    tied = ref.ReferencePredicate("u a", lambda u, a: u.payload.n > a.payload.n)
    unless = Pair(ref.UNLESS(a.oracle, u.oracle, w=5), Unless(a.plan, u.plan, 5))
    query = ask(unless, ((tied,), (more("u", "a"),)))
    rows = [Insert(t, t + 1, Row(kind="A", m=0, n=n)) for t, n in ((1, 2), (2, 1), (3, 3))]
    out = check(query, "eager", ([(0, rows), (0, [END])], set()))
    assert [e.payload.a_Vs for e in canonical(out)] == [3]


#   A  0 1 2 3        UNLESS(A, SEQUENCE(B FIRST, C, 5), 9) where the B is not less than the A: each A has events around
#   B          6 7    it of its own, more of them than there are keys
#   C              8


def test_selection_among_what_is_looked_for_around_each_instance():
    a, b, c = event("A", "a"), event("B", "b", "FIRST"), event("C", "c")
    forbidden = pair(b, c)
    pattern = Pair(ref.UNLESS(a.oracle, forbidden.oracle, w=9), Unless(a.plan, forbidden.plan, 9))
    tied = ref.ReferencePredicate("a b", lambda a, b: a.payload.n <= b.payload.n)
    query = ask(pattern, ((tied,), (p(pl.col("a.n") <= pl.col("b.n"), "a", "b"),)))
    events = [("A", 0, 1), ("A", 1, 3), ("A", 2, 2), ("A", 3, 1), ("B", 6, 1), ("B", 7, 2), ("C", 8, 0)]
    rows = [Insert(t, t + 1, Row(kind=kind, m=0, n=n)) for kind, t, n in events]
    out = check(query, "eager", ([(0, rows), (0, [END])], set()))
    assert [e.payload.a_Vs for e in canonical(out)] == [1]
