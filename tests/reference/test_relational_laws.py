"""Relational operators of the oracle: each against plain bags, instant by instant, and their laws."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr import reference as ref
from cedr.temporal import INF, History, QueryError
from cedr.testing import MAX_TIME, PAYLOADS, assert_same, assert_same_snapshots, histories

INSTANTS = [*range(2 * MAX_TIME + 2), INF - 1]
any_history = histories()
matches = st.sampled_from([lambda a, b: a == b, lambda a, b: a != b, lambda a, b: True, lambda a, b: a < b])


def partners(p, others, on):
    return [q for q in others if on(p, q)]


# Each operator on the bags of one instant; `left` and `right` are lists of payloads.
PER_INSTANT = {
    "inner": lambda left, right, on: [(p, q) for p in left for q in partners(p, right, on)],
    "left": lambda left, right, on: [(p, q) for p in left for q in partners(p, right, on) or [None]],
    "full": lambda left, right, on: (
        [(p, q) for p in left for q in partners(p, right, on) or [None]]
        + [(None, q) for q in right if not any(on(p, q) for p in left)]
    ),
    "semi": lambda left, right, on: [p for p in left if partners(p, right, on)],
    "anti": lambda left, right, on: [p for p in left if not partners(p, right, on)],
}


@pytest.mark.parametrize("how", PER_INSTANT)
@given(left=any_history, right=any_history, on=matches)
def test_join_is_the_join_of_every_instant(how, left, right, on):
    joined = ref.join(left, right, on, how=how)
    for t in INSTANTS:
        expected = PER_INSTANT[how](list(left.snapshot(t).elements()), list(right.snapshot(t).elements()), on)
        assert joined.snapshot(t) == Counter(expected)


@given(any_history, any_history)
def test_union_difference_intersect_are_those_of_every_instant(left, right):
    union, difference, intersect = ref.union(left, right), ref.difference(left, right), ref.intersect(left, right)
    for t in INSTANTS:
        a, b = left.snapshot(t), right.snapshot(t)
        assert union.snapshot(t) == a + b
        assert difference.snapshot(t) == a - b
        assert intersect.snapshot(t) == Counter(set(a) & set(b))


@given(any_history)
def test_distinct_has_every_payload_once_per_instant(history):
    for t in INSTANTS:
        assert ref.distinct(history).snapshot(t) == Counter(set(history.snapshot(t)))


@given(any_history, any_history, matches)
def test_join_commutes(left, right, on):
    swapped = ref.join(right, left, lambda p2, p1: on(p1, p2), combine=lambda p2, p1: (p1, p2))
    assert_same(ref.join(left, right, on), swapped)


@given(any_history, any_history, any_history)
def test_join_and_union_associate(a, b, c):
    def equal(p, q):
        return p == q

    left = ref.join(ref.join(a, b, equal, combine=lambda p, _: p), c, equal, combine=lambda p, _: p)
    right = ref.join(a, ref.join(b, c, equal, combine=lambda p, _: p), equal, combine=lambda p, _: p)
    assert_same(left, right)
    assert_same(ref.union(ref.union(a, b), c), ref.union(a, ref.union(b, c)))
    assert_same(ref.union(a, b), ref.union(b, a))


@given(any_history, any_history, any_history)
def test_join_distributes_over_union(a, b, c):
    assert_same(ref.join(ref.union(a, b), c), ref.union(ref.join(a, c), ref.join(b, c)))


@given(any_history, any_history)
def test_union_then_difference_gives_back_the_first(a, b):
    assert_same_snapshots(ref.difference(ref.union(a, b), b), a)


@given(any_history, any_history)
def test_difference_then_union_is_the_larger_of_both_at_every_instant(a, b):
    larger = ref.union(ref.difference(a, b), b)
    for t in INSTANTS:
        assert larger.snapshot(t) == a.snapshot(t) | b.snapshot(t)


@given(any_history, any_history)
def test_semi_and_anti_join_part_the_left_side(a, b):
    def on(p, q):
        return p == q

    assert_same_snapshots(ref.union(ref.semi_join(a, b, on), ref.anti_join(a, b, on)), a)


@given(any_history, any_history)
def test_difference_by_key_is_the_anti_join_on_it(a, b):
    assert_same(ref.difference(a, b, key=lambda p: p), ref.anti_join(a, b, lambda p, q: p == q))


@given(any_history, any_history)
def test_select_pushes_below_union_and_join(a, b):
    def keep(p):
        return p != "B"

    assert_same(ref.select(ref.union(a, b), keep), ref.union(ref.select(a, keep), ref.select(b, keep)))
    assert_same(ref.select(ref.join(a, b), lambda pair: keep(pair[0])), ref.join(ref.select(a, keep), b))


@given(any_history)
def test_project_keeps_times_and_number(history):
    lowered = ref.project(history, str.lower)
    assert Counter((e.vs, e.ve, e.payload.lower()) for e in history) == Counter(map(tuple, lowered))


@given(any_history, any_history)
def test_clip_ends_an_event_at_the_first_start_inside_it(history, other):
    clipped = sorted((e.vs, p, e.ve) for e in ref.clip(history, other, lambda a, b: a == b) for p in [e.payload])
    expected = []
    for e in history:
        inside = [o.vs for o in other if o.payload == e.payload and e.vs < o.vs < e.ve]
        expected.append((e.vs, e.payload, min([*inside, e.ve])))
    assert clipped == sorted(expected)


@given(histories(infinite=False), st.integers(1, 7), st.integers(-5, 5))
def test_chop_cuts_at_grid_points_and_nowhere_else(history, period, offset):
    chopped = ref.chop(history, period, offset)
    assert_same_snapshots(chopped, history)
    for piece in chopped:
        assert not [t for t in range(piece.vs + 1, piece.ve) if (t - offset) % period == 0]
    starts, ends = {e.vs for e in history}, {e.ve for e in history}
    assert all(e.vs in starts or (e.vs - offset) % period == 0 for e in chopped)
    assert all(e.ve in ends or (e.ve - offset) % period == 0 for e in chopped)


def test_chop_refuses_a_lifetime_without_end():
    with pytest.raises(QueryError, match=r"chop by 5: A \[1, ∞\) has no end"):
        ref.chop(History([(1, INF, "A")]), 5)


@given(histories(infinite=False), st.integers(1, 6))
def test_session_groups_starts_closer_than_the_timeout(history, timeout):
    """Two members share a session exactly if no gap of `timeout` or more lies between their starts."""
    result = ref.session(history, timeout, by=lambda p: p)
    for payload, group in history.groups(lambda p: p).items():
        starts = sorted(e.vs for e in group)
        expected = Counter()
        for vs in starts:
            first = last = vs
            while any(0 < first - s < timeout for s in starts):
                first = max(s for s in starts if 0 < first - s < timeout)
            while any(0 < s - last < timeout for s in starts):
                last = min(s for s in starts if 0 < s - last < timeout)
            expected[first, last + timeout, payload] += 1
        assert Counter(map(tuple, result.where(lambda p, wanted=payload: p == wanted))) == expected


def test_session_by_hand():
    # start   1 2     6        timeout 3: 1 and 2 belong together, 6 comes 4 after 2
    history = History([(1, 2, "A"), (2, 9, "B"), (6, 7, "C")])
    assert ref.session(history, 3) == History([(1, 5, "A"), (1, 5, "B"), (6, 9, "C")])


@given(histories(payloads=PAYLOADS))
def test_coalesce_is_one_form_for_all_packagings(history):
    assert_same(ref.coalesce(ref.coalesce(history)), ref.coalesce(history))
    for t in INSTANTS:
        assert ref.coalesce(history).snapshot(t) == history.snapshot(t)
