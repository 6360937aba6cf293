"""Operators without state pass promises on: about the payloads of their output, moved like their CTIs."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_check import check_against_oracle, run
from punctuated_check import punctuated_runs

from cedr import reference as ref
from cedr.columnar.promises import promises_of
from cedr.operators import windows
from cedr.operators.chop import ChopOperator
from cedr.operators.fused import FusedOperator
from cedr.operators.stateless import ProjectOperator, SelectOperator, UnionOperator
from cedr.plan.excluded import excluded
from cedr.temporal import END, Cti, Insert, Row
from cedr.temporal.punctuation import Range, puncts, punctuation
from cedr.testing import rows

SCHEMA = {"m": pl.Int64, "v": pl.Int64}
payloads = rows(m=st.integers(0, 2), v=st.one_of(st.none(), st.integers(0, 3)))
ABOUT = {"m": [0, 1, 2], "v": [0, 1, 2, 3]}
BIG = pl.col("v") > 1
TWICE = [pl.col("m").alias("a"), pl.col("m").alias("b"), pl.col("v"), (pl.col("v") + 1).alias("w")]


def select():
    return SelectOperator(SCHEMA, BIG, excluded([BIG], SCHEMA))


def big(p):
    return (p.v or 0) > 1


def twice(p):
    return Row(a=p.m, b=p.m, v=p.v, w=None if p.v is None else p.v + 1)


CASES = {
    "select": (select, lambda h: ref.select(h, big)),
    "project": (lambda: ProjectOperator(SCHEMA, TWICE), lambda h: ref.project(h, twice)),
    "sliding": (lambda: windows.sliding(SCHEMA, 4), lambda h: ref.sliding(h, 4)),
    "moving": (lambda: windows.moving(SCHEMA, 4), lambda h: ref.moving(h, 4)),
    "hopping": (lambda: windows.hopping(SCHEMA, 6, 3, 1), lambda h: ref.hopping(h, 6, 3, 1)),
    "inserts": (lambda: windows.inserts(SCHEMA), ref.inserts),
    "deletes": (lambda: windows.DeletesOperator(SCHEMA), ref.deletes),
    "fused": (
        lambda: FusedOperator(
            SCHEMA, [windows.hopping(SCHEMA, 6, 3, 1), select(), windows.moving(SCHEMA, 4), project()]
        ),
        lambda h: ref.project(ref.moving(ref.hopping(ref.select(h, big), 6, 3, 1), 4), twice),
    ),
}


def project():
    return ProjectOperator(SCHEMA, TWICE)


@pytest.mark.parametrize("name", CASES)
@given(run=punctuated_runs(payloads, ABOUT))
def test_one_input(name, run):
    make, oracle = CASES[name]
    check_against_oracle(make, oracle, run[0], [SCHEMA], run[1])


@given(run=punctuated_runs(payloads, ABOUT, infinite=False, adjusts=False))
def test_chop(run):
    check_against_oracle(lambda: ChopOperator(SCHEMA, 4, 1), lambda h: ref.chop(h, 4, 1), run[0], [SCHEMA], run[1])


@given(punctuated_runs(payloads, ABOUT, ports=3, max_size=4))
def test_union(run):
    oracle = lambda a, b, c: ref.union(ref.union(a, b), c)  # noqa: E731
    check_against_oracle(lambda: UnionOperator(SCHEMA, 3), oracle, run[0], [SCHEMA] * 3, run[1])


# --- what exactly is promised ----------------------------------------------------------------------------------------


def promised(make, *chunks, schemas=(SCHEMA, SCHEMA), restore_at=()):
    """The punctuations after each chunk `(port, elements...)`."""
    arrivals = [(port, elements) for port, *elements in chunks]
    return [set(puncts(out)) for out in run(make, arrivals, schemas, restore_at)]


def test_a_window_moves_the_time_of_a_promise_and_leaves_the_end_of_time():
    chunks = [(0, punctuation(8, m=1)), (0, punctuation(m=1))]
    assert promised(lambda: windows.hopping(SCHEMA, 6, 3, 1), *chunks) == [{punctuation(7, m=1)}, {punctuation(m=1)}]


def test_a_slice_ends_a_promise_that_has_passed_its_end():
    assert promised(lambda: windows.sliced(SCHEMA, 2, 5), (0, punctuation(6, m=1))) == [{punctuation(m=1)}]


def test_a_column_under_two_names_is_promised_under_both_and_what_is_computed_is_not():
    chunks = [(0, punctuation(8, m=1)), (0, punctuation(8, v=1, m=2)), (0, punctuation(9, v=2))]
    assert promised(project, *chunks) == [
        {punctuation(8, a=1), punctuation(8, b=1)},
        {punctuation(8, v=1, a=2), punctuation(8, v=1, b=2)},
        {punctuation(9, v=2)},
    ]


def test_a_select_promises_once_what_it_never_lets_through():
    chunks = [(0,), (0, punctuation(5, m=0)), (0, END)]
    outside = {punctuation(v=Range(None, 1)), punctuation(v=None)}
    for restore_at in ((), (1,)):
        assert promised(select, *chunks, restore_at=restore_at) == [outside, {punctuation(5, m=0)}, set()]


#   left    no m=1 before 8            CTI 3    no m=1 at all
#   right                no m=1 before 6                        CTI 7
#   union                m=1: 6                                 m=1: 7, as the right promises no more of it


def test_a_union_promises_what_all_inputs_do_and_does_so_once():
    chunks = [
        (0, punctuation(8, m=1)),
        (1, punctuation(6, m=1)),
        (0, Cti(3)),
        (0, punctuation(m=1)),
        (1, Cti(7)),
        (0, Insert(9, 10, Row(m=0, v=0))),
    ]
    expected = [set(), {punctuation(6, m=1)}, set(), set(), {punctuation(7, m=1)}, set()]
    for restore_at in ((), (2, 4), range(6)):
        assert promised(lambda: UnionOperator(SCHEMA), *chunks, restore_at=restore_at) == expected


def test_a_union_compares_promises_about_two_columns_with_those_about_one():
    chunks = [(0, punctuation(8, m=1, v=2)), (1, punctuation(m=1))]
    assert promised(lambda: UnionOperator(SCHEMA), *chunks) == [set(), {punctuation(8, m=1, v=2)}]


def test_the_excluded_are_a_set_of_promises():
    assert set(excluded([BIG], SCHEMA)) == set(
        promises_of([punctuation(v=Range(None, 1)), punctuation(v=None)], SCHEMA)
    )
