"""A fused step does what its steps do one after the other."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from oracle_check import check_against_oracle, runs
from plan.catalogue import SCHEMA, payloads

from cedr import reference as ref
from cedr.operators import windows
from cedr.operators.fused import FusedOperator
from cedr.operators.stateless import ProjectOperator, SelectOperator
from cedr.temporal import Row

STEPS = {
    "select": (lambda s: SelectOperator(s, pl.col("v") > 1), lambda h: ref.select(h, lambda p: (p.v or 0) > 1)),
    "project": (
        lambda s: ProjectOperator(s, [pl.col("v"), (pl.col("m") + 1).alias("m")]),
        lambda h: ref.project(h, lambda p: Row(v=p.v, m=p.m + 1)),
    ),
    "sliding": (lambda s: windows.sliding(s, 4), lambda h: ref.sliding(h, 4)),
    "moving": (lambda s: windows.moving(s, 4), lambda h: ref.moving(h, 4)),
    "hopping": (lambda s: windows.hopping(s, 6, 3, 1), lambda h: ref.hopping(h, 6, 3, 1)),
    "inserts": (lambda s: windows.inserts(s), ref.inserts),
}


@given(runs(payloads), st.lists(st.sampled_from(list(STEPS)), min_size=1, max_size=5))
def test_as_one_after_the_other(run, names):
    def make():
        schema, operators = SCHEMA, []
        for name in names:
            operators.append(STEPS[name][0](schema))
            schema = operators[-1].schema
        return FusedOperator(SCHEMA, operators)

    def oracle(history):
        for name in names:
            history = STEPS[name][1](history)
        return history

    check_against_oracle(make, oracle, run[0], [SCHEMA], run[1])
