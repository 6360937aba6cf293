"""Semi, anti, left and full outer joins against the oracle, at every latency."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_check import check_against_oracle, runs

from cedr import reference as ref
from cedr.columnar.chunk import chunk_of
from cedr.operators.outer_join import OuterJoinOperator
from cedr.temporal import INF, Cti, Insert, Row
from cedr.testing import rows

pytestmark = pytest.mark.usefixtures("layout")

SCHEMA = {"k": pl.Int64, "v": pl.String}
payloads = rows(k=st.one_of(st.none(), st.integers(0, 1)), v=st.sampled_from("ab"))
RESIDUALS = {None: lambda p, q: True, "smaller": lambda p, q: p.v < q.v}
EXPRESSIONS = {None: None, "smaller": pl.col("v") < pl.col("v_right")}


def combined(p, q):
    return Row(k=p.k if p else q.k, v=p.v if p else None, v_right=q.v if q else None)


@pytest.mark.parametrize("latency", ["perfect", "ordered", "eager"])
@pytest.mark.parametrize("residual", RESIDUALS)
@pytest.mark.parametrize("how", ["left", "full", "semi", "anti"])
@given(run=runs(payloads, ports=2, max_size=4))
def test_outer_joins(how, residual, latency, run):
    def on(p, q):
        return p.k is not None and p.k == q.k and RESIDUALS[residual](p, q)

    check_against_oracle(
        lambda: OuterJoinOperator(SCHEMA, SCHEMA, ["k"], ["k"], how, EXPRESSIONS[residual], latency=latency),
        lambda a, b: ref.join(a, b, on, how=how, combine=combined),
        run[0],
        [SCHEMA] * 2,
        run[1],
    )


@pytest.mark.parametrize("how", ["semi", "anti", "left"])
def test_partners_of_an_endless_tuple_are_forgotten_when_they_have_ended(how):
    join = OuterJoinOperator(SCHEMA, SCHEMA, ["k"], ["k"], how, latency="ordered")
    machine = Insert(0, INF, Row(k=0, v="machine"))
    join.process(0, chunk_of([machine], SCHEMA))
    for t in range(0, 20000, 100):
        events = [Insert(t + i, t + i + 3, Row(k=0, v="a")) for i in range(0, 100, 2)]
        join.process(1, chunk_of([*events, Cti(t)], SCHEMA))
        join.process(0, chunk_of([Cti(t)], SCHEMA))
    assert join.metrics.state_rows < 500
