"""Histories: bags of events as changing tables. Restriction in time, snapshots, and coalescing into levels."""

import re
from collections import Counter
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr import testing
from cedr.temporal import INF, Event, History, Interval, LifetimeError, Row
from cedr.temporal.history import levels

HORIZON = 2 * testing.MAX_TIME + 2
"""No finite end point of a drawn history lies beyond it."""

PAIRS = testing.histories().flatmap(lambda h: st.tuples(st.just(h), testing.repackaged(h)))

# --- bags ----------------------------------------------------------------------------------------------------------


def test_a_history_counts_copies_and_ignores_order():
    assert History([(1, 3, "A"), (2, 4, "B")]) == History([(2, 4, "B"), (1, 3, "A")])
    assert History([(1, 3, "A")] * 2) != History([(1, 3, "A")])
    assert len(History([(1, 3, "A")] * 2)) == 2


def test_equal_histories_have_equal_hashes():
    assert hash(History([(1, 3, "A"), (2, 4, "B")])) == hash(History([(2, 4, "B"), (1, 3, "A")]))


def test_iteration_goes_by_start_end_and_payload_and_yields_copies():
    history = History([(2, 4, "A"), (1, 9, "B"), (1, 3, "B"), (1, 3, "A"), (2, 4, "A")])
    assert list(history) == [
        Event(1, 3, "A"),
        Event(1, 3, "B"),
        Event(1, 9, "B"),
        Event(2, 4, "A"),
        Event(2, 4, "A"),
    ]


@given(testing.histories(), testing.histories())
def test_sum_and_difference_are_those_of_bags(one, two):
    assert (one + two).bag == one.bag + two.bag
    assert (one - two).bag == one.bag - two.bag
    assert (one + two) - two == one


def test_the_bag_handed_out_is_a_copy():
    history = History([(1, 3, "A")])
    history.bag.clear()
    assert len(history) == 1


def test_a_history_is_not_equal_to_a_list():
    assert History([(1, 3, "A")]) != [(1, 3, "A")]


def test_an_event_that_never_lives_is_refused():
    with pytest.raises(LifetimeError, match=re.escape("[3, 3) is empty")):
        History([(3, 3, "A")])


def test_a_history_prints_as_a_table():
    assert str(History([(4, 9, "P2"), (1, INF, "P1")])).splitlines() == [
        "Vs  Ve  (Payload)",
        " 1   ∞  P1",
        " 4   9  P2",
    ]
    assert repr(History([(1, 3, "A")])) == "History([(1, 3, 'A')])"


def test_an_event_prints_its_payload_and_lifetime():
    assert str(Event(1, INF, "A")) == "A [1, ∞)"


# --- in time -------------------------------------------------------------------------------------------------------

#      1  2  3  4  5  6  7
# A    #########
# B       ###################>
# C             ######
DRAWN = History([(1, 4, "A"), (2, INF, "B"), (4, 6, "C")])


def test_to_a_time_cuts_ends_and_drops_later_starts():
    assert DRAWN.to(3) == History([(1, 3, "A"), (2, 3, "B")])
    assert DRAWN.to(4) == History([(1, 4, "A"), (2, 4, "B")])
    assert DRAWN.to(1) == History()
    assert DRAWN.to(INF) == DRAWN


def test_at_a_time_are_the_events_that_reach_it():
    assert DRAWN.at(4) == History([(1, 4, "A"), (2, 4, "B")])
    assert DRAWN.at(5) == History([(2, 5, "B"), (4, 5, "C")])
    assert DRAWN.at(7) == History([(2, 7, "B")])
    assert DRAWN.at(INF) == History([(2, INF, "B")])
    assert DRAWN.at(1) == History()


@given(testing.histories(), st.integers(-1, HORIZON))
def test_to_a_time_keeps_every_snapshot_before_it_and_nothing_after(history, t):
    cut = history.to(t)
    for instant in range(HORIZON):
        assert cut.snapshot(instant) == (history.snapshot(instant) if instant < t else Counter())


@given(testing.histories(), st.integers(-1, HORIZON))
def test_at_a_time_is_the_snapshot_of_the_instant_before_it(history, t):
    assert Counter(e.payload for e in history.at(t)) == history.snapshot(t - 1)
    assert history.at(t).to(t) == history.at(t)


@given(testing.histories(), st.integers(0, HORIZON), st.integers(0, HORIZON))
def test_restricting_twice_is_restricting_to_the_earlier_time(history, s, t):
    assert history.to(s).to(t) == history.to(min(s, t))


def test_a_snapshot_holds_what_lives_at_one_instant():
    assert DRAWN.snapshot(3) == Counter("AB")
    assert DRAWN.snapshot(4) == Counter("BC")
    assert DRAWN.snapshot(0) == Counter()


def test_snapshots_lie_between_neighbouring_end_points_and_skip_gaps():
    #      1  2  3  4  5  6
    # A    ######
    # B    ######
    # C                ###
    history = History([(1, 3, "A"), (1, 3, "B"), (5, 6, "C")])
    assert history.end_points() == [1, 3, 5, 6]
    assert list(history.snapshots()) == [
        (Interval(1, 3), [Event(1, 3, "A"), Event(1, 3, "B")]),
        (Interval(5, 6), [Event(5, 6, "C")]),
    ]


@given(testing.histories())
def test_snapshots_are_the_payloads_that_live_at_each_instant(history):
    found = {time: Counter(e.payload for e in events) for time, events in history.snapshots()}
    for instant in range(HORIZON):
        covering = [content for time, content in found.items() if instant in time]
        assert covering == ([history.snapshot(instant)] if history.snapshot(instant) else [])


# --- in content ----------------------------------------------------------------------------------------------------


def test_where_keeps_whole_events():
    assert DRAWN.where(lambda p: p in "AC") == History([(1, 4, "A"), (4, 6, "C")])


@given(testing.histories())
def test_groups_part_a_history(history):
    groups = history.groups(lambda p: p in "AB")
    assert sum(groups.values(), History()) == history
    assert list(groups) == sorted(groups)
    assert all(set(members.groups(lambda p: p in "AB")) == {key} for key, members in groups.items())


def test_group_keys_may_be_rows_and_lists():
    history = History([(1, 2, Row(a=1, b=2)), (1, 2, Row(a=1, b=3))])
    assert list(history.groups(lambda p: [p.a])) == [(1,)]


# --- coalesce ------------------------------------------------------------------------------------------------------


def test_copies_that_overlap_coalesce_into_levels():
    #            1  2  3  4  5  6
    # before     #########
    #               #########
    #                        ###
    # level 1    ###############
    # level 2       ######
    history = History([(1, 4, "A"), (2, 5, "A"), (5, 6, "A")])
    assert history.coalesce() == History([(1, 6, "A"), (2, 4, "A")])


def runs(instants):
    """Maximal runs of neighbouring whole numbers, as (first, last + 1)."""
    ordered = sorted(instants)
    for _, run in groupby(enumerate(ordered), key=lambda pair: pair[1] - pair[0]):
        members = [t for _, t in run]
        yield members[0], members[-1] + 1


@given(testing.histories())
def test_the_kth_copy_lives_exactly_where_at_least_k_copies_live(history):
    expected = [
        (start, INF if end == HORIZON else end, p)
        for p in history.groups(lambda p: p)
        for k in range(1, len(history) + 1)
        for start, end in runs(t for t in range(HORIZON) if history.snapshot(t)[p] >= k)
    ]
    assert history.coalesce() == History(expected)


@given(testing.histories())
def test_coalesce_does_nothing_twice(history):
    assert history.coalesce().coalesce() == history.coalesce()


@given(testing.histories())
def test_coalesce_keeps_every_snapshot(history):
    coalesced = history.coalesce()
    assert all(coalesced.snapshot(t) == history.snapshot(t) for t in [*range(HORIZON), INF - 1])


@given(PAIRS)
def test_histories_with_the_same_snapshots_coalesce_to_the_same(pair):
    one, two = pair
    assert one.coalesce() == two.coalesce()


@given(testing.histories(max_size=3), testing.histories(max_size=3))
def test_only_histories_with_the_same_snapshots_coalesce_to_the_same(one, two):
    same = all(one.snapshot(t) == two.snapshot(t) for t in [*range(HORIZON), INF - 1])
    assert (one.coalesce() == two.coalesce()) == same


@given(testing.histories())
def test_no_history_with_the_same_snapshots_has_fewer_events(history):
    assert len(history.coalesce()) <= len(history)


def test_levels_count_what_is_below_zero_as_nothing():
    # sum   1  1  0 -1  0  1  2  0
    # t     0  1  2  3  4  5  6  7
    changes = {0: 1, 2: -1, 3: -1, 4: 1, 5: 1, 6: 1, 7: -2}
    assert sorted(levels(changes)) == [Interval(0, 2), Interval(5, 7), Interval(6, 7)]
