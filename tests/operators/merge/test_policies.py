"""What each policy emits when; that all of them are compatible is in test_laws.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from merge_check import SCHEMA, check_merge, merges, restored, row

from cedr.columnar.chunk import chunk_of
from cedr.operators.merge.algorithms import ALGORITHMS
from cedr.plan.merge_policy import Policy
from cedr.temporal import END, Adjust, Cti, History, Insert, canonical, closed_up_to

A, B = row("A"), row("B")
INDEXED = ["R3", "R3-", "R4"]


def feed(merge, port, *elements):
    return merge.process(port, chunk_of(elements, merge.schema)).elements()


@pytest.mark.parametrize("algorithm", INDEXED)
def test_leader_follows_the_highest_cti_and_changes_over(algorithm):
    merge = ALGORITHMS[algorithm](SCHEMA, 2, "leader")
    assert feed(merge, 0, Insert(5, 9, A), Cti(1)) == [Insert(5, 9, A), Cti(1)]
    assert feed(merge, 1, Insert(5, 8, A), Insert(6, 7, B)) == []
    assert feed(merge, 0, Adjust(5, 9, 10, A)) == [Adjust(5, 9, 10, A)]
    assert feed(merge, 1, Cti(2)) == [Adjust(5, 10, 8, A), Insert(6, 7, B), Cti(2)]  # input 1 leads
    merge.detach(1)
    assert feed(merge, 0, Insert(7, 8, B)) == [Adjust(5, 8, 10, A), Adjust(6, 7, 6, B), Insert(7, 8, B)]


@pytest.mark.parametrize("algorithm", INDEXED)
@given(data=st.data())
def test_leader_the_open_part_is_always_what_the_leader_has(algorithm, data):
    _, ports, arrivals, restore_at = data.draw(merges(algorithm))
    make = lambda: ALGORITHMS[algorithm](SCHEMA, ports, "leader")  # noqa: E731
    merge, out, sent = make(), [], [[] for _ in range(ports)]
    for step, (port, elements) in enumerate(arrivals):
        merge = restored(make, merge) if step in restore_at else merge
        out += feed(merge, port, *elements)
        sent[port] += elements
        highest = max(map(closed_up_to, sent))
        leaders = [still_open(t, merge.stable) for t in sent if closed_up_to(t) == highest]
        assert still_open(out, merge.stable) in leaders


def still_open(stream, stable):
    """Events that start at the CTI or later: all about them may still change."""
    return History(e for e in canonical(stream) if e.vs >= stable)


@pytest.mark.parametrize("algorithm", INDEXED)
def test_fraction_waits_for_so_many_inputs(algorithm):
    merge = ALGORITHMS[algorithm](SCHEMA, 3, Policy("fraction", 0.5))
    assert feed(merge, 0, Insert(5, 9, A)) == []
    assert feed(merge, 1, Insert(5, 8, A)) == [Insert(5, 8, A)]
    assert feed(merge, 1, Insert(6, 8, B)) == []
    merge.detach(2)  # one of two is half of them
    assert feed(merge, 0, Insert(7, 8, B)) == [Insert(7, 8, B)]
    assert feed(merge, 1, Cti(7)) == [Insert(6, 8, B), Cti(7)]


def test_fraction_counts_copies():
    merge = ALGORITHMS["R4"](SCHEMA, 2, Policy("fraction", 1.0))
    assert feed(merge, 0, Insert(5, 9, A), Insert(5, 8, A)) == []
    assert feed(merge, 1, Insert(5, 9, A)) == [Insert(5, 9, A)]
    assert feed(merge, 1, Insert(5, 7, A)) == [Insert(5, 7, A)]


@pytest.mark.parametrize("algorithm", INDEXED)
@given(data=st.data())
def test_half_frozen_removes_nothing(algorithm, data):
    _, ports, arrivals, restore_at = data.draw(merges(algorithm))
    make = lambda: ALGORITHMS[algorithm](SCHEMA, ports, "half-frozen")  # noqa: E731
    steps, _ = check_merge(make, ports, arrivals, restore_at, multiset=algorithm == "R4")
    assert not any(isinstance(e, Adjust) and e.removes for emitted in steps for e in emitted)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_lag_and_slowest_hold_the_cti_back(algorithm):
    merge = ALGORITHMS[algorithm](SCHEMA, 2, Policy(lag=3))
    assert feed(merge, 0, Insert(5, 9, A), Cti(5)) == [Insert(5, 9, A), Cti(2)]
    assert feed(merge, 1, Cti(4)) == []
    assert feed(merge, 0, END) == [END]
    merge = ALGORITHMS[algorithm](SCHEMA, 2, Policy(progress="slowest"))
    assert feed(merge, 0, Insert(5, 9, A), Cti(5)) == [Insert(5, 9, A)]
    assert feed(merge, 1, Cti(4)) == [Cti(4)]


def test_lag_puts_changes_off():
    # input 1 has settled that A ends at 7, input 0 may still agree in time
    for lag, emitted in ((0, [Adjust(2, 9, 7, A), Cti(8)]), (5, [Cti(3)])):
        merge = ALGORITHMS["R3"](SCHEMA, 2, Policy(lag=lag))
        feed(merge, 0, Insert(2, 9, A))
        assert feed(merge, 1, Insert(2, 7, A), Cti(8)) == emitted
