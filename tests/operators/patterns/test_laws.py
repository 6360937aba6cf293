"""What the pattern operator promises in addition to the right answer: order, early output, and bounded memory."""

from collections import Counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operators.patterns.pattern_check import check, made, pattern_runs
from oracle_check import run
from random_patterns import SCHEMA, Pair, ask, asked

import cedr
from cedr.columnar.chunk import chunk_of
from cedr.plan.patterns import tree as plan
from cedr.plan.patterns.parts import parts_of
from cedr.reference import patterns as ref
from cedr.temporal import Adjust, Cti, Insert, Row
from cedr.temporal.stream import data as data_of

ONE_PORT = (1,)


def flat(outputs):
    return [e for output in outputs for e in output]


OPERATORS = ["sequence", "atleast", "atmost", "unless", "not", "cancel"]


@pytest.mark.parametrize("operator", OPERATORS)
@given(data=st.data(), depth=st.integers(1, 2), modes=st.booleans())
def test_perfect_input_gives_perfect_output(operator, data, depth, modes):
    query = data.draw(asked(depth, modes and depth == 1, ONE_PORT, operator))
    one_run = data.draw(pattern_runs(query, ordered=True, adjusts=False))
    out = data_of(check(query, "perfect", one_run))
    assert not any(isinstance(e, Adjust) for e in out)
    assert [e.sync for e in out] == sorted(e.sync for e in out)


@pytest.mark.parametrize("latency", ["perfect", "ordered"])
@given(data=st.data(), depth=st.integers(1, 2), modes=st.booleans())
def test_ordered_input_gives_ordered_output(latency, data, depth, modes):
    query = data.draw(asked(depth, modes and depth == 1, ONE_PORT))
    out = data_of(check(query, latency, data.draw(pattern_runs(query, ordered=True))))
    assert [e.sync for e in out] == sorted(e.sync for e in out)


@given(data=st.data())
def test_a_lower_latency_never_emits_less(data):
    query = data.draw(asked(depth=2))
    arrivals, _ = data.draw(pattern_runs(query, adjusts=False, ctis=False))
    perfect, ordered, eager = (
        run(made(query, latency), arrivals, [SCHEMA] * query.ports) for latency in ("perfect", "ordered", "eager")
    )
    for upto in range(1, len(arrivals) + 1):
        emitted = [
            Counter((e.vs, e.payload) for e in flat(out[:upto]) if isinstance(e, Insert))
            for out in (perfect, ordered, eager)
        ]
        assert emitted[0] <= emitted[1]
        assert emitted[1] <= emitted[2]


@given(data=st.data())
def test_slicing_does_not_matter(data):
    query = data.draw(asked(depth=2, ports=ONE_PORT))
    arrivals, _ = data.draw(pattern_runs(query))
    elements = flat(elements for _, elements in arrivals)
    one_by_one = run(made(query, "eager"), [(0, [e]) for e in elements], [SCHEMA])
    at_once = run(made(query, "eager"), [(0, elements)], [SCHEMA])
    assert net(flat(one_by_one)) == net(flat(at_once))


def net(elements):
    found = Counter()
    for e in data_of(elements):
        found[e.vs, e.ve, e.payload] += 1 if isinstance(e, Insert) else -1
        if isinstance(e, Adjust) and e.ve_new > e.vs:
            found[e.vs, e.ve_new, e.payload] += 1
    return +found


# --- memory --------------------------------------------------------------------------------------------------------


def event(kind, var, **modes):
    return Pair(
        ref.ReferenceEventType(kind, var, **modes), plan.EventType(kind, 0, pl.col("kind") == kind, var=var, **modes)
    )


A, B, C = event("A", "a"), event("B", "b"), event("C", "c")


def sequence(*params, w):
    return Pair(ref.SEQUENCE(*(p.oracle for p in params), w=w), plan.Sequence(tuple(p.plan for p in params), w))


BOUNDED = {
    "sequence": sequence(A, B, w=20),
    "first consume": sequence(event("A", "a", selection="FIRST", consumption="CONSUME"), B, w=20),
    "unless": Pair(
        ref.UNLESS(sequence(A, B, w=20).oracle, C.oracle, w=10),
        plan.Unless(sequence(A, B, w=20).plan, C.plan, 10),
    ),
    "atmost": Pair(ref.ATMOST(2, A.oracle, w=20), plan.AtMost(2, (A.plan,), 20)),
}


@pytest.mark.parametrize("latency", ["perfect", "eager"])
@pytest.mark.parametrize("name", BOUNDED)
def test_what_is_settled_is_forgotten(name, latency):
    operator = made(ask(BOUNDED[name], ((), (plan.CorrelationKey("m"),))), latency)()
    for t in range(0, 30000, 100):
        rows = [Insert(t + i, t + i + 1, Row(kind="ABC"[i % 3], m=t + i % 7, n=0)) for i in range(100)]
        operator.process(0, chunk_of([*rows, Cti(t)], SCHEMA))
    assert operator.metrics.state_rows < 1000
    assert len(operator.entry.keys.index) < 9000
    assert operator.events.payloads[0].size < 9000
    assert sum(len(c.g) for c in operator.consumed.values()) < 1000
    assert operator.cti_out >= t - 20


# --- the last moment -------------------------------------------------------------------------------------------------
#
#   A  1              UNLESS(A, B, 5) is sure at 6, not at 5: a B may still come at 5
#   C          5
#   B          5


def test_nothing_is_emitted_while_it_may_still_be_forbidden():
    unless = Pair(ref.UNLESS(A.oracle, B.oracle, w=5), plan.Unless(A.plan, B.plan, 5))
    arrivals = [(0, [Insert(t, t + 1, Row(kind=k, m=0, n=0))]) for k, t in (("A", 1), ("C", 5), ("B", 5), ("C", 9))]
    assert run(made(ask(unless), "perfect"), arrivals, [SCHEMA]) == [[], [], [], []]
    on_time = [(0, [Insert(t, t + 1, Row(kind=k, m=0, n=0))]) for k, t in (("A", 1), ("C", 5), ("C", 6))]
    emitted = run(made(ask(unless), "perfect"), on_time, [SCHEMA])
    assert [len(out) for out in emitted] == [0, 0, 1]


#   A  0        ATMOST(1, A, 10) is [0, 4) as long as there is an A at 4, and [0, 10) without it. What starts before
#   A      4    the CTI of 4 stays when the A at 4 goes: its end moves, past what `perfect` would wait for


def test_what_starts_before_a_promise_stays_emitted():
    atmost = Pair(ref.ATMOST(1, A.oracle, w=10), plan.AtMost(1, (A.plan,), 10))
    row = Row(kind="A", m=0, n=0)
    arrivals = [(0, [Insert(0, 1, row), Insert(4, 5, row), Cti(4)]), (0, [Adjust(4, 5, 4, row)])]
    first, second = run(made(ask(atmost), "perfect"), arrivals, [SCHEMA])
    assert first == [Insert(0, 4, Row(Rt=0)), Cti(4)]
    assert second == [Adjust(0, 4, 10, Row(Rt=0))]


#   A m=0  0            [0, 10)     still open at 3, so [1, 3), which is sure by then, has to wait for it
#   A m=1    1   3      [1, 3)
#   C                20


def test_results_are_emitted_in_the_order_of_their_starts():
    atmost = Pair(ref.ATMOST(1, A.oracle, w=10), plan.AtMost(1, (A.plan,), 10))
    where = ((ref.ReferenceCorrelationKey("m"),), (plan.CorrelationKey("m"),))
    events = [("A", 0, 0), ("A", 1, 1), ("A", 1, 3), ("C", 0, 20)]
    arrivals = [(0, [Insert(t, t + 1, Row(kind=k, m=m, n=0))]) for k, m, t in events]
    out = run(made(ask(atmost, where), "perfect"), arrivals, [SCHEMA])
    assert out[:3] == [[], [], []]
    assert [(e.vs, e.ve) for e in out[3]] == [(0, 10), (1, 3), (11, 13)]


def test_the_end_of_a_count_waits_for_the_instance_that_makes_it():
    """ATMOST(1, B, UNLESS(A, B, 3), 8): the A at 4 would end the count of the B at 1, but for the B at 6.

    B  |1....6          emitted as [1, 6), never as [1, 4)
    A      4x
    """
    text = """
        EVENT Few
        WHEN ATMOST(1, events b, UNLESS(events a, events c, 3), 8)
        WHERE b.kind = 'B' AND a.kind = 'A' AND c.kind = 'B'
    """
    events = cedr.source("events", {"kind": str}, progress=cedr.Progress(ordered=True), insert_only=True)
    arriving = [("B", 1), ("A", 4), ("A", 6), ("B", 6)]
    query = cedr.query(text, events).with_latency("perfect")
    found = query.run([Insert(t, t + 1, Row(kind=kind)) for kind, t in arriving], chunk_size=1)
    assert [(e.vs, e.ve) for e in data_of(found.elements())] == [(1, 6)]


def test_what_cancels_reaches_back_before_what_it_cancels():
    """CANCEL-WHEN(SEQUENCE(A, B, 5), SEQUENCE(C, D, 8)): a C eight before the D counts if the D comes before the B."""
    a, b, c, d = (plan.EventType(name, 0) for name in "ABCD")
    part = parts_of(plan.CancelWhen(plan.Sequence((a, b), 5), plan.Sequence((c, d), 8)), ())
    assert part.kept.root == 5
    assert part.back == 13
