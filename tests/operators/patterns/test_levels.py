"""Events in levels against a plain list: what is near, in order, after events were added and removed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr.operators.patterns import levels
from cedr.operators.patterns.levels import EventLevels, Events

added = st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 9)), min_size=1, max_size=6)
steps = st.lists(st.one_of(added, st.integers(0, 10**6)), min_size=3, max_size=20)


@pytest.fixture(autouse=True)
def many_levels(monkeypatch):
    monkeypatch.setattr(levels, "FEW_EVENTS", 2)
    monkeypatch.setattr(levels, "GROWTH", 1)


def events_of(pairs, first_slot) -> Events:
    g, vs = (np.array(column, dtype=np.int64) for column in zip(*sorted(pairs), strict=True))
    slot = np.arange(first_slot, first_slot + len(g))
    return Events(g, vs, slot, np.ones(len(g), dtype=np.int64), slot, slot, slot)


def near(store, groups, low, high):
    return store.near(*(np.array(column, dtype=np.int64) for column in (groups, low, high)))


@given(steps)
def test_events_near_a_place_are_those_that_are_there(work):
    store, plain, slot = EventLevels(), [], 0
    for step in work:
        if isinstance(step, int):
            if plain:
                gone = plain.pop(step % len(plain))
                there = near(store, [gone[0]], [gone[1]], [gone[1]]).without_removed()
                found = near(store, [gone[0]], [gone[1]], [gone[1]])
                store.remove(*found.stored_at(np.flatnonzero(found.events.slot == gone[2])))
                assert gone[2] in there.events.slot
        else:
            new = events_of(step, slot)
            touched = np.unique(new.g)
            all_times = touched, np.zeros_like(touched), np.full_like(touched, 9)
            grown = near(store, *all_times).without_removed().plus(new)
            store.add(new)
            again = near(store, *all_times).without_removed()
            assert [c.tolist() for c in (*grown.events, grown.number)] == [
                c.tolist() for c in (*again.events, again.number)
            ]
            plain += zip(new.g.tolist(), new.vs.tolist(), new.slot.tolist(), strict=True)
            slot += len(step)
        plain.sort()
        groups, low, high = [-1, 0, 1, 3], [0, 2, 5, 1], [9, 7, 5, 8]
        found = near(store, groups, low, high).without_removed()
        bounds = {g: (a, b) for g, a, b in zip(groups, low, high, strict=True)}
        wanted = [e for e in plain if e[0] in bounds and bounds[e[0]][0] <= e[1] <= bounds[e[0]][1]]
        shown = list(zip(found.events.g.tolist(), found.events.vs.tolist(), found.events.slot.tolist(), strict=True))
        assert shown == wanted
        assert len(store) == len(plain)
        assert [groups[n] for n in found.number] == [e[0] for e in wanted]
    flat = store.flat()
    assert list(zip(flat.g.tolist(), flat.vs.tolist(), flat.slot.tolist(), strict=True)) == plain


def test_columns_that_must_not_change_are_read():
    """Only event types change in place, so all others may be in memory that belongs to somebody else."""
    events = events_of([(0, 1), (0, 2), (1, 5)], 0)
    for column in events[:3]:
        column.flags.writeable = False
    found = near(EventLevels(events), [0, 2], [2, 0], [9, 9])
    assert found.events.slot.tolist() == [1]
