"""Operators without state against the oracle."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_check import check_against_oracle, run, runs

from cedr import reference as ref
from cedr.operators import windows
from cedr.operators.stateless import ProjectOperator, SelectOperator, UnionOperator
from cedr.temporal import Adjust, Insert, Row, retract
from cedr.testing import rows

SCHEMA = {"m": pl.Int64, "v": pl.Int64}
payloads = rows(m=st.integers(0, 1), v=st.one_of(st.none(), st.integers(0, 3)))

CASES = {
    "select": (lambda: SelectOperator(SCHEMA, pl.col("v") > 1), lambda h: ref.select(h, lambda p: (p.v or 0) > 1)),
    "project": (
        lambda: ProjectOperator(SCHEMA, [pl.col("m"), (pl.col("v") + 1).alias("w")]),
        lambda h: ref.project(h, lambda p: Row(m=p.m, w=None if p.v is None else p.v + 1)),
    ),
    "sliding": (lambda: windows.sliding(SCHEMA, 4), lambda h: ref.sliding(h, 4)),
    "moving": (lambda: windows.moving(SCHEMA, 4), lambda h: ref.moving(h, 4)),
    "hopping": (lambda: windows.hopping(SCHEMA, 6, 3, 1), lambda h: ref.hopping(h, 6, 3, 1)),
    "tumbling": (lambda: windows.tumbling(SCHEMA, 5), lambda h: ref.tumbling(h, 5)),
    "inserts": (lambda: windows.inserts(SCHEMA), ref.inserts),
    "deletes": (lambda: windows.DeletesOperator(SCHEMA), ref.deletes),
}


@pytest.mark.parametrize("name", CASES)
@given(run=runs(payloads))
def test_one_input(name, run):
    make, oracle = CASES[name]
    check_against_oracle(make, oracle, run[0], [SCHEMA], run[1])


@given(runs(payloads, ports=2))
def test_union(run):
    check_against_oracle(lambda: UnionOperator(SCHEMA), ref.union, run[0], [SCHEMA] * 2, run[1])


def test_a_removed_tuple_removes_its_window_though_the_window_does_not_depend_on_its_end():
    """AlterLifetime's rule for full retractions: a shorter event keeps its window of 4, one that never was has none."""
    p = Row(m=0, v=1)
    stream = [Insert(1, 9, p), Adjust(1, 9, 2, p), retract(1, 2, p)]
    out = run(lambda: windows.sliding(SCHEMA, 4), [(0, [e]) for e in stream], [SCHEMA])
    assert out == [[Insert(1, 5, p)], [], [retract(1, 5, p)]]
