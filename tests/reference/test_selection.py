"""Selection and consumption: which matches are wanted, and what they use up."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr.reference.patterns import ALL, SEQUENCE, ReferenceCorrelationKey, ReferenceEventType, ReferencePatternQuery
from cedr.temporal import History, Row
from cedr.testing import histories, rows

events = histories(rows(m=st.integers(0, 1)), max_size=5, max_time=10)
modes = st.tuples(st.sampled_from(["EACH", "FIRST", "LAST"]), st.sampled_from(["REUSE", "CONSUME"]))
A, B = ReferenceEventType("A", "a"), ReferenceEventType("B", "b")


def with_modes(pattern, mode):
    selection, consumption = mode
    return replace(pattern, selection=selection, consumption=consumption)


def matched(query, data):
    return [m.payload for m in query.instances(data)]


@pytest.mark.parametrize("operator", [SEQUENCE, ALL])
@given(a=events, b=events, mode_a=modes, mode_b=modes)
def test_selection_and_consumption_never_invent_a_match(operator, a, b, mode_a, mode_b):
    data = {"A": a, "B": b}
    where = (ReferenceCorrelationKey("m"),)
    every = ReferencePatternQuery(operator(A, B, w=6), where).instances(data)
    some = ReferencePatternQuery(operator(with_modes(A, mode_a), with_modes(B, mode_b), w=6), where).instances(data)
    assert Counter(m.id for m in some) <= Counter(m.id for m in every)
    if every:
        assert some, "the first completing event always has a match to put out"


@given(a=events, b=events, mode=modes)
def test_a_consumed_event_takes_part_in_the_matches_of_one_completing_event_only(a, b, mode):
    consuming = with_modes(A, (mode[0], "CONSUME"))
    found = ReferencePatternQuery(SEQUENCE(consuming, B, w=6)).instances({"A": a, "B": b})
    completed_by = {}
    for m in found:
        completed_by.setdefault(m.cbt[0].id, set()).add(m.cbt[1].id)
    assert all(len(ends) == 1 for ends in completed_by.values())


@given(a=events, b=events)
def test_first_and_last_keep_one_partner_for_each_completing_event(a, b):
    data = {"A": a, "B": b}
    every = ReferencePatternQuery(SEQUENCE(A, B, w=6)).instances(data)
    for selection, pick in (("FIRST", min), ("LAST", max)):
        found = ReferencePatternQuery(SEQUENCE(with_modes(A, (selection, "REUSE")), B, w=6)).instances(data)
        by_end = {}
        for m in every:
            by_end.setdefault(m.cbt[1].id, []).append(m.cbt[0].order)
        assert {m.cbt[1].id: m.cbt[0].order for m in found} == {end: pick(o) for end, o in by_end.items()}
        assert len(found) == len(by_end)


#   A   a1 a2                 data of the examples below
#   B         b1 b2
DATA = {"A": History([(1, 9, "a1"), (2, 9, "a2")]), "B": History([(3, 9, "b1"), (4, 9, "b2")])}


@pytest.mark.parametrize(
    ("mode_a", "mode_b", "expected"),
    [
        (("EACH", "REUSE"), ("EACH", "REUSE"), ["a1 b1", "a2 b1", "a1 b2", "a2 b2"]),
        (("FIRST", "REUSE"), ("EACH", "REUSE"), ["a1 b1", "a1 b2"]),
        (("LAST", "REUSE"), ("EACH", "REUSE"), ["a2 b1", "a2 b2"]),
        (("FIRST", "CONSUME"), ("EACH", "REUSE"), ["a1 b1", "a2 b2"]),
        (("LAST", "CONSUME"), ("EACH", "REUSE"), ["a2 b1", "a1 b2"]),
        (("EACH", "CONSUME"), ("EACH", "REUSE"), ["a1 b1", "a2 b1"]),
        (("EACH", "REUSE"), ("EACH", "CONSUME"), ["a1 b1", "a2 b1", "a1 b2", "a2 b2"]),
    ],
)
def test_modes_by_hand(mode_a, mode_b, expected):
    query = ReferencePatternQuery(SEQUENCE(with_modes(A, mode_a), with_modes(B, mode_b), w=9))
    assert sorted(" ".join(p) for p in matched(query, DATA)) == sorted(expected)


def test_an_event_consumed_at_one_parameter_is_gone_for_all():
    # A  1 2 3: with x consumed, 1 is used by (1, 2); 2 is free as y was reused; then (2, 3)
    data = {"A": History([(1, 9, 1), (2, 9, 2), (3, 9, 3)])}
    x, y = ReferenceEventType("A", "x", "FIRST", "CONSUME"), ReferenceEventType("A", "y")
    assert matched(ReferencePatternQuery(SEQUENCE(x, y, w=9)), data) == [(1, 2), (2, 3)]
    assert matched(ReferencePatternQuery(SEQUENCE(x, replace(y, consumption="CONSUME"), w=9)), data) == [(1, 2)]


def test_parameters_are_walked_from_left_to_right():
    # x FIRST leaves a1; then y LAST chooses among the matches with a1
    data = {
        "A": History([(1, 9, "a1"), (2, 9, "a2")]),
        "B": History([(3, 9, "b1"), (4, 9, "b2")]),
        "C": History([(5, 9, "c")]),
    }
    query = ReferencePatternQuery(
        SEQUENCE(
            ReferenceEventType("A", selection="FIRST"),
            ReferenceEventType("B", selection="LAST"),
            ReferenceEventType("C"),
            w=9,
        )
    )
    assert matched(query, data) == [("a1", "b2", "c")]


def test_conditions_come_before_selection():
    data = {"A": History([(1, 9, Row(m=0)), (2, 9, Row(m=1))]), "B": History([(3, 9, Row(m=1))])}
    query = ReferencePatternQuery(
        SEQUENCE(ReferenceEventType("A", selection="FIRST"), B, w=9), (ReferenceCorrelationKey("m"),)
    )
    assert matched(query, data) == [(Row(m=1), Row(m=1))]
