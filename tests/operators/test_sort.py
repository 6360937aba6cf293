"""Sort: the history stays what it is, rows leave in the requested order, as early as promises allow and no earlier."""

from datetime import date

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_check import check_against_oracle, run
from punctuated_check import punctuated_runs

from cedr import reference as ref
from cedr.columnar.chunk import chunk_of
from cedr.operators.sort import SortOperator
from cedr.temporal import END, Adjust, Cti, Event, Insert, Row, canonical, retract
from cedr.temporal.punctuation import Range, matches, puncts, punctuation
from cedr.temporal.stream import data
from cedr.temporal.time import INF
from cedr.testing import rows

SCHEMA = {"k": pl.Int64, "v": pl.String}
payloads = rows(k=st.one_of(st.none(), st.integers(0, 3)), v=st.sampled_from("abc"))
ABOUT = {"k": [0, 1, 2, 3], "v": ["a", "b", "c"]}
ORDERS = {"up": (["k"], False), "down": (["k"], True), "texts": (["v"], False), "texts down": (["v", "k"], True)}


def sort(by, descending):
    return lambda: SortOperator(SCHEMA, by, [descending] * len(by))


def emitted(elements):
    return [Event(e.vs, e.ve, e.payload) for e in data(elements)]


@pytest.mark.parametrize("name", ORDERS)
@given(run=punctuated_runs(payloads, ABOUT))
def test_the_history_stays_and_rows_leave_in_order(name, run):
    by, descending = ORDERS[name]
    out = check_against_oracle(sort(by, descending), lambda h: h, run[0], [SCHEMA], run[1])
    assert all(isinstance(e, Insert) for e in data(out))
    assert emitted(out) == ref.sort(canonical(out), by, descending)


def covered(elements, name, value, descending):
    """Whether promises without end are about the value and all that come before it; values are few."""
    before = [v for v in ABOUT[name] if v != value and (v > value) == descending]
    promised = [p[name] for p in puncts(elements) if p.before == INF and p.attributes == (name,)]
    ends = [p for p in promised if isinstance(p, Range) and (p.high if descending else p.low) is None]
    return bool(ends) and all(any(matches(v, p) for p in promised) for v in (*before, value))


@given(run=punctuated_runs(payloads, ABOUT), descending=st.booleans())
def test_whole_numbers_leave_as_soon_as_promises_allow(run, descending):
    arrivals, _ = run
    come, gone = [], []
    for (_, elements), produced in zip(arrivals, run_sort(arrivals, descending), strict=True):
        come += elements
        gone += produced
        if END in come:
            break
        ready = [
            e for e in canonical(come) if e.payload["k"] is not None and covered(come, "k", e.payload["k"], descending)
        ]
        assert sorted(emitted(gone), key=repr) == sorted(ready, key=repr)


def run_sort(arrivals, descending):
    return run(sort(["k"], descending), arrivals, [SCHEMA])


# --- by example ------------------------------------------------------------------------------------------------------


def fed(operator, *chunks, schema=SCHEMA):
    return [operator.process(0, chunk_of(chunk, schema)).elements() for chunk in chunks]


def a(k, vs=0, ve=9):
    return Insert(vs, ve, Row(k=k, v="a"))


#   arrives   3  1  [no more up to 1]  2  adjust 3  [no more of 2]  [no more of 3]
#   leaves          1                               2               3, with the end it has by then


def test_a_value_leaves_when_it_and_all_before_it_are_complete():
    out = fed(
        sort(["k"], False)(),
        [a(3), a(1)],
        [punctuation(k=Range(None, 1))],
        [a(2), Adjust(0, 9, 5, Row(k=3, v="a"))],
        [punctuation(k=3)],
        [punctuation(k=2)],
    )
    assert [emitted(o) for o in out] == [
        [],
        [Event(0, 9, Row(k=1, v="a"))],
        [],
        [],
        [Event(0, 9, Row(k=2, v="a")), Event(0, 5, Row(k=3, v="a"))],
    ]
    assert puncts(out[1]) == [punctuation(k=Range(None, 1))]
    assert puncts(out[3]) == [punctuation(0, k=3)]  # a row of it is held, from 0 on
    assert puncts(out[4]) == [punctuation(k=Range(2, 3))]


def test_a_cti_lets_nothing_go_and_promises_up_to_the_first_row_held():
    out = fed(
        sort(["k"], False)(), [a(1, vs=3), a(2, vs=7), Cti(5)], [retract(3, 9, Row(k=1, v="a"))], [Cti(20)], [END]
    )
    assert out == [[Cti(3)], [Cti(5)], [Cti(7)], [a(2, vs=7), END]]


def test_a_promise_for_a_time_lets_nothing_go():
    out = fed(sort(["k"], False)(), [a(1), punctuation(10, k=Range(None, 5))])
    assert emitted(out[0]) == []


def test_missing_values_come_last_and_leave_when_they_too_are_complete():
    everything = punctuation(k=Range(None, None))
    out = fed(sort(["k"], False)(), [a(None), a(1)], [everything], [punctuation(k=None)])
    assert [emitted(o) for o in out] == [[], [Event(0, 9, Row(k=1, v="a"))], [Event(0, 9, Row(k=None, v="a"))]]


def test_from_the_least_number_of_a_small_type_is_from_the_beginning():
    schema = {"k": pl.UInt8, "v": pl.String}
    out = fed(SortOperator(schema, ["k"], [False]), [a(1), punctuation(k=Range(0, 1))], schema=schema)
    assert emitted(out[0]) == [Event(0, 9, Row(k=1, v="a"))]
    out = fed(SortOperator(schema, ["k"], [True]), [a(200), punctuation(k=Range(200, 255))], schema=schema)
    assert emitted(out[0]) == [Event(0, 9, Row(k=200, v="a"))]


def test_dates():
    schema = {"k": pl.Date, "v": pl.String}
    days = [date(2024, 5, d) for d in (3, 1, 2)]
    out = fed(SortOperator(schema, ["k"], [False]), [*map(a, days), punctuation(k=Range(None, days[2]))], schema=schema)
    assert [e.payload["k"] for e in emitted(out[0])] == [days[1], days[2]]


def test_rows_that_left_are_forgotten():
    operator = SortOperator(SCHEMA, ["k"], [False])
    for batch in range(50):
        events = [a(100 * batch + i) for i in range(100)]
        operator.process(0, chunk_of([*events, punctuation(k=Range(None, 100 * batch + 89))], SCHEMA))
    assert operator.metrics.state_rows == 10
    assert operator.metrics.rows_out == 4990
    assert len(operator.payloads) < 4200
