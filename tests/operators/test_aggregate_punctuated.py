"""Aggregates and top-k with promises about their groups, at every latency."""

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
from cedr.operators.aggregate import AggregateOperator
from cedr.operators.align import AlignOperator
from cedr.operators.levels import CoalesceOperator
from cedr.operators.top_k import TopKOperator
from cedr.plan import aggregates as agg
from cedr.temporal import INF, MIN, Adjust, Cti, Insert, Row
from cedr.temporal.punctuation import punctuation
from cedr.temporal.stream import data

SCHEMA = {"k": pl.String(), "m": pl.Int64(), "v": pl.Int64()}
VALUES = {"k": ["a", "b"], "m": [1, 2], "v": [0, 1, 2]}
payloads = testing.rows(**{name: st.sampled_from(values) for name, values in VALUES.items()})
LATENCIES = ["perfect", "ordered", "eager"]
BY = [("k",), ("k", "m")]
SCHEMES = [("k",), ("m",), ("k", "m"), ("k", "v"), ("v",)]


def shown(rows: pl.DataFrame) -> int:
    return int(rows["v"].sum())


def all_kinds(by, latency):
    """Running sums, live tuples and functions of the user, side by side."""
    return AggregateOperator(
        SCHEMA,
        by,
        {
            "n": agg.Count(),
            "s": agg.Sum("v"),
            "top": agg.Max("v"),
            "last": agg.Last("v"),
            "own": agg.UserDefined(names=("v",), function=shown, result=pl.Int64()),
        },
        latency,
    )


def all_kinds_reference(by):
    def own(events):
        return sum(e.payload.v for e in events)

    return lambda h: ref.aggregate(
        h, by, n=ref.count(), s=ref.sum_("v"), top=ref.max_("v"), last=ref.last("v"), own=own
    )


def top_k(by, latency):
    return TopKOperator(SCHEMA, 1, ["v"], [True], by, latency=latency)


def top_k_reference(by):
    return lambda h: ref.top_k(h, 1, lambda p: p.v, lambda p: tuple(p[name] for name in by))


KINDS = {"aggregates": (all_kinds, all_kinds_reference), "top k": (top_k, top_k_reference)}


@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("kind", KINDS)
@given(run=punctuated_runs(payloads, VALUES))
def test_each_kind(kind, by, latency, run):
    make, oracle = KINDS[kind]
    check_against_oracle(lambda: make(by, latency), oracle(by), run[0], [SCHEMA], run[1])
    check_restored_goes_on_the_same(lambda: make(by, latency), run[0], [SCHEMA], run[1])


@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("kind", KINDS)
@given(run=punctuated_runs(payloads, VALUES, closed=False), data=st.data())
def test_groups_that_are_over_are_emitted_promised_and_gone(kind, by, latency, run, data):
    make, oracle = KINDS[kind]
    keys = rows_of({name: VALUES[name] for name in by})
    over = data.draw(st.lists(st.sampled_from(keys), min_size=1, unique=True))
    operator = check_keys_that_are_over(lambda: make(by, latency), oracle(by), run[0], [SCHEMA], over)
    if set(over) == set(keys):
        assert operator.state_size()[0] == 0
        assert not len(operator.emitted)


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("kind", KINDS)
@given(run=punctuated_runs(payloads, VALUES))
def test_behind_an_align_that_promises_release_nothing_is_taken_back(kind, by, run):
    align = AlignOperator(SCHEMA, flavour="perfect", by=SCHEMES)
    out = through([align, KINDS[kind][0](by, "perfect")], as_chunks(run[0], SCHEMA))
    assert not [e for e in out if isinstance(e, Adjust)]


def step(operator, *elements):
    out = operator.process(0, chunk_of(elements, SCHEMA)).elements()
    return data(out), out


def test_a_group_is_emitted_by_its_own_front():
    # a  [0────10)   [5───────────20)   no more a before 12        cti unknown
    # b  [0────10)
    operator = AggregateOperator(SCHEMA, ["k"], {"n": agg.Count()})
    a, b = Row(k="a", m=1, v=0), Row(k="b", m=1, v=0)
    rows = [Insert(0, 10, a), Insert(5, 20, a), Insert(0, 10, b)]
    emitted, out = step(operator, *rows, punctuation(12, k="a"))
    assert emitted == [Insert(0, 5, Row(k="a", n=1)), Insert(5, 10, Row(k="a", n=2))]
    assert promised(out, Row(k="a")) == 10  # [10, 20) is not over
    emitted, out = step(operator, punctuation(k="a"))
    assert emitted == [Insert(10, 20, Row(k="a", n=1))]
    assert promised(out, Row(k="a")) == INF
    assert promised(out, Row(k="b")) == MIN


def test_a_covered_row_shows_no_progress_of_other_groups():
    # a  no more a, then its last row at 100; b [0, 10) may still change, as time has reached 0 only
    operator = AggregateOperator(SCHEMA, ["k"], {"n": agg.Count()})
    a, b = Row(k="a", m=1, v=0), Row(k="b", m=1, v=0)
    emitted, _ = step(operator, Insert(0, 10, b), Insert(100, 110, a), punctuation(k="a"))
    assert emitted == [Insert(100, 110, Row(k="a", n=1))]
    emitted, _ = step(operator, Insert(30, 31, b))  # not covered: now time has reached 30
    assert emitted == [Insert(0, 10, Row(k="b", n=1))]


def test_promises_about_other_columns_than_the_groups_are_not_passed():
    operator = AggregateOperator(SCHEMA, ["k"], {"n": agg.Count()})
    _, out = step(operator, punctuation(v=1), punctuation(k="a", v=1), Cti(5))
    assert out == [Cti(5)]


def test_state_stays_flat_when_every_group_is_over_at_some_time():
    operator, most = AggregateOperator(SCHEMA, ["m"], {"n": agg.Count(), "top": agg.Max("v")}), 0
    for batch in range(30):
        keys = np.arange(batch * 500, batch * 500 + 500)
        values = {"k": ["x"] * 500, "m": keys, "v": keys}
        rows = pl.DataFrame({"_vs": keys, "_ve_old": keys, "_ve_new": np.full(500, INF), **values})
        chunk = chunk_of([punctuation(m=list(map(int, keys)))], SCHEMA).with_rows(rows)
        assert len(operator.process(0, chunk)) == 500
        most = max(most, operator.state_size()[0], len(operator.groups), len(operator.live["v"].tuples[0]))
    assert most < 5000


@pytest.mark.parametrize("flavour", ["ordered", "perfect"])
@pytest.mark.parametrize("by", BY)
@given(
    run=punctuated_runs(payloads, VALUES, max_punctuations=10), schemes=st.sets(st.sampled_from(SCHEMES), min_size=1)
)
def test_behind_several_operators_nothing_is_taken_back(by, flavour, schemes, run):
    stages = [
        AlignOperator(SCHEMA, flavour=flavour, by=schemes),
        CoalesceOperator(SCHEMA),
        KINDS["aggregates"][0](by, "perfect"),
    ]
    out = through(stages, as_chunks(run[0], SCHEMA))
    assert not [e for e in out if isinstance(e, Adjust)]
