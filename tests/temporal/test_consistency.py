"""Consistency levels and their predicates: knobs, sync points and the reports of violations.

The worked examples of Definitions 2 to 5 are in tests/papers/test_cedr.py; here are the laws and the wording.
"""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr import testing
from cedr.temporal import (
    INF,
    MIDDLE,
    MIN,
    STRONG,
    WEAK,
    Adjust,
    Consistency,
    Cti,
    Insert,
    Interval,
    QueryError,
    SyncPoint,
    TimeError,
    canonical,
    sync_points,
)
from cedr.temporal.consistency import (
    middle_violation,
    out_of_order,
    strong_violation,
    supports_middle,
    supports_strong,
    supports_weak,
    weak_violation,
)
from cedr.temporal.stream import data

# --- the knobs -----------------------------------------------------------------------------------------------------


def test_the_corners_have_names():
    assert str(STRONG) == "strong (block=∞, remember=∞)"
    assert str(MIDDLE) == "middle (block=0, remember=∞)"
    assert str(WEAK) == "weak (block=0, remember=0)"


def test_any_point_of_the_triangle_is_a_level():
    assert str(Consistency(block=5, remember=10)) == "block=5, remember=10"
    assert Consistency(0, INF) == MIDDLE


def test_waiting_longer_than_remembering_is_refused_with_what_to_do():
    text = (
        "block=∞ is longer than remember=10: a query cannot wait for what it no longer remembers; lower block or raise "
        "remember"
    )
    with pytest.raises(QueryError, match=re.escape(text)):
        Consistency(block=INF, remember=10)


@pytest.mark.parametrize(("block", "remember", "name"), [(-1, 5, "block"), (0, -3, "remember")])
def test_a_negative_length_is_refused(block, remember, name):
    with pytest.raises(QueryError, match=f"{name} is -[13]; it must be 0 or more"):
        Consistency(block, remember)


@pytest.mark.parametrize("value", [None, 1.5, True, float("nan")])
def test_a_length_that_is_no_time_is_refused(value):
    with pytest.raises(TimeError, match=r"^block is "):
        Consistency(value, INF)


# --- sync points ---------------------------------------------------------------------------------------------------


def test_an_empty_stream_has_every_time_as_sync_point():
    assert sync_points([]) == [SyncPoint(Interval(MIN, INF), 0)]


def test_ctis_are_no_elements_of_the_history():
    assert sync_points([Cti(3), Insert(4, 5, "A"), Cti(9)]) == sync_points([Insert(4, 5, "A")])


@given(testing.streams())
def test_sync_points_are_apart_in_time_and_advance_with_arrival(stream):
    points = sync_points(stream)
    assert all(p.times.before(q.times) and p.arrived < q.arrived for p, q in pairwise(points))
    assert points[0].times.start == MIN
    assert points[-1] == SyncPoint(Interval(points[-1].times.start, INF), len(data(stream)))


@given(testing.streams())
def test_at_a_sync_point_the_history_to_it_is_settled(stream):
    elements = data(stream)
    for times, arrived in sync_points(stream):
        assert canonical(elements[:arrived]).to(times.end) == canonical(elements).to(times.end)


@given(testing.streams(ordered=True))
def test_in_an_ordered_stream_every_change_of_sync_time_is_a_sync_point(stream):
    syncs = [e.sync for e in data(stream)]
    changes = [i for i in range(1, len(syncs)) if syncs[i - 1] < syncs[i]]
    assert [p.arrived for p in sync_points(stream)] == sorted({0, *changes, len(syncs)})


# --- the predicates ------------------------------------------------------------------------------------------------


@given(testing.streams(), testing.streams())
def test_predicates_do_not_depend_on_which_output_comes_first(one, two):
    assert supports_strong(one, two) == supports_strong(two, one)
    assert supports_middle(one, two) == supports_middle(two, one)
    assert supports_weak(one, two) == supports_weak(two, one)


@given(testing.streams(max_size=3), testing.streams(max_size=3))
def test_outputs_with_different_histories_never_support_middle(one, two):
    # The time after everything is a sync point of both, so middle compares the whole histories.
    if canonical(one) != canonical(two):
        assert not supports_middle(one, two)


def definition(one, two, compare):
    """Definitions 4 and 5 as printed, on all times at which anything can change."""
    elements_one, elements_two = data(one), data(two)
    for p in sync_points(one):
        for q in sync_points(two):
            for t in range(-1, 50):
                if t in p.times and t in q.times:
                    h1, h2 = canonical(elements_one[: p.arrived]), canonical(elements_two[: q.arrived])
                    if compare(h1, t + 1) != compare(h2, t + 1):
                        return False
    return True


def longer(element):
    return Insert(element.vs, element.ve + 3, element.payload) if isinstance(element, Insert) else element


FINITE_PAIRS = st.one_of(
    testing.streams(max_size=3, infinite=False, adjusts=False).map(lambda s: (s, [*s[:-1], *map(longer, s[-1:])])),
    testing.same_history(max_size=3),
    st.tuples(testing.streams(max_size=2, infinite=False), testing.streams(max_size=2, infinite=False)),
    testing.streams(max_size=3).map(lambda s: (s, [e for e in s if isinstance(e, Insert)])),
)


@given(FINITE_PAIRS)
def test_weak_is_definition_5(pair):
    one, two = pair
    assert supports_weak(one, two) == definition(one, two, lambda h, t: h.at(t))


@given(FINITE_PAIRS)
def test_middle_is_definition_4(pair):
    # All finite ends lie before 50, so the largest time tried sees every difference but that of what never ends there.
    one, two = pair
    assert supports_middle(one, two) == definition(one, two, lambda h, t: h.to(t))


def test_violations_name_the_place_and_the_problem():
    #        1  2  3  4
    # one    A  A  A
    # two    A  A  B
    one, two = [Insert(1, 4, "A")], [Insert(1, 3, "A"), Insert(3, 4, "B")]
    assert middle_violation(one, two).splitlines() == [
        "after 1 and 2 elements, both outputs settled before ∞, but to ∞ only the first has",
        "Vs  Ve  (Payload)",
        " 1   4  A",
        "and only the second has",
        "Vs  Ve  (Payload)",
        " 1   3  A",
        " 3   4  B",
    ]
    assert weak_violation(one, two).splitlines() == [
        "after 1 and 2 elements, both outputs settled before 4, but at 4 only the first has",
        "Vs  Ve  (Payload)",
        " 1   4  A",
        "and only the second has",
        "Vs  Ve  (Payload)",
        " 3   4  B",
    ]


def test_disorder_is_reported_with_both_elements():
    elements = [Insert(1, 9, "A"), Insert(7, 8, "B"), Adjust(1, 9, 3, "A")]
    text = "adjust A [1, 9) to 3 (sync 3) comes after insert B [7, 8) (sync 7)"
    assert out_of_order(elements) == text
    assert strong_violation(elements, []) == f"output is not ordered: {text}"
    assert strong_violation([], elements) == f"output is not ordered: {text}"
