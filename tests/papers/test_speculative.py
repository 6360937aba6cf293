"""Operator Algorithm Design for Speculative Stream Processing: tables, stream classes and lemmas, without an engine.

Two lemmas are true only in a narrower reading than printed; the counterexamples are kept here with the true ones.
"""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr import reference, testing
from cedr.temporal import (
    END,
    INF,
    MIN,
    Adjust,
    Cti,
    Event,
    History,
    Insert,
    StreamError,
    canonical,
    closed,
    closed_at,
    closed_up_to,
    ordered,
    perfect,
    relations,
    stream_table,
    up_to,
    validate,
)
from cedr.temporal.stream import chains, ctis, timed

TABLE_1 = [
    Insert(1, INF, "P1"),
    Cti(1),
    Adjust(1, INF, 10, "P1"),
    Adjust(1, 10, 5, "P1"),
    Insert(4, 9, "P2"),
    Cti(10),
]

ANY_STREAM = st.one_of(testing.streams(), testing.streams(ordered=True), testing.streams(closed=True))


def prefixes(stream):
    return [stream[:i] for i in range(len(stream) + 1)]


# --- Tables 1 and 2 ------------------------------------------------------------------------------------------------


def test_table_1_prints_the_stream_in_arrival_order():
    assert stream_table(TABLE_1).splitlines() == [
        "Type     Vs  Ve  Vnewe  (Payload)",
        "Insert    1   ∞         P1",
        "CTI       1",
        "Retract   1   ∞     10  P1",
        "Retract   1  10      5  P1",
        "Insert    4   9         P2",
        "CTI      10",
    ]


def test_table_2_is_the_canonical_history_of_table_1():
    #      1  2  3  4  5  6  7  8
    # P1   ############
    # P2            ###############
    assert canonical(TABLE_1) == History([(1, 5, "P1"), (4, 9, "P2")])
    assert str(canonical(TABLE_1)).splitlines() == [
        "Vs  Ve  (Payload)",
        " 1   5  P1",
        " 4   9  P2",
    ]


def test_the_virtual_relation_of_table_1_changes_with_each_element():
    assert list(relations(TABLE_1)) == [
        History([(1, INF, "P1")]),
        History([(1, INF, "P1")]),
        History([(1, 10, "P1")]),
        History([(1, 5, "P1")]),
        History([(1, 5, "P1"), (4, 9, "P2")]),
        History([(1, 5, "P1"), (4, 9, "P2")]),
    ]


def test_table_1_has_the_sync_times_of_the_definition():
    assert [e.sync for e in TABLE_1] == [1, 1, 10, 5, 4, 10]


def test_table_1_is_neither_ordered_nor_perfect_but_closed_up_to_10():
    assert not ordered(TABLE_1)
    assert not perfect(TABLE_1)
    assert closed_up_to(TABLE_1) == 10
    assert closed_at(TABLE_1, 10)
    assert not closed_at(TABLE_1, 11)


def test_table_1_is_not_closed_as_its_last_cti_does_not_pass_the_retraction_to_10():
    assert not closed(TABLE_1)
    assert closed([*TABLE_1, Cti(11)])


# --- Definitions 3 to 5 --------------------------------------------------------------------------------------------


def test_ordered_streams_have_sync_times_that_never_decrease():
    assert ordered([Insert(1, 9, "A"), Insert(3, 4, "B"), Cti(5), Adjust(1, 9, 6, "A")])
    assert ordered([Insert(1, 9, "A"), Insert(1, 4, "B")])
    assert not ordered([Insert(3, 4, "B"), Insert(1, 9, "A")])
    assert not ordered([Insert(1, 9, "A"), Cti(0)])
    assert ordered([])


def test_perfect_streams_have_no_adjusts():
    assert perfect([Insert(1, 9, "A"), Cti(2), Insert(3, 4, "B")])
    assert not perfect([Insert(1, 9, "A"), Adjust(1, 9, 6, "A")])
    assert not perfect([Insert(3, 4, "B"), Insert(1, 9, "A")])


def test_closed_streams_end_with_a_cti_past_everything():
    assert closed([Cti(1)])
    assert closed([Insert(1, 9, "A"), Cti(2)])
    assert closed([Insert(1, 9, "A"), END])
    assert not closed([])
    assert not closed([Insert(1, 9, "A")])
    assert not closed([Cti(2), Insert(2, 9, "A")])
    assert not closed([Insert(2, 9, "A"), Cti(2)])


def test_a_stream_without_cti_is_closed_up_to_nothing():
    assert closed_up_to([Insert(1, 9, "A")]) == MIN
    assert closed_up_to([]) == MIN


@given(ANY_STREAM)
def test_the_cti_of_infinity_can_follow_any_valid_stream(stream):
    validate([*stream, END])
    assert closed_up_to([*stream, END]) == INF


# --- Lemma 1 -------------------------------------------------------------------------------------------------------


@given(testing.streams(growing=False))
def test_lemma_1_in_an_ordered_stream_of_retractions_each_insert_is_adjusted_at_most_once(stream):
    # Stated the other way round, so that it is not empty: a chain with two retractions is out of order.
    if any(len(chain) > 2 for chain in chains(stream)):
        assert not ordered(stream)


@given(testing.streams(growing=False, ordered=True))
def test_lemma_1_holds_for_ordered_streams_as_they_are_drawn(stream):
    assert all(len(chain) <= 2 for chain in chains(stream))


def test_lemma_1_fails_once_ends_may_grow():
    #  1  2  3  4  5  6  7  8
    #  ############|              insert, end 5
    #              |######|       adjust to 7, sync 5
    #                     |###    adjust to 8, sync 7
    growing = [Insert(1, 5, "A"), Adjust(1, 5, 7, "A"), Adjust(1, 7, 8, "A")]
    assert ordered(growing)
    assert [len(chain) for chain in chains(growing)] == [3]


# --- Lemma 2 -------------------------------------------------------------------------------------------------------


@given(testing.streams(ordered=True))
def test_lemma_2_prefixes_of_ordered_streams_are_ordered(stream):
    assert ordered(stream)
    assert all(ordered(p) for p in prefixes(stream))


@given(testing.streams(ordered=True, adjusts=False))
def test_lemma_2_prefixes_of_perfect_streams_are_perfect(stream):
    assert perfect(stream)
    assert all(perfect(p) for p in prefixes(stream))


# --- Lemma 3 -------------------------------------------------------------------------------------------------------


@given(ANY_STREAM)
def test_lemma_3_closed_up_to_is_the_largest_cti(stream):
    by_definition_5 = [t for t in [*range(-1, 50), INF] if closed_at(stream, t) and not closed_at(stream, t + 1)]
    assert by_definition_5 == ([max(ctis(stream))] if ctis(stream) else [])
    assert closed_up_to(stream) == max(by_definition_5, default=MIN)


@given(st.one_of(testing.streams(closed=True), testing.streams(ordered=True)))
def test_lemma_3_a_closed_stream_is_closed_up_to_its_last_cti(stream):
    assert not closed(stream) or closed_up_to(stream) == stream[-1].t


# What came early, beyond the promise:
#
#   time      0  1  2  3  4  5  6  7  8
#   CTI                |
#   A                        ############
EARLY = [Insert(5, 9, "A"), Cti(3)]


def test_lemma_3_does_not_hold_from_right_to_left():
    validate(EARLY)
    assert closed_up_to(EARLY) == EARLY[-1].t
    assert not closed(EARLY)


# --- Lemma 4 -------------------------------------------------------------------------------------------------------


@given(ANY_STREAM)
def test_lemma_4_what_a_prefix_is_closed_at_the_stream_is_closed_at(stream):
    assert all(closed_at(stream, t) for p in prefixes(stream) for t in range(-1, 50) if closed_at(p, t))


def test_lemma_4_not_every_stream_has_a_closed_prefix_up_to_its_cti():
    assert not any(closed(p) for p in prefixes(EARLY))


@given(ANY_STREAM)
def test_lemma_4_holds_for_the_elements_before_the_cti_instead_of_a_prefix(stream):
    t = closed_up_to(stream)
    restricted = [*up_to(stream, t), Cti(t)]
    assert closed(restricted)
    assert closed_up_to(restricted) == t


@given(testing.streams(ordered=True))
def test_lemma_4_holds_for_ordered_streams(stream):
    if ctis(stream):
        t = closed_up_to(stream)
        restricted = [e for e in timed(stream) if e.sync < t]
        assert restricted == timed(stream)[: len(restricted)]
        validate([*restricted, Cti(t)])


def test_even_a_closed_stream_may_have_no_closed_proper_prefix():
    stream = [Insert(5, 9, "A"), Cti(3), Insert(4, 6, "B"), END]
    assert closed(stream)
    assert not any(closed(p) for p in prefixes(stream)[:-1])


# --- The restriction of Definition 8 -------------------------------------------------------------------------------


def test_the_elements_before_t_can_miss_a_link_of_a_chain():
    # The retraction of P1 from ∞ to 10 has sync time 10 and falls away, the next one, from 10 to 5, stays: Definition 8
    # applies the converter to something that is not a valid stream.
    restricted = up_to(TABLE_1, 6)
    assert restricted == [TABLE_1[0], TABLE_1[1], TABLE_1[3], TABLE_1[4]]
    with pytest.raises(StreamError, match=r"there is no tuple P1 .* only ends at ∞"):
        validate(restricted)


@given(testing.streams(ordered=True), st.integers(0, 45))
def test_in_ordered_streams_the_elements_before_t_decide_the_history_to_t(stream, t):
    assert canonical(up_to(stream, t)).to(t) == canonical(stream).to(t)


@given(ANY_STREAM, st.data())
def test_a_cti_settles_the_history_to_its_time(stream, choice):
    seen = choice.draw(st.sampled_from(prefixes(stream)))
    t = closed_up_to(seen)
    assert canonical(seen).to(t) == canonical(stream).to(t)


# --- Section 3.1: snapshot-oriented operators ----------------------------------------------------------------------

#      1  2  3  4  5  6  7  8  9  10 11
# A    ############
# B          ###############
# C                               ######
#      |     |     |        |     |     |    end points 1 3 5 8 10 12
DRAWN = History([(1, 5, "A"), (3, 8, "B"), (10, 12, "C")])


def test_end_points_are_each_start_and_end_once():
    assert DRAWN.end_points() == [1, 3, 5, 8, 10, 12]


def covering(history, v):
    """F_v as printed."""
    points = history.end_points()
    after = points[points.index(v) + 1]
    return [e for e in history if e.vs <= v and e.ve >= after]


def test_f_v_are_the_events_that_cover_a_snapshot():
    a, b, c = Event(1, 5, "A"), Event(3, 8, "B"), Event(10, 12, "C")
    assert {v: covering(DRAWN, v) for v in DRAWN.end_points()[:-1]} == {1: [a], 3: [a, b], 5: [b], 8: [], 10: [c]}


def test_a_snapshot_operator_puts_out_its_function_of_each_f_v_that_is_not_empty():
    letters = reference.snapshot(DRAWN, lambda events: ["".join(e.payload for e in events)])
    assert letters == History([(1, 3, "A"), (3, 5, "AB"), (5, 8, "B"), (10, 12, "C")])


def test_a_snapshot_operator_may_put_out_several_payloads_or_none():
    each = reference.snapshot(DRAWN, lambda events: [e.payload for e in events] if len(events) > 1 else [])
    assert each == History([(3, 5, "A"), (3, 5, "B")])


@given(testing.histories())
def test_snapshot_is_the_definition_of_section_3_1(history):
    by_definition = History(
        (v, after, len(found)) for v, after in pairwise(history.end_points()) if (found := covering(history, v))
    )
    assert reference.snapshot(history, lambda events: [len(events)]) == by_definition
