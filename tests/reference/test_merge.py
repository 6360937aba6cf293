"""Mutual consistency and compatibility against their definitions: all histories of a tiny world are tried."""

from itertools import combinations_with_replacement, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr.reference.merge import ReferenceR3, ReferenceR4, can_become, compatible, mutually_consistent
from cedr.temporal import INF, Adjust, Cti, History, Insert, Relation, StreamError, canonical, closed_up_to
from cedr.testing import streams_of

ENDS = {0: (1, 2, 3, INF), 1: (2, 3, INF), 2: (3,)}


def worlds(copies):
    """Every history of payload p over these starts and ends, with at most this number of copies of a start."""
    bags = [
        [
            [(vs, ve, "p") for ve in bag]
            for size in range(copies + 1)
            for bag in combinations_with_replacement(ends, size)
        ]
        for vs, ends in ENDS.items()
    ]
    return [History(e for part in parts for e in part) for parts in product(*bags)]


WORLDS = {copies: worlds(copies) for copies in (1, 2)}
starts = st.sampled_from([0, 0, 1, 2])
ctis = st.sampled_from([1, 2, INF]).map(Cti)
BEGIN = Cti(0)
"""In the tiny world nothing starts before 0, and every stream promises that."""


@st.composite
def prefixes(draw, copies):
    """A valid stream of a few elements of the tiny world."""
    relation, found = Relation(), [BEGIN]
    for _ in range(draw(st.integers(0, 5))):
        vs = draw(starts)
        kind = draw(st.sampled_from("iiac"))
        known = [e for e in relation.history() if e.vs == vs]
        if kind == "c":
            element = draw(ctis)
        elif kind == "i" and len(known) < copies:
            element = Insert(vs, draw(st.sampled_from(ENDS[vs])), "p")
        elif kind == "a" and known:
            old, new = draw(st.sampled_from(known)).ve, draw(st.sampled_from((vs, *ENDS[vs])))
            if old == new:
                continue
            element = Adjust(vs, old, new, "p")
        else:
            continue
        try:
            relation.apply(element)
        except StreamError:
            continue
        found.append(element)
    return found


def possible(inputs, copies):
    """The histories that all inputs can still become."""
    return [h for h in WORLDS[copies] if all(can_become(i, h) for i in inputs)]


@pytest.mark.parametrize("copies", [1, 2])
@given(data=st.data())
def test_prefixes_are_mutually_consistent_when_a_history_is_left_for_all(copies, data):
    inputs = data.draw(st.lists(prefixes(copies), min_size=1, max_size=3))
    assert mutually_consistent(inputs) == bool(possible(inputs, copies))


@pytest.mark.parametrize("copies", [1, 2])
@given(data=st.data())
def test_an_output_is_compatible_when_it_can_become_whatever_the_inputs_can(copies, data):
    inputs = data.draw(st.lists(prefixes(copies), min_size=1, max_size=2).filter(mutually_consistent))
    output = data.draw(prefixes(copies))
    expected = all(can_become(output, h) for h in possible(inputs, copies))
    assert (not compatible(inputs, output, multiset=copies > 1)) == expected


def test_in_the_set_case_two_events_of_one_key_are_named():
    two = [Insert(0, 1, "p"), Insert(0, 3, "p")]
    (violation,) = compatible([[BEGIN]], two)
    assert violation.condition == "C2"
    assert str(violation) == "C2: start and payload are a key, but the output has p [0, 1), p [0, 3)"
    assert not compatible([[BEGIN]], two, multiset=True)


# --- the algorithms, by these definitions --------------------------------------------------------------------------


@st.composite
def streams_of_one_history(draw, unique):
    """Two or three streams of one history, and the order in which their elements arrive."""
    ends = st.sampled_from([3, 5, 9, INF])
    events = st.tuples(st.sampled_from([0, 1, 2, 4]), ends, st.sampled_from("AB")).filter(lambda e: e[0] < e[1])
    by = {"unique_by": lambda e: (e[0], e[2])} if unique else {}
    history = History(draw(st.lists(events, max_size=5, **by)))
    inputs = [draw(streams_of(history, ghosts=0 if unique else 1, closed=True)) for _ in range(draw(st.integers(2, 3)))]
    turns = draw(st.permutations([port for port, s in enumerate(inputs) for _ in s]))
    rest = [iter(s) for s in inputs]
    return history, [(port, next(rest[port])) for port in turns]


@pytest.mark.parametrize("make", [ReferenceR3, ReferenceR4])
@given(data=st.data())
def test_the_algorithms_stay_compatible_and_end_equivalent(make, data):
    history, arrivals = data.draw(streams_of_one_history(unique=make is ReferenceR3))
    merge, inputs, output = make(), [[], [], []], []
    for port, element in arrivals:
        inputs[port].append(element)
        output += merge.take(port, element)
        assert mutually_consistent(inputs)
        assert compatible(inputs, output, multiset=make is ReferenceR4) == []
        assert closed_up_to(output) == max(closed_up_to(i) for i in inputs)
    assert canonical(output) == history
    assert not merge.index
