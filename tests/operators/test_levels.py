"""Distinct, coalesce, difference and intersect against the oracle, at every latency."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_check import check_against_oracle, run, runs

from cedr import reference as ref
from cedr.operators import levels
from cedr.temporal import END, INF, Cti, Insert, Row, ordered, perfect
from cedr.temporal.stream import data
from cedr.testing import rows, streams

SCHEMA = {"p": pl.String}
LATENCIES = ["perfect", "ordered", "eager"]
payloads = rows(p=st.sampled_from("ab"))
ONE_INPUT = {"DistinctOperator": ref.distinct, "CoalesceOperator": ref.coalesce}
TWO_INPUTS = {"DifferenceOperator": ref.difference, "IntersectOperator": ref.intersect}


@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("name", ONE_INPUT)
@given(run=runs(payloads))
def test_one_input(name, latency, run):
    make = getattr(levels, name)
    check_against_oracle(lambda: make(SCHEMA, latency), ONE_INPUT[name], run[0], [SCHEMA], run[1])


@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("name", TWO_INPUTS)
@given(run=runs(payloads, ports=2, max_size=4))
def test_two_inputs(name, latency, run):
    make = getattr(levels, name)
    check_against_oracle(lambda: make(SCHEMA, latency), TWO_INPUTS[name], run[0], [SCHEMA] * 2, run[1])


@pytest.mark.parametrize("size", [1, 100])
@given(stream=streams(payloads, ordered=True, adjusts=False, closed=True))
def test_perfect_input_gives_perfect_output(size, stream):
    slices = [(0, stream[i : i + size]) for i in range(0, len(stream), size)]
    out = [e for part in run(lambda: levels.CoalesceOperator(SCHEMA), slices, [SCHEMA]) for e in part]
    assert perfect(data(out))


@pytest.mark.parametrize("size", [1, 100])
@given(stream=streams(payloads, ordered=True, closed=True))
def test_ordered_input_gives_ordered_output(size, stream):
    slices = [(0, stream[i : i + size]) for i in range(0, len(stream), size)]
    out = [e for part in run(lambda: levels.CoalesceOperator(SCHEMA, "ordered"), slices, [SCHEMA]) for e in part]
    assert ordered(data(out))


def test_an_event_that_may_go_on_is_not_emitted_as_over():
    # a [0,1)  cti 1  a [1,∞): one event, as the second starts where the first ends
    a = Row(p="a")
    slices = [(0, [e]) for e in (Insert(0, 1, a), Cti(1), Insert(1, INF, a), END)]
    out = [e for part in run(lambda: levels.CoalesceOperator(SCHEMA), slices, [SCHEMA]) for e in part]
    assert data(out) == [Insert(0, INF, a)]
