"""The native automaton against its definition: any table, order, window and key, any telling and slicing."""

from dataclasses import replace

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

from cedr import api, automata, testing
from cedr.plan.physical import operator_of
from cedr.reference import automata as ra
from cedr.temporal import END, INF, Adjust, Cti, Insert, Row


def operator(table, **options):
    events = api.source("events", SCHEMA)
    stream = automata.automaton(events, table, start="S", steps=STEPS, registers=REGISTERS, **options)
    return operator_of(stream.plan, [])


def defined(events, table, **options):
    return ra.automaton(events, table, start="S", steps=DEFINED, registers=REGISTERS, **options)


@given(run=runs(payloads, max_size=7), table=tables, shape=shapes, final=finals)
def test_a_fixed_table(run, table, shape, final):
    arrivals, restore_at = run
    check_against_oracle(
        lambda: operator(table, final=final, **shape),
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
        lambda: operator(api.source("table", TABLE), final=final, **shape),
        lambda g, h: defined(g, h, final=final, **shape),
        arrivals,
        [SCHEMA, TABLE],
        restore_at,
    )
