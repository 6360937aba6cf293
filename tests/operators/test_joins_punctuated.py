"""Joins, clip and session with promises about their keys: emitted, forgotten and promised key by key."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_check import check_against_oracle, run
from punctuated_check import punctuated_runs

from cedr import reference as ref
from cedr.columnar import index
from cedr.columnar.chunk import chunk_of
from cedr.operators.clip import ClipOperator
from cedr.operators.join import JoinOperator
from cedr.operators.outer_join import OuterJoinOperator
from cedr.operators.session import SessionOperator
from cedr.temporal import INF, Cti, Insert, Row
from cedr.temporal.punctuation import OneOf, Range, puncts, punctuation
from cedr.temporal.stream import data
from cedr.testing import rows

pytestmark = pytest.mark.usefixtures("changing_layout")

SCHEMA = {"k": pl.Int64, "v": pl.String}
RIGHT = {"w": pl.String, "j": pl.Int64}
payloads = rows(k=st.one_of(st.none(), st.integers(0, 2)), v=st.sampled_from("ab"))
ABOUT = {"k": [0, 1, 2], "v": ["a", "b"]}
meeting = rows(k=st.sampled_from([0, 0, 0, 1]), v=st.just("a"))
"""Payloads that often have a key in common."""
RESIDUAL = pl.col("v") < pl.col("v_right")


def equal_keys(p, q):
    return p.k is not None and p.k == q.k


def smaller(p, q):
    return equal_keys(p, q) and p.v < q.v


def pair(p, q):
    return Row(k=(p or q).k, v=p.v if p else None, v_right=q.v if q else None)


JOINS = {
    "inner": lambda on: lambda a, b: ref.join(a, b, on, combine=pair),
    "left": lambda on: lambda a, b: ref.join(a, b, on, "left", pair),
    "full": lambda on: lambda a, b: ref.join(a, b, on, "full", pair),
    "semi": lambda on: lambda a, b: ref.semi_join(a, b, on),
    "anti": lambda on: lambda a, b: ref.anti_join(a, b, on),
}


def join(how, residual=None, latency="perfect"):
    if how == "inner":
        return lambda: JoinOperator(SCHEMA, SCHEMA, ["k"], ["k"], residual)
    return lambda: OuterJoinOperator(SCHEMA, SCHEMA, ["k"], ["k"], how, residual, latency=latency)


@pytest.mark.parametrize("latency", ["perfect", "ordered", "eager"])
@pytest.mark.parametrize("how", JOINS)
@given(run=punctuated_runs(payloads, ABOUT, ports=2, max_size=5))
def test_joins(how, latency, run):
    check_against_oracle(join(how, None, latency), JOINS[how](equal_keys), run[0], [SCHEMA] * 2, run[1])


@pytest.mark.parametrize("how", JOINS)
@given(run=punctuated_runs(payloads, ABOUT, ports=2, max_size=5))
def test_joins_with_a_residual_predicate(how, run):
    check_against_oracle(join(how, RESIDUAL), JOINS[how](smaller), run[0], [SCHEMA] * 2, run[1])


@given(punctuated_runs(meeting, {"k": [0, 1]}, ports=2, max_punctuations=8))
def test_clip(run):
    make = lambda: ClipOperator(SCHEMA, SCHEMA, ["k"], ["k"])  # noqa: E731
    check_against_oracle(make, lambda a, b: ref.clip(a, b, equal_keys), run[0], [SCHEMA] * 2, run[1])


@pytest.mark.parametrize("by", [["k"], ["k", "v"], []])
@given(run=punctuated_runs(payloads, ABOUT))
def test_session(by, run):
    oracle = lambda h: ref.session(h, 4, lambda p: tuple(p[name] for name in by))  # noqa: E731
    check_against_oracle(lambda: SessionOperator(SCHEMA, 4, by), oracle, run[0], [SCHEMA], run[1])


# --- pass, prop and purge by example ---------------------------------------------------------------------------------


def e(k, vs=0, ve=INF, v="a"):
    return Insert(vs, ve, Row(k=k, v=v))


def promised(make, *chunks, restore_at=()):
    arrivals = [(port, elements) for port, *elements in chunks]
    return [set(puncts(out)) for out in run(make, arrivals, [SCHEMA] * 2, restore_at)]


@pytest.mark.parametrize("how", JOINS)
def test_the_output_promises_of_a_key_what_both_sides_do(how, monkeypatch):
    # a key that is forgotten has no tuples, and then what one side promises is enough
    monkeypatch.setattr(index, "WORTH_COMPACTING", 100)
    rows = [(port, e(k, ve=2)) for port in (0, 1) for k in (1, 2)]
    chunks = [(0, punctuation(8, k=1)), (1, punctuation(6, k=1)), (1, punctuation(k=OneOf([1, 2]))), (0, Cti(4))]
    expected = [set(), {punctuation(6, k=1)}, {punctuation(8, k=1)}, {punctuation(4, k=2)}]
    assert promised(join(how), *rows, *chunks)[4:] == expected
    assert promised(join(how), *rows, *chunks, restore_at=range(8))[4:] == expected


@pytest.mark.parametrize("how", ["inner", "semi", "anti"])
def test_of_a_key_without_tuples_what_the_left_promises_is_enough(how):
    chunks = [(0, punctuation(8, k=1)), (1, e(1)), (0, punctuation(k=Range(1, 2)))]
    assert promised(join(how), *chunks)[0] == {punctuation(8, k=1)}
    assert punctuation(k=2) in promised(join(how), *chunks)[2]


@pytest.mark.parametrize("how", JOINS)
def test_promises_about_other_columns_do_not_pass(how):
    both = [(0, punctuation(v="a")), (1, punctuation(v="a"))]
    assert promised(join(how), *both) == [set(), set()]


def test_a_promise_has_the_name_the_key_has_in_the_output():
    join = lambda: JoinOperator(SCHEMA, RIGHT, ["k"], ["j"])  # noqa: E731
    full = lambda: OuterJoinOperator(SCHEMA, RIGHT, ["k"], ["j"], "full")  # noqa: E731
    arrivals = [(1, [punctuation(5, j=Range(1, 3))]), (0, [punctuation(9, k=2)])]
    by_either = [[punctuation(5, k=Range(1, 3))], [punctuation(9, k=2)]]
    assert [puncts(out) for out in run(join, arrivals, [SCHEMA, RIGHT])] == by_either
    assert [puncts(out) for out in run(full, arrivals, [SCHEMA, RIGHT])] == [[], [punctuation(5, k=2)]]


#   left    1 [0, ∞)                                       no more of 1 before 5      no more of 1
#   right             1 [2, ∞), and no more of 1 at all
#   anti                                                   1 [0, 2), and so far sure


def test_an_anti_join_emits_a_key_by_the_keys_own_front():
    operator = join("anti")()
    feed = lambda port, *elements: operator.process(port, chunk_of(elements, SCHEMA)).elements()  # noqa: E731
    assert feed(0, e(1)) == []
    assert feed(1, e(1, vs=2), punctuation(k=1)) == []  # it does not show how far the left is
    assert feed(0, punctuation(5, k=1)) == [Insert(0, 2, Row(k=1, v="a")), punctuation(5, k=1)]
    assert feed(0, punctuation(k=1)) == [punctuation(k=1)]
    assert operator.metrics.state_rows == 0


def flat(operator, promise_left, promise_right, port_of_batches=(0, 1)):
    """State rows after each batch of keys that live for ever, each promised once it is through."""
    sizes = []
    for batch in range(60):
        keys = range(100 * batch, 100 * batch + 100)
        for port in port_of_batches:
            operator.process(port, chunk_of([e(k) for k in keys], SCHEMA))
        for port, promises in ((0, promise_left), (1, promise_right)):
            if promises and port < operator.ports:
                operator.process(port, chunk_of([punctuation(k=k) for k in keys], SCHEMA))
        sizes.append(operator.metrics.state_rows)
    return sizes


MAKERS = {
    **{how: join(how) for how in JOINS},
    "clip": lambda: ClipOperator(SCHEMA, SCHEMA, ["k"], ["k"]),
    "session": lambda: SessionOperator(SCHEMA, 4, ["k"]),
}


@pytest.mark.parametrize("name", MAKERS)
def test_keys_that_are_done_leave_no_state(name):
    operator = MAKERS[name]()
    assert max(flat(operator, True, True, range(operator.ports))) == 0
    assert operator.metrics.state_bytes < 400_000


@pytest.mark.parametrize("name", ["inner", "semi", "anti", "clip"])
def test_without_more_of_the_left_the_right_is_of_no_use(name):
    """Left rows of a key are over before its right ones come: these are not kept."""
    operator = MAKERS[name]()
    for k in range(20):
        operator.process(0, chunk_of([punctuation(k=k)], SCHEMA))
        operator.process(1, chunk_of([e(k), e(k, vs=3)], SCHEMA))
    assert operator.metrics.state_rows == 0


def test_the_inner_join_forgets_each_side_by_the_other():
    operator = join("inner")()
    operator.process(0, chunk_of([e(1), e(2, ve=9)], SCHEMA))
    operator.process(1, chunk_of([punctuation(9, k=2)], SCHEMA))
    assert operator.metrics.state_rows == 1  # what ends at 9 meets nothing from 9 on
    operator.process(1, chunk_of([punctuation(k=1)], SCHEMA))
    assert operator.metrics.state_rows == 0


def test_a_session_is_emitted_and_promised_by_its_groups_front():
    operator = SessionOperator(SCHEMA, 4, ["k"])
    feed = lambda *elements: operator.process(0, chunk_of(elements, SCHEMA)).elements()  # noqa: E731
    assert len(data(feed(e(1, vs=3), e(1, vs=5), e(2, vs=4)))) == 3
    assert feed(punctuation(8, k=1)) == [punctuation(3, k=1)]  # a start at 8 still reaches the session [3, 9)
    assert feed(punctuation(9, k=1)) == [punctuation(9, k=1)]
    assert operator.metrics.state_rows == 1
