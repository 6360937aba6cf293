"""Align with promises about parts of its input: which rows they release, and what is promised further on."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_check import check_against_oracle
from punctuated_check import about, check_restored_goes_on_the_same, promised, punctuated_runs, rows_of

from cedr import testing
from cedr.columnar.chunk import chunk_of
from cedr.operators.align import AlignOperator
from cedr.temporal import INF, MIN, Adjust, Cti, Insert, Row, canonical
from cedr.temporal.punctuation import punctuation
from cedr.temporal.stream import closed_up_to, data, ordered

SCHEMA = {"k": pl.String(), "m": pl.Int64()}
VALUES = {"k": ["a", "b"], "m": [1, 2, 3]}
SCHEMES = [("k",), ("m",), ("k", "m")]
FLAVOURS = ["ordered", "perfect"]
payloads = testing.rows(**{name: st.sampled_from(values) for name, values in VALUES.items()})
runs = punctuated_runs(payloads, VALUES)


def identity(history):
    return history


@pytest.mark.parametrize("flavour", FLAVOURS)
@given(run=runs, by=st.sets(st.sampled_from(SCHEMES)), block=st.one_of(st.just(INF), st.integers(0, 25)))
def test_it_emits_the_same(flavour, run, by, block):
    check_against_oracle(lambda: AlignOperator(SCHEMA, block, flavour, by=by), identity, run[0], [SCHEMA], run[1])
    check_restored_goes_on_the_same(lambda: AlignOperator(SCHEMA, block, flavour, by=by), run[0], [SCHEMA], run[1])


@given(run=runs)
def test_perfect_rows_are_never_taken_back_and_in_order_where_they_agree(run):
    out = check_against_oracle(
        lambda: AlignOperator(SCHEMA, flavour="perfect", by=SCHEMES), identity, run[0], [SCHEMA], run[1]
    )
    assert not [e for e in out if isinstance(e, Adjust)]
    for key in rows_of(VALUES):
        assert ordered([e for e in data(out) if e.payload == key])


@given(run=runs)
def test_what_a_promise_settles_leaves_at_once_and_the_promise_with_it(run):
    align, sent, out = AlignOperator(SCHEMA, by=SCHEMES), [], []
    for _, elements in run[0]:
        sent += elements
        out += align.process(0, chunk_of(elements, SCHEMA)).elements()
        for key in rows_of(VALUES):
            until = max(closed_up_to(sent), promised(sent, key))
            assert max(closed_up_to(out), promised(out, key)) == until
            testing.assert_same(about(canonical(out), key).to(until), about(canonical(sent), key).to(until))
    assert align.state_size()[0] == 0


@given(run=runs)
def test_parts_are_released_one_by_one_in_their_order(run):
    out = check_against_oracle(lambda: AlignOperator(SCHEMA, by=SCHEMES), identity, run[0], [SCHEMA], run[1])
    for key in rows_of(VALUES):
        assert ordered([e for e in data(out) if e.payload == key])


def step(align, *elements):
    out = align.process(0, chunk_of(elements, SCHEMA)).elements()
    return data(out), out


A, B = Row(k="a", m=1), Row(k="b", m=1)


def test_a_promise_releases_the_rows_it_settles():
    # b [7,8)   a [5,9)  a [3,4)    no more a before 5     no more a before 6
    align = AlignOperator(SCHEMA, by=[("k",)])
    emitted, out = step(align, Insert(7, 8, B), Insert(5, 9, A), Insert(3, 4, A), punctuation(5, k="a"))
    assert emitted == [Insert(3, 4, A)]
    assert promised(out, A) == 5
    assert step(align, punctuation(6, k="a"))[0] == [Insert(5, 9, A)]
    assert step(align, Cti(8))[0] == [Insert(7, 8, B)]


def test_rows_that_come_after_their_promise_leave_when_it_covers_them():
    align = AlignOperator(SCHEMA, by=[("k",)])
    step(align, punctuation(5, k="a"), Cti(1))
    assert step(align, Insert(5, 9, A))[0] == []
    assert step(align, Insert(6, 9, A), punctuation(k="a"))[0] == [Insert(5, 9, A), Insert(6, 9, A)]


def test_other_promises_release_nothing_and_wait_for_what_is_held():
    align = AlignOperator(SCHEMA, by=[("k",)])
    emitted, out = step(align, Insert(5, 9, A), punctuation(8, m=1), punctuation(m=2))
    assert emitted == []
    assert promised(out, A) == 5
    assert promised(out, Row(k="a", m=2)) == INF
    emitted, out = step(align, punctuation(6, k="a"))
    assert emitted == [Insert(5, 9, A)]
    assert promised(out, B) == 8


def test_perfect_rows_wait_for_those_they_agree_with():
    # a [0────────20)   a [3,4)     no more a before 10: [0,20) may still change, and [3,4) comes after it
    # b     [3,4)                   no more b before 10
    align = AlignOperator(SCHEMA, flavour="perfect", by=[("k",)])
    emitted, out = step(align, Insert(0, 20, A), Insert(3, 4, A), Insert(3, 4, B), punctuation(10, k=["a", "b"]))
    assert emitted == [Insert(3, 4, B)]
    assert (promised(out, A), promised(out, B)) == (0, 10)
    assert step(align, punctuation(21, k="a"))[0] == [Insert(0, 20, A), Insert(3, 4, A)]


def test_by_the_clock_a_promise_that_waited_passes_with_its_rows():
    now = [0]
    align = AlignOperator(SCHEMA, 10, clock=lambda: now[0])
    _, out = step(align, Insert(5, 9, A), punctuation(8, k="a"))
    assert promised(out, A) == 5
    now[0] = 10
    out = align.tick().elements()
    assert data(out) == [Insert(5, 9, A)]
    assert promised(out, A) == 8
    assert promised(align.tick().elements(), A) == MIN
