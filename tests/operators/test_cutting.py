"""Chop, clip, session windows and top-k against the oracle."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_check import check_against_oracle, run, runs

from cedr import reference as ref
from cedr.operators.chop import Chop
from cedr.operators.clip import Clip
from cedr.operators.session import Session
from cedr.operators.top_k import TopK
from cedr.temporal import INF, Insert, QueryError, Row
from cedr.testing import rows, streams

SCHEMA = {"k": pl.Int64, "v": pl.Int64}
payloads = rows(k=st.one_of(st.none(), st.integers(0, 1)), v=st.one_of(st.none(), st.integers(0, 3)))


@given(stream=streams(payloads, infinite=False, adjusts=False, closed=True), period=st.integers(1, 6))
def test_chop(stream, period):
    make = lambda: Chop(SCHEMA, period, 1)  # noqa: E731
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
    check_against_oracle(lambda: Chop(SCHEMA, period), lambda h: ref.chop(h, period), arrivals, [SCHEMA])


def test_chop_refuses_a_lifetime_without_end():
    with pytest.raises(QueryError, match="has no end, so its pieces have none"):
        run(lambda: Chop(SCHEMA, 5), [(0, [Insert(0, INF, Row(k=1, v=1))])], [SCHEMA])


@given(runs(payloads, ports=2))
def test_clip(run):
    def on(p, q):
        return p.k is not None and p.k == q.k

    make = lambda: Clip(SCHEMA, SCHEMA, ["k"], ["k"])  # noqa: E731
    check_against_oracle(make, lambda a, b: ref.clip(a, b, on), run[0], [SCHEMA] * 2, run[1])


@pytest.mark.parametrize("by", [(), ("k",)])
@given(run=runs(payloads, max_size=7), timeout=st.integers(1, 6))
def test_session(by, run, timeout):
    make = lambda: Session(SCHEMA, timeout, by)  # noqa: E731
    oracle = lambda h: ref.session(h, timeout, lambda p: tuple(p[name] for name in by))  # noqa: E731
    check_against_oracle(make, oracle, run[0], [SCHEMA], run[1])


@pytest.mark.parametrize("latency", ["perfect", "ordered", "eager"])
@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("rank", [None, "place"])
@given(run=runs(payloads), k=st.integers(1, 3))
def test_top_k(latency, descending, rank, run, k):
    check_against_oracle(
        lambda: TopK(SCHEMA, k, ["v"], [descending], ["k"], rank, latency),
        lambda h: ref.top_k(h, k, lambda p: p.v, lambda p: p.k, descending, rank),
        run[0],
        [SCHEMA],
        run[1],
    )
