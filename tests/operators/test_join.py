"""The temporal equijoin against the oracle."""

from datetime import datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_check import check_against_oracle, run, runs

from cedr import reference as ref
from cedr.columnar.chunk import chunk_of
from cedr.operators.join import JoinOperator
from cedr.temporal import Adjust, Cti, Insert, Row
from cedr.testing import rows

pytestmark = pytest.mark.usefixtures("layout")

SCHEMA = {"k": pl.Int64, "v": pl.String}
payloads = rows(k=st.one_of(st.none(), st.integers(0, 1)), v=st.sampled_from("ab"))


def equal_keys(p, q):
    return p.k is not None and p.k == q.k


def combined(p, q):
    return Row(k=p.k, v=p.v, v_right=q.v)


def oracle(on):
    return lambda left, right: ref.join(left, right, on, combine=combined)


@given(runs(payloads, ports=2))
def test_equijoin(run):
    make = lambda: JoinOperator(SCHEMA, SCHEMA, ["k"], ["k"])  # noqa: E731
    check_against_oracle(make, oracle(equal_keys), run[0], [SCHEMA] * 2, run[1])


@given(runs(payloads, ports=2))
def test_residual_predicate(run):
    make = lambda: JoinOperator(SCHEMA, SCHEMA, ["k"], ["k"], residual=pl.col("v") < pl.col("v_right"))  # noqa: E731
    check_against_oracle(make, oracle(lambda p, q: equal_keys(p, q) and p.v < q.v), run[0], [SCHEMA] * 2, run[1])


@given(runs(payloads, ports=2, max_size=4))
def test_without_keys_it_is_the_cross_join(run):
    def both(p, q):
        return Row(k=p.k, v=p.v, k_right=q.k, v_right=q.v)

    check_against_oracle(
        lambda: JoinOperator(SCHEMA, SCHEMA, [], []),
        lambda a, b: ref.join(a, b, combine=both),
        run[0],
        [SCHEMA] * 2,
        run[1],
    )


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(
    ("left", "right", "key", "other"),
    [
        (pl.Int64, pl.Int64, 7, 7),
        (pl.Int64, pl.Int32, 7, 7),
        (pl.Float64, pl.Float64, 0.0, -0.0),
        (pl.String, pl.String, "a", "a"),
        (pl.Enum(["a", "b"]), pl.Enum(["a", "b"]), "b", "b"),
        (pl.Datetime("us"), pl.Datetime("us"), datetime(2024, 2, 29), datetime(2024, 2, 29)),
    ],
)
def test_the_result_has_the_key_of_the_left_side(left, right, key, other, first):
    """Whichever side comes last."""
    schemas = [{"v": pl.Int64, "a": left}, {"b": right, "w": pl.Int64}]
    operator = JoinOperator(*schemas, ["a"], ["b"])
    rows = [Insert(0, 5, Row(v=1, a=key)), Insert(0, 5, Row(b=other, w=2))]
    for port in (first, 1 - first):
        out = operator.process(port, chunk_of([rows[port]], schemas[port])).payload
    assert out.schema == {"v": pl.Int64, "a": left, "w": pl.Int64}
    assert [repr(value) for value in out.row(0)] == [repr(value) for value in (1, key, 2)]


@pytest.mark.parametrize("first", [0, 1])
def test_two_keys_and_nothing_else(first):
    schemas = [{"a": pl.Int64, "b": pl.String}, {"b": pl.String, "a": pl.Int64}]
    operator = JoinOperator(*schemas, ["a", "b"], ["a", "b"])
    for port in (first, 1 - first):
        out = operator.process(port, chunk_of([Insert(0, 5, Row(a=1, b="x"))], schemas[port])).payload
    assert out.rows() == [(1, "x")]
    assert out.columns == ["a", "b"]


def test_table_4_of_the_technical_report():
    """The physical output, element by element: an insert, a CTI, then the retraction."""
    schema = {"p": pl.String}
    a0, a1 = Row(p="A0"), Row(p="A1")
    arrivals = [
        (0, [Insert(0, 2, a0)]),
        (0, [Cti(1)]),
        (0, [Insert(2, 6, a1)]),
        (1, [Insert(3, 5, a1)]),
        (1, [Cti(3)]),
        (0, [Adjust(2, 6, 4, a1)]),
    ]
    out = run(lambda: JoinOperator(schema, schema, ["p"], ["p"]), arrivals, [schema] * 2)
    assert [e for part in out for e in part] == [Insert(3, 5, a1), Cti(1), Adjust(3, 5, 4, a1)]


def test_tuples_are_forgotten_when_the_other_side_has_passed_their_end():
    join = JoinOperator(SCHEMA, SCHEMA, ["k"], ["k"])
    for t in range(0, 30000, 100):
        events = [Insert(t + i, t + i + 20, Row(k=t + i, v=str(i))) for i in range(100)]
        for port in (0, 1):
            join.process(port, chunk_of([*events, Cti(t)], SCHEMA))
    assert join.metrics.state_rows < 1000
    assert len(join.keys.index) < 9000
