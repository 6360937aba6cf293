"""The native automaton against its definition: any table, order, window and key, any equivalent stream and slicing."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operators.automata.random_automata import (
    SCHEMA,
    TABLE,
    defined,
    finals,
    native,
    payloads,
    recursive,
    shapes,
    table_rows,
    tables,
)
from oracle_check import arrivals_of, check_against_oracle, runs

from cedr import api, automata, testing
from cedr.columnar.chunk import assemble, chunk_of
from cedr.physical import operator_of
from cedr.temporal import INF, Adjust, Cti, Insert, Row, canonical


@given(run=runs(payloads, max_size=7), table=tables, shape=shapes, final=finals)
def test_a_fixed_table(run, table, shape, final):
    arrivals, restore_at = run
    check_against_oracle(
        lambda: native(table, final=final, **shape),
        lambda h: defined(h, table, final=final, **shape),
        arrivals,
        [SCHEMA],
        restore_at,
    )


@pytest.mark.parametrize("plan", [native, recursive])
@given(data=st.data(), shape=shapes, final=finals)
def test_a_table_that_changes_while_the_query_runs(plan, data, shape, final):
    events = data.draw(testing.streams(payloads, max_size=5, closed=True))
    table = data.draw(testing.streams(table_rows, max_size=5, closed=True))
    arrivals = data.draw(arrivals_of([events, table]))
    restore_at = data.draw(st.sets(st.integers(0, max(len(arrivals) - 1, 0)), max_size=2))
    check_against_oracle(
        lambda: plan(api.source("b", TABLE), final=final, **shape),
        lambda g, h: defined(g, h, final=final, **shape),
        arrivals,
        [SCHEMA, TABLE],
        restore_at,
    )


@given(data=st.data(), table=tables, shape=shapes)
def test_promises_about_keys(data, table, shape):
    events = data.draw(testing.streams(payloads, max_size=6, closed=True))
    events = data.draw(testing.punctuated(events, {"m": [0, 1]}))
    arrivals = data.draw(arrivals_of([events]))
    shape = {**shape, "by": ("m",)}
    check_against_oracle(lambda: native(table, **shape), lambda h: defined(h, table, **shape), arrivals, [SCHEMA])


# --- what a late event does --------------------------------------------------------------------------------------
#
#   events     a . c          A B* A over starts: a at 0, c at 2, both A, so a run from 0 to 2 ends in F
#   late         x            at 1, neither A nor B: nothing may be skipped, and the run is taken back
#   removed      x            and it is there again

AB = [("S", "A", "1"), ("1", "B", "1"), ("1", "A", "F")]


def letters(**options):
    events = api.source("events", {"k": str})
    return operator_of(automata.automaton(events, AB, start="S", final="F", symbol="k", **options).plan, [])


def emitted(op, *elements):
    return op.process(0, chunk_of(elements, {"k": pl.String})).elements()


def test_a_late_event_takes_a_run_apart_and_its_removal_repairs_it():
    op = letters(window=10)
    run = Row(begin=0, end=2, state="F")
    assert emitted(op, Insert(0, 1, Row(k="A")), Insert(2, 3, Row(k="A"))) == [Insert(2, 10, run)]
    assert emitted(op, Insert(1, 2, Row(k="x"))) == [Adjust(2, 10, 2, run)]
    assert emitted(op, Adjust(1, 2, 1, Row(k="x"))) == [Insert(2, 10, run)]


def test_without_a_window_a_corrected_end_corrects_the_end_of_the_run():
    op = letters()
    run = Row(begin=0, end=2, state="F")
    assert emitted(op, Insert(0, 9, Row(k="A")), Insert(2, INF, Row(k="A")), Cti(5)) == [Insert(2, 9, run), Cti(5)]
    assert emitted(op, Adjust(0, 9, 12, Row(k="A"))) == [Adjust(2, 9, 12, run)]


def test_with_a_window_ends_do_not_matter():
    op = letters(window=10)
    emitted(op, Insert(0, 9, Row(k="A")), Insert(2, INF, Row(k="A")), Cti(8))
    assert emitted(op, Adjust(0, 9, 12, Row(k="A"))) == []


# --- many events -------------------------------------------------------------------------------------------------


def tosses(n: int, order: np.ndarray, size: int):
    """Letters at starts 0 to n, in this order of arrival, with CTIs as high as they can be."""
    k = pl.Series("k", list("ABC")).gather(np.random.default_rng(3).integers(0, 3, n)[order])
    least = np.append(np.minimum.accumulate(order[::-1])[::-1], INF)
    for a in range(0, n, size):
        b = min(a + size, n)
        yield assemble(order[a:b], order[a:b], order[a:b] + 1, pl.DataFrame([k[a:b]]), int(least[b]))


def answer(chunks):
    op = letters(window=8)
    out, most = [], 0
    for chunk in chunks:
        out += op.process(0, chunk).elements()
        most = max(most, op.metrics.state_rows)
    return canonical(out), most


def test_disorder_and_slicing_change_nothing_and_events_are_forgotten(event_levels):
    n = 20_000
    passes_at_once = event_levels == "one table"  # else so few rows are looked at that it takes some chunks
    late = np.argsort(np.arange(n) + np.random.default_rng(5).integers(0, 50, n), kind="stable")
    expected, most = answer(tosses(n, np.arange(n), 500))
    assert len(expected) > n // 20
    assert most < (50 if passes_at_once else n // 4)
    for size in (37, 5000):
        found, most = answer(tosses(n, late, size))
        assert found == expected
        assert most < (200 if passes_at_once else n * 3 // 4)
