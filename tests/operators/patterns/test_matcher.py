"""The pattern operator against the oracle: random patterns and conditions, random streams, every latency."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operators.patterns.pattern_check import LATENCIES, check, made, pattern_runs
from oracle_check import run
from random_patterns import SCHEMA, Pair, ask, asked

import cedr
from cedr.plan.patterns import tree as plan
from cedr.reference import patterns as ref
from cedr.temporal import END, INF, Adjust, Cti, Insert, QueryError, Row, canonical

few = settings(max_examples=max(settings.default.max_examples // 4, 1))


@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("operator", ["sequence", "atleast", "atmost", "unless", "not", "cancel"])
@given(data=st.data())
def test_each_operator(operator, latency, data):
    query = data.draw(asked(depth=1, operator=operator))
    check(query, latency, data.draw(pattern_runs(query)))


@pytest.mark.parametrize("latency", LATENCIES)
@given(data=st.data())
def test_nested(latency, data):
    query = data.draw(asked(depth=3))
    check(query, latency, data.draw(pattern_runs(query)))


@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("operator", ["sequence", "atleast"])
@given(data=st.data())
def test_selection_and_consumption(operator, latency, data):
    query = data.draw(asked(depth=1, modes=True, operator=operator))
    check(query, latency, data.draw(pattern_runs(query)))


@pytest.mark.parametrize("latency", LATENCIES)
@given(data=st.data())
def test_nested_selection_and_consumption(latency, data):
    query = data.draw(asked(depth=3, modes=True))
    try:
        query.node.schema  # noqa: B018 checks the node
    except QueryError as e:
        assert "remove CONSUME" in str(e)  # noqa: PT017 other errors are failures
        return
    check(query, latency, data.draw(pattern_runs(query)))


# --- all modes, with many ties ---------------------------------------------------------------------------------------

MODES = [(selection, consumption) for selection in ("EACH", "FIRST", "LAST") for consumption in ("REUSE", "CONSUME")]


def event(kind, var, selection="EACH", consumption="REUSE"):
    where = pl.col("kind") == kind
    modes = {"selection": selection, "consumption": consumption}
    return Pair(ref.ReferenceEventType(kind, var, **modes), plan.EventType(kind, 0, where, var=var, **modes))


@pytest.mark.parametrize("mode_b", MODES, ids="-".join)
@pytest.mark.parametrize("mode_a", MODES, ids="-".join)
@few
@given(data=st.data(), latency=st.sampled_from(LATENCIES), w=st.sampled_from([5, 2, 3]))
def test_all_modes(mode_a, mode_b, data, latency, w):
    a, b = event("A", "a", *mode_a), event("B", "b", *mode_b)
    pairs = {
        "sequence": Pair(ref.SEQUENCE(a.oracle, b.oracle, w=w), plan.Sequence((a.plan, b.plan), w)),
        "all": Pair(ref.ALL(a.oracle, b.oracle, w=w), plan.AtLeast(2, (a.plan, b.plan), w)),
        "any": Pair(ref.ATLEAST(1, a.oracle, b.oracle, w=w), plan.AtLeast(1, (a.plan, b.plan), w)),
    }
    query = ask(pairs[data.draw(st.sampled_from(list(pairs)))])
    check(query, latency, data.draw(pattern_runs(query, sizes=(6, 9))))


# --- one event -------------------------------------------------------------------------------------------------------


@given(data=st.data(), latency=st.sampled_from(LATENCIES))
def test_a_single_event(data, latency):
    a, b = event("A", "a"), event("B", "b")
    cancelled = Pair(ref.CANCEL_WHEN(a.oracle, b.oracle, var="c"), plan.CancelWhen(a.plan, b.plan, var="c"))
    where = (
        (ref.ReferencePredicate("a", lambda a: a.payload.n == 1), ref.ReferenceAttributeEqual("m", 0)),
        (plan.Predicate(("a",), pl.col("a.n") == 1), plan.AttributeEqual("m", 0)),
    )
    query = ask(data.draw(st.sampled_from([a, cancelled])), data.draw(st.sampled_from([where, ((), ())])))
    check(query, latency, data.draw(pattern_runs(query)))


# --- by hand ---------------------------------------------------------------------------------------------------------
#
#   A(m=0)  1
#   B(m=0)      4            SEQUENCE(A, B, 5) at 4
#   C(m=0)    2              comes late, and NOT(C, SEQUENCE(A, B, 5)) takes the match back
#   C(m=1)    3              another machine: nothing happens


def test_a_late_event_retracts_an_emitted_match():
    a, b, c = event("A", "a"), event("B", "b"), event("C", "c")
    pattern = Pair(
        ref.NOT(c.oracle, ref.SEQUENCE(a.oracle, b.oracle, w=5)),
        plan.Not(plan.Sequence((a.plan, b.plan), 5), c.plan),
    )
    where = ((ref.ReferenceCorrelationKey("m"),), (plan.CorrelationKey("m"),))
    query = ask(pattern, where, ())
    rows = {k: Row(kind=k, m=0, n=1) for k in "ABC"}
    elements = [
        Insert(1, 2, rows["A"]),
        Insert(4, 5, rows["B"]),
        Insert(3, 4, rows["C"].replace(m=1)),
        Insert(2, 3, rows["C"]),
        Adjust(2, 3, 2, rows["C"]),
    ]
    out = run(made(query, "perfect"), [(0, [e]) for e in elements], [SCHEMA])
    found = Row(a_m=0, a_n=1, a_Vs=1, b_m=0, b_n=1, b_Vs=4)
    assert out == [[], [Insert(4, 6, found)], [], [Adjust(4, 6, 4, found)], [Insert(4, 6, found)]]


#   A  1            UNLESS(A, B, 5): no B in (1, 6). Until time 6 a B may come; `perfect` waits, `eager` does not
#   B        9


@pytest.mark.parametrize(("latency", "emitted_at"), [("perfect", 1), ("ordered", 1), ("eager", 0)])
def test_unless_waits_until_its_scope_is_over(latency, emitted_at):
    a, b = event("A", "a"), event("B", "b")
    query = ask(Pair(ref.UNLESS(a.oracle, b.oracle, w=5), plan.Unless(a.plan, b.plan, 5)), extra=())
    rows = {k: Row(kind=k, m=0, n=1) for k in "AB"}
    out = run(made(query, latency), [(0, [Insert(1, 2, rows["A"])]), (0, [Insert(9, 10, rows["B"]), Cti(9)])], [SCHEMA])
    assert out[emitted_at][0] == Insert(1, 6, Row(a_m=0, a_n=1, a_Vs=1))
    assert out[1][-1] == Cti(5)


def test_a_match_carries_what_it_is_made_of():
    a, b = event("A", "a"), event("B", "b")
    query = ask(Pair(ref.SEQUENCE(a.oracle, b.oracle, w=5), plan.Sequence((a.plan, b.plan), 5)), extra=("cbt",))
    rows = {k: Row(kind=k, m=0, n=1) for k in "AB"}
    out = run(made(query, "eager"), [(0, [Insert(1, 2, rows["A"]), Insert(3, 4, rows["B"])])], [SCHEMA])
    assert [(c["type"], c["vs"]) for c in out[0][0].payload.cbt] == [("A", 1), ("B", 3)]


#   A(m=0)  1   3   5   7   9       SEQUENCE(A FIRST CONSUME, B, 3): each B takes the A before it. A late A at 0
#   B         2   4   6   8   10    is the first for the B at 2; then each B takes the A that its forerunner took before


def test_a_late_event_changes_all_that_is_consumed_after_it():
    a, b = event("A", "a", "FIRST", "CONSUME"), event("B", "b")
    query = ask(Pair(ref.SEQUENCE(a.oracle, b.oracle, w=3), plan.Sequence((a.plan, b.plan), 3)), extra=())
    rows = {k: Row(kind=k, m=0, n=1) for k in "AB"}
    elements = [Insert(t, t + 1, rows["BA"[t % 2]]) for t in range(1, 11)]
    arrivals = [(0, elements), (0, [Insert(0, 1, rows["A"])]), (0, [Cti(INF)])]
    out = check(query, "eager", (arrivals, {1}))
    taken = {e.payload.b_Vs: e.payload.a_Vs for e in canonical(out)}
    assert taken == {2: 0, 4: 1, 6: 3, 8: 5, 10: 7}


def test_events_without_a_key_are_counted_by_themselves_at_each_parameter():
    """ATMOST(2, A, A) with a key: of two instances of one event without a key each is alone, as the oracle has it."""
    a, again = event("A", "a"), event("A", None)
    pattern = Pair(ref.ATMOST(2, a.oracle, again.oracle, w=3), plan.AtMost(2, (a.plan, again.plan), 3))
    query = ask(pattern, ((ref.ReferenceCorrelationKey("m"),), (plan.CorrelationKey("m"),)), ("cbt",))
    nobody = Row(kind="A", m=None, n=1)
    out = check(query, "eager", ([(0, [Insert(0, 1, nobody), Insert(0, 1, nobody.replace(m=0)), END])], set()))
    assert sorted(len(e.payload.cbt) for e in canonical(out)) == [1, 1, 2]


def test_first_in_what_is_forbidden_for_several_instances_at_once():
    """WHERE ties the forbidden pattern to each kept event, so it is looked for around each of them."""
    text = """
        EVENT Alone
        WHEN UNLESS(events x, SEQUENCE(events u, events v FIRST, 8), 8)
        WHERE v.n >= x.n
        OUTPUT x.n AS n
    """
    events = cedr.source("events", {"n": int})
    found = cedr.query(text, events).run([Insert(t, t + 1, Row(n=1)) for t in range(3)]).table()
    assert found.rows() == [(2, 10, 1)]


def test_an_event_without_a_key_never_matches_itself():
    """UNLESS(A, .., 1, 8) lets an instance of the event at 0 start at 8, after the event itself:

    x  |0
    z          8|
    """
    text = """
        EVENT Twice
        WHEN SEQUENCE(events x, UNLESS(SEQUENCE(events y, 8), events n, 1, 8) z, 20)
        WHERE CorrelationKey(m, EQUAL)
        OUTPUT x.n AS first, y.n AS second
    """
    events = cedr.source("events", {"m": int, "n": int})
    found = cedr.query(text, events).run([Insert(0, 1, Row(m=m, n=n)) for m, n in ((None, 1), (7, 2))]).table()
    assert found.select("first", "second").rows() == [(2, 2)]
