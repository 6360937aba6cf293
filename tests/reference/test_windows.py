"""Windows are lifetimes: what they hold, how they compose, and which settings are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr import reference as ref
from cedr.temporal import INF, History, Interval, QueryError, TimeError
from cedr.testing import assert_same, histories

lengths = st.integers(1, 12)
grids = st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(-7, 7))  # hops per size, hop, offset


@given(histories(), lengths, lengths)
def test_windows_compose(history, a, b):
    assert_same(ref.moving(ref.moving(history, a), b), ref.moving(history, min(a, b)))
    assert_same(ref.sliding(ref.sliding(history, a), b), ref.sliding(history, b))
    assert_same(ref.moving(ref.sliding(history, a), b), ref.sliding(history, min(a, b)))
    assert_same(ref.inserts(ref.sliding(history, a)), ref.inserts(history))
    assert_same(ref.tumbling(ref.tumbling(history, a), a), ref.tumbling(history, a))
    assert_same(ref.sliding(ref.inserts(history), a), ref.sliding(history, a))


@given(histories(), lengths)
def test_sliding_counts_an_event_for_w_from_its_start(history, w):
    for t in range(60):
        live = [e.payload for e in history if t - w < e.vs <= t]
        assert sorted(ref.sliding(history, w).snapshot(t).elements()) == sorted(live)


@given(histories(), grids)
def test_a_snapshot_of_a_hopping_window_is_the_window(history, grid):
    """hop 2, size 4:   0   2   4   6
    window [0, 4)       [-------)        is what the snapshot [2, 4) shows
    """
    hops, hop, offset = grid
    size = hops * hop
    windowed = ref.hopping(history, size, hop, offset)
    for g in range(offset - 3 * hop, 40, hop):
        window = ref.window_of(Interval(g, g + hop), size, hop, offset)
        assert window == Interval(g + hop - size, g + hop)
        content = sorted(e.payload for e in history if e.vs in window)
        for t in range(g, g + hop):
            assert sorted(windowed.snapshot(t).elements()) == content


@given(histories())
def test_inserts_and_deletes_start_where_events_start_and_end(history):
    assert sorted(e.vs for e in ref.inserts(history)) == sorted(e.vs for e in history)
    assert sorted(e.vs for e in ref.deletes(history)) == sorted(e.ve for e in history if e.ve != INF)
    assert all(e.ve == INF for e in [*ref.inserts(history), *ref.deletes(history)])


def test_moving_keeps_a_lifetime_that_ends_earlier():
    assert ref.moving(History([(1, 3, "A"), (1, 30, "B"), (1, INF, "C")]), 5) == History(
        [(1, 3, "A"), (1, 6, "B"), (1, 6, "C")]
    )


def test_bad_windows_are_refused_with_what_would_be_right():
    history = History([(0, 1, "A")])
    with pytest.raises(QueryError, match="size 5 and hop 2: the size must be a finite multiple of the hop"):
        ref.hopping(history, 5, 2)
    with pytest.raises(TimeError, match="window length is 0; it must be at least one chronon"):
        ref.sliding(history, 0)


def test_a_start_function_that_runs_backwards_is_refused():
    history = History([(1, 2, "A"), (2, 3, "B")])
    with pytest.raises(QueryError, match="the start function must not decrease"):
        ref.alter_lifetime(history, start=lambda e: -e.vs)
