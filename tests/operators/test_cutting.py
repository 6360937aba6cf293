"""Chop, clip, session windows and top-k against the oracle."""

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_check import check_against_oracle, run, runs

from cedr import reference as ref
from cedr.operators.chop import ChopOperator
from cedr.operators.clip import ClipOperator
from cedr.operators.session import SessionOperator
from cedr.operators.top_k import TopKOperator
from cedr.temporal import END, INF, Insert, QueryError, Row, canonical
from cedr.testing import rows, streams

SCHEMA = {"k": pl.Int64, "v": pl.Int64}
payloads = rows(k=st.one_of(st.none(), st.integers(0, 1)), v=st.one_of(st.none(), st.integers(0, 3)))


@given(stream=streams(payloads, infinite=False, adjusts=False, closed=True), period=st.integers(1, 6))
def test_chop(stream, period):
    make = lambda: ChopOperator(SCHEMA, period, 1)  # noqa: E731
    check_against_oracle(make, lambda h: ref.chop(h, period, 1), [(0, stream)], [SCHEMA])


@given(st.integers(0, 9), st.integers(1, 9), st.lists(st.integers(0, 12), max_size=4), st.integers(1, 5))
def test_chop_of_adjusts(vs, length, ends, period):
    from cedr.temporal import END, Adjust

    p, stream, end = Row(k=0, v=0), [Insert(vs, vs + length, Row(k=0, v=0))], vs + length
    for e in ends:
        if e > vs and e != end:
            stream.append(Adjust(vs, end, e, p))
            end = e
    arrivals = [(0, [e]) for e in [*stream, END]]
    check_against_oracle(lambda: ChopOperator(SCHEMA, period), lambda h: ref.chop(h, period), arrivals, [SCHEMA])


def test_chop_refuses_a_lifetime_without_end():
    with pytest.raises(QueryError, match="has no end, so its pieces cannot be counted"):
        run(lambda: ChopOperator(SCHEMA, 5), [(0, [Insert(0, INF, Row(k=1, v=1))])], [SCHEMA])


@pytest.mark.usefixtures("layout")
@given(runs(payloads, ports=2))
def test_clip(run):
    def on(p, q):
        return p.k is not None and p.k == q.k

    make = lambda: ClipOperator(SCHEMA, SCHEMA, ["k"], ["k"])  # noqa: E731
    check_against_oracle(make, lambda a, b: ref.clip(a, b, on), run[0], [SCHEMA] * 2, run[1])


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("by", [(), ("k",)])
@given(run=runs(payloads, max_size=7), timeout=st.integers(1, 6))
def test_session(by, run, timeout):
    make = lambda: SessionOperator(SCHEMA, timeout, by)  # noqa: E731
    oracle = lambda h: ref.session(h, timeout, lambda p: tuple(p[name] for name in by))  # noqa: E731
    check_against_oracle(make, oracle, run[0], [SCHEMA], run[1])


@pytest.mark.parametrize("latency", ["perfect", "ordered", "eager"])
@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("rank", [None, "place"])
@given(run=runs(payloads), k=st.sampled_from([1, 2, 3, 10**12]))
def test_top_k(latency, descending, rank, run, k):
    check_against_oracle(
        lambda: TopKOperator(SCHEMA, k, ["v"], [descending], ["k"], rank, latency),
        lambda h: ref.top_k(h, k, lambda p: p.v, lambda p: p.k, descending, rank),
        run[0],
        [SCHEMA],
        run[1],
    )


@pytest.mark.parametrize("descending", [True, False])
@given(
    run=runs(rows(k=st.none() | st.integers(0, 1), x=st.none() | st.sampled_from([0.0, -0.0, 1.5, math.inf, math.nan])))
)
def test_top_k_and_sort_have_one_order(descending, run):
    """Missing values last, NaN above every number, one zero; ties by payload."""
    schema = {"k": pl.Int64, "x": pl.Float64}
    check_against_oracle(
        lambda: TopKOperator(schema, 2, ["x", "k"], [descending] * 2),
        lambda h: ref.top_k(h, 2, ["x", "k"], descending=descending),
        run[0],
        [schema],
        run[1],
    )
    rows = [e.payload for _, elements in run[0] for e in elements if isinstance(e, Insert)]
    together = [Insert(0, 9, p) for p in rows]
    best = ref.top_k(canonical(together), len(rows) or 1, ["x", "k"], descending=descending, rank="place")
    order = sorted(best, key=lambda e: e.payload.place)
    sorted_rows = [e.payload for e in ref.sort(canonical(together), ["x", "k"], descending)]
    assert [e.payload.pick("k", "x") for e in order] == sorted_rows


def test_top_k_needs_memory_for_rows_and_results_only():
    """Many rows, few alive, a k that is larger than both; and many alive of which few are selected."""
    few = [Insert(t, t + 10, Row(k=0, v=t % 7)) for t in range(2000)]
    (out,) = run(lambda: TopKOperator(SCHEMA, 10**15, ["v"], [True]), [(0, [*few, END])], [SCHEMA])
    assert len(out) - 1 == 10 * 2000 + 10 - 10
    many = [Insert(t, 10**6 + t, Row(k=0, v=t)) for t in range(2000)]
    (out,) = run(lambda: TopKOperator(SCHEMA, 1, ["v"], [True]), [(0, [*many, END])], [SCHEMA])
    assert len(out) - 1 == 2 * 2000 - 1
