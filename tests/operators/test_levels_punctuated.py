"""Distinct, coalesce, difference and intersect with promises about payloads, at every latency."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_check import check_against_oracle
from punctuated_check import (
    as_chunks,
    check_keys_that_are_over,
    check_restored_goes_on_the_same,
    promised,
    punctuated_runs,
    rows_of,
    through,
)

from cedr import reference as ref
from cedr import testing
from cedr.columnar.chunk import chunk_of
from cedr.operators import levels
from cedr.operators.align import AlignOperator
from cedr.temporal import INF, MIN, Adjust, Cti, Insert, Row
from cedr.temporal.punctuation import punctuation
from cedr.temporal.stream import data

SCHEMA = {"p": pl.String(), "n": pl.Int64()}
VALUES = {"p": ["a", "b"], "n": [1, 2, 3]}
KEYS = rows_of(VALUES)
payloads = testing.rows(p=st.sampled_from(VALUES["p"]), n=st.sampled_from(VALUES["n"]))
LATENCIES = ["perfect", "ordered", "eager"]
ORACLES = {
    "DistinctOperator": ref.distinct,
    "CoalesceOperator": ref.coalesce,
    "DifferenceOperator": ref.difference,
    "IntersectOperator": ref.intersect,
}


def ports_of(name):
    return getattr(levels, name).ports


@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("name", ORACLES)
@given(data=st.data())
def test_each_operator(name, latency, data):
    make, ports = getattr(levels, name), ports_of(name)
    arrivals, restore_at = data.draw(punctuated_runs(payloads, VALUES, ports, max_size=6 - ports))
    check_against_oracle(lambda: make(SCHEMA, latency), ORACLES[name], arrivals, [SCHEMA] * ports, restore_at)
    check_restored_goes_on_the_same(lambda: make(SCHEMA, latency), arrivals, [SCHEMA] * ports, restore_at)


@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("name", ORACLES)
@given(data=st.data())
def test_payloads_that_are_over_are_emitted_promised_and_gone(name, latency, data):
    make, ports = getattr(levels, name), ports_of(name)
    arrivals, _ = data.draw(punctuated_runs(payloads, VALUES, ports, closed=False, max_size=5))
    over = data.draw(st.lists(st.sampled_from(KEYS), min_size=1, unique=True))
    operator = check_keys_that_are_over(lambda: make(SCHEMA, latency), ORACLES[name], arrivals, [SCHEMA] * ports, over)
    left = operator.payloads.take(np.unique(operator.endpoints[0])).rows(named=True)
    assert not [row for row in left if Row(row) in over]
    if set(over) == set(KEYS):
        assert operator.state_size()[0] == 0
        assert not len(operator.emitted)


SCHEMES = [("p",), ("n",), ("n", "p")]


@pytest.mark.parametrize("name", ["DistinctOperator", "CoalesceOperator"])
@pytest.mark.parametrize("flavour", ["ordered", "perfect"])
@given(run=punctuated_runs(payloads, VALUES, max_punctuations=10))
def test_behind_an_align_that_promises_release_nothing_is_taken_back(flavour, name, run):
    align = AlignOperator(SCHEMA, flavour=flavour, by=SCHEMES)
    out = through([align, getattr(levels, name)(SCHEMA)], as_chunks(run[0], SCHEMA))
    assert not [e for e in out if isinstance(e, Adjust)]


# --- the rules of the paper, with the time drawn -------------------------------------------------------------------

A, B = Row(p="a", n=1), Row(p="b", n=2)


def step(operator, port, *elements):
    out = operator.process(port, chunk_of(elements, SCHEMA)).elements()
    return data(out), out


def test_difference_passes_what_the_right_promises_not_to_bring():
    # left   a [0,∞)  b [0,∞)  no more of both before 1
    # right                                            no more a
    operator = levels.DifferenceOperator(SCHEMA, "ordered")
    emitted, _ = step(operator, 0, Insert(0, INF, A), Insert(0, INF, B), punctuation(1, p=["a", "b"]))
    assert emitted == []
    emitted, out = step(operator, 1, punctuation(p="a"))
    assert emitted == [Insert(0, INF, A)]
    assert promised(out, A) == 1  # the left may bring another a from 1 on
    assert promised(out, B) == MIN


def test_difference_forgets_the_right_of_what_the_left_will_not_bring():
    operator = levels.DifferenceOperator(SCHEMA)
    step(operator, 1, Insert(0, INF, A), Insert(0, INF, B))
    assert operator.state_size()[0] == 4
    _, out = step(operator, 0, punctuation(p="a"))
    assert promised(out, A) == INF  # whatever the right does
    assert operator.state_size()[0] == 2
    step(operator, 1, Insert(5, 9, A), Adjust(0, INF, 3, A))
    assert operator.state_size()[0] == 2
    assert step(operator, 0, Insert(1, 2, B))[0] == []


def test_difference_keeps_the_right_as_long_as_the_left_has_copies():
    # left   a [0,10)  no more a
    # right       a [4,6)    cti 5        a adjusted to [4,8)       cti 20
    operator = levels.DifferenceOperator(SCHEMA)
    step(operator, 0, Insert(0, 10, A), punctuation(p="a"))
    step(operator, 1, Insert(4, 6, A), Cti(5))
    emitted, out = step(operator, 1, Adjust(4, 6, 8, A), Cti(20))
    assert emitted == [Insert(8, 10, A)]
    assert promised(out, A) == INF
    assert operator.state_size()[0] == 0


def test_intersect_needs_both():
    operator = levels.IntersectOperator(SCHEMA)
    step(operator, 0, Insert(0, 10, A), Insert(0, 10, B))
    _, out = step(operator, 1, punctuation(n=1))
    assert promised(out, A) == INF
    assert operator.state_size()[0] == 2


def test_state_stays_flat_when_every_payload_is_over_at_some_time():
    operator, most = levels.CoalesceOperator(SCHEMA), 0
    for batch in range(30):
        keys = np.arange(batch * 500, batch * 500 + 500)
        rows = pl.DataFrame({"_vs": keys, "_ve_old": keys, "_ve_new": np.full(500, INF), "p": ["x"] * 500, "n": keys})
        chunk = chunk_of([punctuation(n=list(map(int, keys)))], SCHEMA).with_rows(rows)
        assert len(operator.process(0, chunk)) == 500
        most = max(most, operator.state_size()[0], len(operator.payloads))
    assert most < 5000
