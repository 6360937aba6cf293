"""Intervals: every operation is the set operation of that name, tested as such on sets of small whole numbers."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr.temporal import INF, MIN, Interval, LifetimeError, TimeError
from cedr.temporal.interval import interval_or_none, merge, subtract

SMALL = st.tuples(st.integers(0, 11), st.integers(1, 6)).map(lambda t: Interval(t[0], t[0] + t[1]))


def instants(*intervals):
    """The set an interval, or several, or None stand for."""
    return {t for i in intervals if i is not None for t in range(i.start, i.end)}


@given(SMALL, st.integers(-1, 20))
def test_contains_is_membership(one, t):
    assert (t in one) == (t in instants(one))


@given(SMALL)
def test_length_is_the_number_of_instants(one):
    assert one.length == len(instants(one))


@given(SMALL, SMALL)
def test_covers_is_superset(one, two):
    assert one.covers(two) == (instants(one) >= instants(two))


@given(SMALL, SMALL)
def test_overlaps_is_having_a_common_instant(one, two):
    assert one.overlaps(two) == bool(instants(one) & instants(two))


@given(SMALL, SMALL)
def test_before_is_every_instant_being_smaller(one, two):
    assert one.before(two) == (max(instants(one)) < min(instants(two)))


@given(SMALL, SMALL)
def test_meets_is_following_without_gap_or_overlap(one, two):
    assert one.meets(two) == (max(instants(one)) + 1 == min(instants(two)))


@given(SMALL, SMALL)
def test_intersection_is_set_intersection(one, two):
    assert instants(one.intersection(two)) == instants(one) & instants(two)


@given(SMALL, SMALL)
def test_union_is_set_union_or_none_when_that_has_a_gap(one, two):
    both = instants(one) | instants(two)
    in_one_piece = len(both) == max(both) + 1 - min(both)
    assert instants(one.union(two)) == (both if in_one_piece else set())


@given(SMALL, SMALL)
def test_hull_is_the_shortest_interval_over_both(one, two):
    both = instants(one) | instants(two)
    assert instants(one.hull(two)) == set(range(min(both), max(both) + 1))


@given(SMALL, SMALL)
def test_difference_is_set_difference_in_pieces_that_do_not_meet(one, two):
    pieces = one.difference(two)
    assert instants(*pieces) == instants(one) - instants(two)
    assert sum(p.length for p in pieces) == len(instants(*pieces))
    assert list(pieces) == merge(pieces)


@given(SMALL, st.integers(-1, 20))
def test_to_keeps_what_lies_before(one, t):
    assert instants(one.to(t)) == {x for x in instants(one) if x < t}


@given(SMALL, st.integers(-9, 9))
def test_shift_moves_every_instant(one, by):
    assert instants(one.shift(by)) == {t + by for t in instants(one)}


@given(st.lists(SMALL))
def test_merge_is_set_union_in_as_few_intervals_as_possible(intervals):
    merged = merge(intervals)
    assert instants(*merged) == instants(*intervals)
    starts = {t for t in instants(*intervals) if t - 1 not in instants(*intervals)}
    assert [i.start for i in merged] == sorted(starts)


@given(SMALL, st.lists(SMALL))
def test_subtract_is_set_difference_in_order(one, holes):
    pieces = subtract(one, holes)
    assert instants(*pieces) == instants(one) - instants(*holes)
    assert pieces == sorted(pieces)
    assert sum(p.length for p in pieces) == len(instants(*pieces))


@given(st.integers(0, 9), st.integers(0, 9))
def test_interval_or_none_is_none_where_the_set_is_empty(start, end):
    assert instants(interval_or_none(start, end)) == set(range(start, end))


@given(st.lists(SMALL))
def test_intervals_sort_by_start_then_end(intervals):
    assert sorted(intervals) == sorted(intervals, key=lambda i: (i.start, i.end))


# --- without end ---------------------------------------------------------------------------------------------------

ENDLESS = Interval(3, INF)


def test_an_endless_interval_contains_every_later_time_but_inf():
    assert INF - 1 in ENDLESS
    assert INF not in ENDLESS
    assert 2 not in ENDLESS


def test_an_endless_interval_stays_endless():
    #          3     5     7
    # endless  ####################>
    # hole           #####
    assert ENDLESS.length == INF
    assert ENDLESS.shift(4) == Interval(7, INF)
    assert ENDLESS.difference(Interval(5, 7)) == (Interval(3, 5), Interval(7, INF))
    assert ENDLESS.union(Interval(0, 3)) == Interval(0, INF)
    assert ENDLESS.intersection(Interval(0, INF)) == ENDLESS
    assert ENDLESS.to(5) == Interval(3, 5)
    assert ENDLESS.to(INF) == ENDLESS


def test_intervals_print_half_open():
    assert str(Interval(1, 4)) == "[1, 4)"
    assert str(Interval(MIN, INF)) == "[-∞, ∞)"


# --- not an interval -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("start", "end"), [(4, 4), (5, 4), (0, MIN)])
def test_an_empty_or_backward_interval_is_refused_with_what_would_be_right(start, end):
    with pytest.raises(LifetimeError, match=r"is empty: the end \(ve\) must be greater than the start \(vs\)"):
        Interval(start, end)
    with pytest.raises(LifetimeError, match=re.escape(f"an event of one instant is [{start}, {start + 1})")):
        Interval(start, end)


def test_an_interval_of_what_is_no_time_is_refused():
    with pytest.raises(TimeError, match=re.escape("end (ve) is nan")):
        Interval(1, float("nan"))


def test_a_shift_is_cut_at_the_ends_of_time():
    assert Interval(1, INF - 1).shift(5) == Interval(6, INF)
    assert Interval(INF - 3, INF - 1).shift(5) is None
    assert Interval(MIN, 7).shift(-5) == Interval(MIN, 2)


def test_an_interval_cannot_be_changed():
    one = Interval(1, 4)
    with pytest.raises(AttributeError):
        one.start = 2
    assert one == Interval(1, 4)
