"""Aggregates and top-k: one answer per snapshot of each group."""

import math
import statistics
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr import reference as ref
from cedr.temporal import Event, History, QueryError, Row
from cedr.testing import histories, rows

readings = rows(m=st.integers(0, 1), load=st.one_of(st.none(), st.integers(-5, 5)))


@given(histories(readings))
def test_an_aggregate_answers_for_every_instant_that_has_events(history):
    answers = ref.aggregate(history, by=["m"], n=ref.count(), known=ref.count("load"), total=ref.sum_("load"))
    for t in range(45):
        expected = {}
        for p in history.snapshot(t).elements():
            expected.setdefault(p.m, []).append(p.load)
        assert dict(answers.snapshot(t)) == {
            Row(
                m=m,
                n=len(loads),
                known=sum(v is not None for v in loads),
                total=sum(known) if (known := [v for v in loads if v is not None]) else None,
            ): 1
            for m, loads in expected.items()
        }


@given(histories(readings))
def test_results_change_exactly_at_end_points_of_their_group(history):
    """Neighbouring snapshots stay apart even when their values are equal."""
    answers = ref.aggregate(history, by=["m"], n=ref.count())
    for m, group in history.groups(lambda p: p.m).items():
        points = group.end_points()
        of_group = [e for e in answers if e.payload.m == m]
        covered = [(a, b) for a, b in pairwise(points) if any(e.vs <= a < e.ve for e in group)]
        assert [(e.vs, e.ve) for e in of_group] == covered


def test_snapshots_by_hand():
    # A  0 [=======) 4          events
    # B      2 [=======) 6
    #    [-1-) [-2-) [-1-)      count
    history = History([(0, 4, Row(v=1)), (2, 6, Row(v=3))])
    assert ref.aggregate(history, n=ref.count(), avg=ref.avg("v")) == History(
        [(0, 2, Row(n=1, avg=1.0)), (2, 4, Row(n=2, avg=2.0)), (4, 6, Row(n=1, avg=3.0))]
    )


def test_an_empty_snapshot_gives_nothing():
    history = History([(0, 1, Row(v=1)), (5, 6, Row(v=1))])
    assert [(e.vs, e.ve) for e in ref.aggregate(history, n=ref.count())] == [(0, 1), (5, 6)]


numbers = st.lists(st.floats(-100, 100), min_size=1, max_size=6)


@given(numbers, st.floats(0, 1))
def test_aggregates_compute_what_their_names_promise(values, q):
    events = [Event(i, 99, Row(v=v, i=i)) for i, v in enumerate(values)]
    assert ref.min_("v")(events) == min(values)
    assert ref.max_("v")(events) == max(values)
    assert ref.first("v")(events) == values[0]
    assert ref.last("v")(events) == values[-1]
    assert ref.sum_("v")(events) == math.fsum(values)
    assert ref.avg("v")(events) == math.fsum(values) / len(values)
    if len(values) > 1:
        assert ref.stddev("v")(events) == pytest.approx(statistics.stdev(values), abs=1e-9)
    found = ref.quantile(q)("v")(events)
    assert found in values
    assert sum(v <= found for v in values) >= q * len(values)


def test_aggregates_of_missing_values_are_missing():
    events = [Event(0, 1, Row(v=None))]
    for aggregate in (ref.sum_, ref.avg, ref.min_, ref.max_, ref.stddev, ref.first, ref.last, ref.quantile(0.5)):
        assert aggregate("v")(events) is None
    assert ref.count("v")(events) == 0
    assert ref.count()(events) == 1
    assert ref.stddev("v")([Event(0, 1, Row(v=2))]) is None


@given(histories(rows(g=st.integers(0, 1), v=st.integers(0, 3))), st.integers(1, 3), st.booleans())
def test_top_k_keeps_the_best_of_every_instant(history, k, descending):
    best = ref.top_k(history, k, order=lambda p: p.v, by=lambda p: p.g, descending=descending)
    for t in range(45):
        for g in (0, 1):
            live = sorted((p.v for p in history.snapshot(t).elements() if p.g == g), reverse=descending)
            kept = sorted((p.v for p in best.snapshot(t).elements() if p.g == g), reverse=descending)
            assert kept == live[:k]


def test_top_k_can_output_the_rank():
    history = History([(0, 2, Row(v=1)), (0, 2, Row(v=9))])
    assert ref.top_k(history, 2, order=lambda p: p.v, rank="place") == History(
        [(0, 2, Row(v=9, place=1)), (0, 2, Row(v=1, place=2))]
    )


def test_bad_settings_are_refused():
    with pytest.raises(QueryError, match="k must be at least 1"):
        ref.top_k(History(), 0, order=lambda p: p)
    with pytest.raises(QueryError, match="quantile 2: the share must lie between 0 and 1"):
        ref.quantile(2)
    with pytest.raises(QueryError, match="m names both a group attribute and an aggregate"):
        ref.aggregate(History(), by=["m"], m=ref.count())
