"""The recursive plan of an automaton against the definition: what the native operator finds, a loop finds too."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operators.automata.random_automata import (
    DEFINED,
    REGISTERS,
    SCHEMA,
    STEPS,
    defined,
    finals,
    payloads,
    recursive,
    shapes,
    tables,
)
from operators.automata.test_regex_matches import beginning, text, used
from oracle_check import check_against_oracle, runs
from plan.catalogue import AsOperator

from cedr import api, automata
from cedr.columnar.chunk import chunk_of
from cedr.reference import automata as ra
from cedr.temporal import INF, Adjust, Insert, Row
from cedr.temporal.errors import QueryError

share = settings(max_examples=max(settings.default.max_examples // 3, 1))
"""A plan is made for each example, which takes longer than to run it."""


@share
@given(run=runs(payloads, max_size=6), table=tables, shape=shapes, final=finals, per_chunk=st.sampled_from([1, 2, 64]))
def test_a_fixed_table(run, table, shape, final, per_chunk):
    arrivals, restore_at = run
    check_against_oracle(
        lambda: recursive(table, final=final, iterations_per_chunk=per_chunk, **shape),
        lambda h: defined(h, table, final=final, **shape),
        arrivals,
        [SCHEMA],
        restore_at,
    )


@share
@given(run=runs(payloads, max_size=5), tree=beginning, by=st.sampled_from([(), ("m",)]), window=st.sampled_from([4, 9]))
def test_a_regular_expression(run, tree, by, window):
    arrivals, restore_at = run
    steps = {name: STEPS[name] for name in used(tree)}
    options = {"steps": steps, "registers": REGISTERS, "by": by, "window": window}
    check_against_oracle(
        lambda: AsOperator(automata.regex(text(tree), api.source("a", SCHEMA), plan="recursive", **options)),
        lambda h: ra.regex(tree, h, **{**options, "steps": DEFINED}),
        arrivals,
        [SCHEMA],
        restore_at,
    )


# --- two runs that show the same are two ---------------------------------------------------------------------------
#
#   events     a         two of them at 0, and one at 1: A A by the first or by the second of them
#              a  a
#   table      S -A-> 1 -A-> F, and the second step in two ways

WAYS = [("S", "A", "1"), ("1", "A", "F"), ("1", "A", "F")]


@pytest.mark.parametrize("plan", ["native", "recursive"])
def test_runs_are_a_bag_in_both_plans(plan):
    events = api.source("a", {"k": str})
    op = AsOperator(automata.automaton(events, WAYS, start="S", final="F", symbol="k", window=9, plan=plan))
    a = Row(k="A")
    emitted = op.process(0, chunk_of([Insert(0, 1, a), Insert(0, 1, a), Insert(1, 2, a)], {"k": pl.String})).elements()
    assert emitted == [Insert(1, 9, Row(begin=0, end=1, state="F"))] * 4
    gone = op.process(0, chunk_of([Adjust(0, 1, 0, a)], {"k": pl.String})).elements()
    assert gone == [Adjust(1, 9, 1, Row(begin=0, end=1, state="F"))] * 2


@pytest.mark.parametrize("plan", ["native", "recursive"])
def test_missing_symbols_and_states_that_are_numbers(plan):
    """A missing symbol is a symbol like others."""
    events = api.source("a", {"k": str})
    table = [(0, None, 1), (1, "x", 2)]
    op = AsOperator(automata.automaton(events, table, start=0, final=[2], symbol="k", plan=plan))
    emitted = op.process(0, chunk_of([Insert(0, INF, Row(k=None)), Insert(3, 5, Row(k="x"))], {"k": pl.String}))
    assert emitted.elements() == [Insert(3, 5, Row(begin=0, end=3, state=2))]


# --- what is refused -----------------------------------------------------------------------------------------------

EVENTS = api.source("a", {"k": str, "n": int})
A = {"A": pl.col("k") == "a"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: automata.regex("A A", EVENTS, steps=A, plan="recursive"), "give window=... and no order"),
        (
            lambda: automata.regex("A A", EVENTS, steps=A, window=9, order="n", plan="recursive"),
            "give window=... and no order",
        ),
        (lambda: automata.automaton(EVENTS, WAYS, start="S", symbol="k", plan="loop"), "one of 'native', 'recursive'"),
        (
            lambda: automata.automaton(EVENTS, WAYS, start="S", symbol="k", iterations_per_chunk=3),
            "no argument 'iterations_per_chunk'",
        ),
        (
            lambda: automata.automaton(EVENTS, WAYS, start="S", symbol="k", plan="recursive", turn=3),
            "no argument 'turn'; a plan=\"recursive\" takes progress, max_iterations, iterations_per_chunk",
        ),
        (
            lambda: automata.automaton(EVENTS, WAYS, start="S", symbol="k", plan="recursive", iterations_per_chunk=0),
            "at least 1",
        ),
        (
            lambda: automata.automaton(EVENTS.select("k", _run_at="n"), WAYS, start="S", symbol="k", plan="recursive"),
            "rename '_run_at'",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(QueryError) as caught:
        make()
    assert message in str(caught.value)
