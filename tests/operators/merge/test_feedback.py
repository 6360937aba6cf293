"""Feedback: what a merge has no more use for is left out before it comes, and the output stays the same."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from merge_check import SCHEMA, merges, row

from cedr.columnar.chunk import chunk_of
from cedr.operators.aggregate import AggregateOperator
from cedr.operators.align import AlignOperator
from cedr.operators.feedback import skip_before
from cedr.operators.fused import FusedOperator
from cedr.operators.merge.algorithms import ALGORITHMS
from cedr.operators.stateless import ProjectOperator, SelectOperator, UnionOperator
from cedr.operators.windows import sliding
from cedr.plan import aggregates as agg
from cedr.temporal import Adjust, Cti, Insert

A = row("A")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(data=st.data())
def test_rows_that_end_before_the_feedback_make_no_difference(algorithm, data):
    _, ports, arrivals, _ = data.draw(merges(algorithm))
    plain, spared = (ALGORITHMS[algorithm](SCHEMA, ports) for _ in range(2))
    for port, elements in arrivals:
        chunk = chunk_of(elements, SCHEMA)
        expected = plain.process(port, chunk).elements()
        useful = [max(old, new) >= spared.feedback() for old, new in zip(chunk.old, chunk.new, strict=True)]
        of_use = chunk.with_rows(chunk.rows.filter(pl.Series(useful, dtype=pl.Boolean)))
        assert spared.process(port, of_use).elements() == expected


def select():
    return SelectOperator(SCHEMA, pl.col("p") != "C")


def project():
    return ProjectOperator(SCHEMA, [pl.col("p") + "!"])


def fused():
    return FusedOperator(SCHEMA, [select(), project()])


def count():
    return AggregateOperator(SCHEMA, ["p"], {"n": agg.Count()}, "eager")


PLANS = {
    "select": lambda: [select()],
    "select, project": lambda: [project(), select()],
    "fused": lambda: [fused()],
    "union": lambda: [UnionOperator(SCHEMA, 1), select()],
    "sliding": lambda: [sliding(SCHEMA, 5), select()],
    "fused with windows": lambda: [FusedOperator(SCHEMA, [select(), sliding(SCHEMA, 5), project()])],
    "align": lambda: [select(), AlignOperator(SCHEMA)],
    "align perfect": lambda: [select(), AlignOperator(SCHEMA, flavour="perfect")],
    "align for a while": lambda: [select(), AlignOperator(SCHEMA, block=3)],
    "aggregate": lambda: [select(), count()],
    "aggregate below": lambda: [count(), SelectOperator(count().schema, pl.col("n") > 0)],
}
"""Operators on the way into a merge, the first one first."""


class Plans:
    """A merge of several plans, with or without feedback to them."""

    def __init__(self, make, ports, feedback):
        self.plans = [make() for _ in range(ports)]
        self.merge = ALGORITHMS["R4"](self.plans[0][-1].schema, ports)
        self.feedback = feedback
        self.rows = 0

    def process(self, port, chunk):
        for operator in self.plans[port]:
            chunk = operator.process(0, chunk)
        self.rows += len(chunk)
        out = self.merge.process(port, chunk)
        if self.feedback:
            for plan in self.plans:
                t = self.merge.feedback()
                for operator in reversed(plan):
                    t = skip_before(operator, t)
        return out


@pytest.mark.parametrize("plan", PLANS)
@given(data=st.data())
def test_plans_that_skip_feed_a_merge_the_same(plan, data):
    _, ports, arrivals, _ = data.draw(merges("R4"))
    with_feedback, without = (Plans(PLANS[plan], ports, feedback) for feedback in (True, False))
    for port, elements in arrivals:
        chunk = chunk_of(elements, SCHEMA)
        assert with_feedback.process(port, chunk).elements() == without.process(port, chunk).elements()
    assert with_feedback.rows <= without.rows


def test_a_plan_that_is_behind_sends_only_what_is_still_of_use():
    plans = Plans(PLANS["select"], 2, feedback=True)
    plans.process(0, chunk_of([Insert(0, 4, A), Insert(1, 9, A), Cti(6)], SCHEMA))
    late = [Insert(0, 3, A), Adjust(0, 3, 4, A), Insert(1, 5, A), Adjust(1, 5, 9, A), Insert(7, 8, A)]
    plans.process(1, chunk_of(late, SCHEMA))
    assert plans.rows == 2 + 2  # of the late ones, the adjust to 9 and the last
