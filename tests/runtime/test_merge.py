"""A merge inside an engine: feedback to what feeds it, inputs that come and go, merges of merges."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from merge_check import SCHEMA, histories, keyed_streams, row
from oracle_check import arrivals_of

import cedr
from cedr import testing
from cedr.columnar.chunk import chunk_of
from cedr.operators.merge.base import LMerge
from cedr.temporal import INF, Cti, Insert, QueryError, canonical, validate

A, B = row("A"), row("B")


def sources(number):
    return [cedr.source(f"s{i}", SCHEMA, insert_only=False) for i in range(number)]


def push(engine, port, *elements):
    return engine.push(f"s{port}", chunk_of(elements, SCHEMA)).elements()


def counted(source):
    return source.group_by("p").agg(n=cedr.count()).select("p", twice=pl.col("n") * 2)


def test_feedback_reaches_what_only_feeds_the_merge_down_to_the_first_state():
    a, b = sources(2)
    engine = counted(a).merge(counted(b)).with_latency("eager").engine()
    push(engine, 0, Insert(1, 9, A), Insert(2, 3, B), Cti(6))
    skipped = [
        (step.name, op.skipping and op.skipping.before)
        for step, op in zip(engine.fragment.steps, engine.operators, strict=True)
    ]
    one = [("Finalize", None), ("Aggregate", 6), ("Project", 6)]
    assert skipped == [*one, *one, ("Merge", None)]


def test_rows_that_others_take_too_are_not_called_useless():
    (a,) = sources(1)
    seen = a.where("p <> 'B'")
    engine = seen.merge(seen).engine()
    push(engine, 0, Insert(1, 9, A), Cti(6))
    assert {op.skipping for op in engine.operators} == {None}


def test_inputs_of_a_running_query_are_detached_and_attached():
    a, b = sources(2)
    engine = a.merge(b).engine()
    (merge,) = engine.merges
    assert isinstance(merge, LMerge)
    push(engine, 0, Insert(1, 9, A), Cti(2))
    merge.detach(1, "gone")
    assert push(engine, 0, Cti(4)) == [Cti(4)]
    merge.attach(1, 3)
    assert push(engine, 1, Insert(1, 9, A), Cti(7)) == [Cti(7)]


def test_a_level_may_change_when_the_algorithm_does_not():
    # sources without adjusts, put in order by a strong level, allow R2; without order it is R4
    a, b = (cedr.source(f"s{i}", SCHEMA, insert_only=True) for i in range(2))
    engine = a.merge(b).with_consistency("strong").engine()
    push(engine, 0, Insert(1, 9, A))
    with pytest.raises(QueryError, match=r"the state is that of R2, and here R4 was chosen, .* algorithm='R4'"):
        engine.set_consistency(cedr.MIDDLE)
    assert push(engine, 0, Cti(10)) == [Insert(1, 9, A), Cti(10)]  # the row it held is still there
    engine = a.merge(b, algorithm="R4").with_consistency("strong").engine()
    assert push(engine, 0, Insert(1, 9, A)) == []
    assert engine.set_consistency(cedr.MIDDLE).elements() == [Insert(1, 9, A)]
    assert push(engine, 1, Insert(1, 9, A), Cti(3)) == [Cti(3)]


@given(st.data())
def test_a_merge_of_merges_is_a_merge(data):
    history = data.draw(histories(unique=lambda e: (e.vs, e.payload)))
    inputs = [data.draw(keyed_streams(history)) for _ in range(3)]
    a, b, c = sources(3)
    engine = a.merge(b, policy="reflect", algorithm="R4").merge(c.select(p=pl.col("p") + ""), algorithm="R4").engine()
    out = []
    for port, elements in data.draw(arrivals_of(inputs)):
        out += push(engine, port, *elements)
    validate(out)
    testing.assert_same(canonical(out), history)
    assert all(merge.stable == INF for merge in engine.merges)
