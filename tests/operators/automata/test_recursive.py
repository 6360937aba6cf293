"""The recursive plan of an automaton against the definition: what the native operator finds, a loop finds too."""

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from operators.automata.random_automata import (
    DEFINED,
    REGISTERS,
    SCHEMA,
    STEPS,
    TABLE,
    finals,
    payloads,
    shapes,
    table_rows,
    tables,
)
from oracle_check import arrivals_of, check_against_oracle, runs
from plan.catalogue import AsOperator

from cedr import api, automata, testing
from cedr.reference import automata as ra
from cedr.temporal.errors import QueryError

START = {"start": "S", "registers": REGISTERS}


def loop(table, **options):
    events = api.source("a", SCHEMA)
    return AsOperator(automata.automaton(events, table, steps=STEPS, plan="recursive", **START, **options))


def defined(events, table, **options):
    return ra.automaton(events, table, steps=DEFINED, **START, **options)


@given(run=runs(payloads, max_size=6), table=tables, shape=shapes, final=finals, turns=st.sampled_from([1, 2, 64]))
def test_a_fixed_table(run, table, shape, final, turns):
    arrivals, restore_at = run
    check_against_oracle(
        lambda: loop(table, final=final, turns=turns, **shape),
        lambda h: defined(h, table, final=final, **shape),
        arrivals,
        [SCHEMA],
        restore_at,
    )


@given(data=st.data(), shape=shapes, final=finals)
def test_a_table_that_changes_while_the_query_runs(data, shape, final):
    events = data.draw(testing.streams(payloads, max_size=5, closed=True))
    table = data.draw(testing.streams(table_rows, max_size=5, closed=True))
    arrivals = data.draw(arrivals_of([events, table]))
    restore_at = data.draw(st.sets(st.integers(0, max(len(arrivals) - 1, 0)), max_size=2))
    check_against_oracle(
        lambda: loop(api.source("b", TABLE), final=final, **shape),
        lambda g, h: defined(g, h, final=final, **shape),
        arrivals,
        [SCHEMA, TABLE],
        restore_at,
    )
