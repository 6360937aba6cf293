"""Consistency Sensitive Streaming Operators in CEDR: its tables and definitions, checked without an engine."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr import reference, testing
from cedr.temporal import (
    INF,
    Adjust,
    Cti,
    ExternalCti,
    History,
    HistoryTable,
    Insert,
    Row,
    canonical,
    stream_table,
    validate,
    violations,
)
from cedr.temporal.stream import data

# --- Tables 1 and 2: one history, logical and physical -------------------------------------------------------------

TABLE_2 = [
    Insert(1, INF, "P1"),
    Adjust(1, INF, 10, "P1"),
    Adjust(1, 10, 5, "P1"),
    Insert(4, 9, "P2"),
]


def test_table_1_is_the_history_table_of_table_2():
    # The paper gives one C column, the arrival; two rows share C = 3. Ce follows: a row ends where its successor comes.
    assert str(HistoryTable.of(TABLE_2, arrivals=[1, 2, 3, 3])).splitlines() == [
        "K   Os  Oe  Cs  Ce  (Payload)",
        "E0   1   ∞   1   2  P1",
        "E0   1  10   2   3  P1",
        "E0   1   5   3   ∞  P1",
        "E1   4   9   3   ∞  P2",
    ]


def test_table_2_prints_the_physical_stream():
    assert stream_table(TABLE_2).splitlines() == [
        "Type     Vs  Ve  Vnewe  (Payload)",
        "Insert    1   ∞         P1",
        "Retract   1   ∞     10  P1",
        "Retract   1  10      5  P1",
        "Insert    4   9         P2",
    ]


def test_the_canonical_history_drops_retracted_rows():
    assert canonical(TABLE_2) == History([(1, 5, "P1"), (4, 9, "P2")])
    assert HistoryTable.of(TABLE_2).history() == canonical(TABLE_2)


def test_a_full_retraction_leaves_no_row():
    assert canonical([*TABLE_2, Adjust(4, 9, 4, "P2")]) == History([(1, 5, "P1")])


def test_bags_may_hold_two_identical_inserts():
    twice = canonical([Insert(1, 3, "P"), Insert(1, 3, "P")])
    assert twice == History([(1, 3, "P"), (1, 3, "P")])
    assert twice != History([(1, 3, "P")])


# --- The join example, Tables 1 to 4 of section 4.3 ----------------------------------------------------------------

# C          1      2      3      4      5      6
# S1         A0     Cti 1  A1                   A1 shorter
# S2                              A1     Cti 3
S1 = [Insert(0, 2, "A0"), Cti(1), Insert(2, 6, "A1"), Adjust(2, 6, 4, "A1")]
S2 = [Insert(3, 5, "A1"), Cti(3)]
JOIN_OUTPUT = [Insert(3, 5, "A1"), Cti(1), Adjust(3, 5, 4, "A1")]


def test_join_table_2_is_the_canonical_input():
    # Nothing in Table 1 shortens A0, so the [0, 1) that Table 2 prints for it must be [0, 2).
    assert canonical(S1) == History([(0, 2, "A0"), (2, 4, "A1")])
    assert canonical(S2) == History([(3, 5, "A1")])


def test_join_table_3_is_the_join_of_the_canonical_inputs():
    #         0  1  2  3  4
    # S1.A0   ######
    # S1.A1         ######
    # S2.A1            ######
    # join             ###
    def one_of_both(p1, p2):
        return p1

    joined = reference.inner_join(canonical(S1), canonical(S2), lambda p1, p2: p1 == p2, one_of_both)
    assert joined == History([(3, 4, "A1")])


def test_join_table_4_is_a_valid_output_with_the_history_of_table_3():
    validate(JOIN_OUTPUT)
    assert canonical(JOIN_OUTPUT) == History([(3, 4, "A1")])


# --- Definition 5: Sum ---------------------------------------------------------------------------------------------


def sum_by_definition_5(history, attribute):
    """All end points and 0; between neighbours the sum of what covers them, 0 where nothing does."""
    c = sorted({e.vs for e in history} | {e.ve for e in history} | {0})
    found = []
    for vs, ve in pairwise(c):
        covering = [e for e in history if e.vs <= vs and ve <= e.ve]
        found.append((vs, ve, sum(e.payload[attribute] for e in covering), len(covering)))
    return found


#      0  1  2  3  4  5  6  7
# 2       #########
# 3             #########
# 4                         ###
NUMBERS = History([(1, 4, Row(a=2)), (3, 6, Row(a=3)), (7, 8, Row(a=4))])


def test_sum_adds_up_each_snapshot():
    assert [row[:3] for row in sum_by_definition_5(NUMBERS, "a")] == [
        (0, 1, 0),
        (1, 3, 2),
        (3, 4, 5),
        (4, 6, 3),
        (6, 7, 0),
        (7, 8, 4),
    ]


def test_an_empty_snapshot_gives_no_sum():
    # Definition 5 also gives 0 where nothing is, from time 0 on; per snapshot there is then a row that no tuple made.
    totals = reference.aggregate(NUMBERS, total=reference.sum_("a"))
    assert totals == History([(vs, ve, Row(total=a)) for vs, ve, a in [(1, 3, 2), (3, 4, 5), (4, 6, 3), (7, 8, 4)]])


@given(testing.histories(testing.rows(a=st.integers(-2, 3))))
def test_sum_is_definition_5_without_the_empty_snapshots(history):
    by_definition = History(
        (vs, ve, Row(total=a)) for vs, ve, a, covering in sum_by_definition_5(history, "a") if covering
    )
    assert reference.aggregate(history, total=reference.sum_("a")) == by_definition


# --- Definition 6: windows -----------------------------------------------------------------------------------------


def test_the_window_of_the_report_gives_every_event_the_full_length():
    # Not the W of the CEDR paper: an event that lives shorter than the window still counts for all of it.
    #             1  2  3  4  5
    # event       ###
    # sliding(4)  ############
    # moving(4)   ###
    history = History([(1, 2, "A")])
    assert reference.sliding(history, 4) == History([(1, 5, "A")])
    assert reference.moving(history, 4) == History([(1, 2, "A")])


def test_a_sum_over_a_sliding_window_is_a_moving_sum():
    #            0  1  2  3  4  5
    # 2 at 0     #########
    # 3 at 2           #########
    # sum        2  2  5  3  3
    readings = History([(0, 1, Row(a=2)), (2, 3, Row(a=3))])
    moving_sum = reference.aggregate(reference.sliding(readings, 3), total=reference.sum_("a"))
    assert moving_sum == History([(0, 2, Row(total=2)), (2, 3, Row(total=5)), (3, 5, Row(total=3))])


@given(testing.streams(), st.integers(1, 9))
def test_a_removed_event_leaves_no_window_behind(stream, w):
    assert len(reference.sliding(canonical(stream), w)) == len(canonical(stream))


# --- Table 5: broken chains and an external CTI --------------------------------------------------------------------

TABLE_5 = [
    Adjust(0, 10, 8, "P0"),
    Adjust(0, 6, 4, "P0"),
    Adjust(0, 8, 6, "P0"),
    Insert(0, 10, "P0"),
    ExternalCti(0, 8, 5),
    Insert(1, 5, "P1"),
]


def test_table_5_prints_the_count_as_payload():
    assert stream_table(TABLE_5).splitlines() == [
        "Type         Vs  Ve  Vnewe  (Payload)",
        "Retract       0  10      8  P0",
        "Retract       0   6      4  P0",
        "Retract       0   8      6  P0",
        "Insert        0  10         P0",
        "ExternalCTI   0   8         5",
        "Insert        1   5         P1",
    ]


def test_the_retractions_of_table_5_came_before_their_insert():
    found = violations(TABLE_5)
    assert [error.position for error in found] == [0, 1, 2]
    assert [error.element for error in found] == TABLE_5[:3]
    assert [str(error) for error in found] == [
        f"element {position}, {element}: there is no tuple P0 {element.lifetime} to adjust; "
        "it was never inserted, or was removed"
        for position, element in enumerate(TABLE_5[:3])
    ]


def test_in_the_order_of_its_chain_table_5_is_valid():
    repaired = [TABLE_5[3], TABLE_5[0], TABLE_5[2], TABLE_5[1], *TABLE_5[4:]]
    assert violations(repaired) == []
    assert canonical(repaired) == History([(0, 4, "P0"), (1, 5, "P1")])


@pytest.mark.parametrize(("end", "count"), [(8, 4), (9, 5)])
def test_the_count_5_of_table_5_includes_the_retraction_whose_sync_time_is_8(end, count):
    # sync      0  1  2  3  4  5  6  7  8
    # element   4  6        2     3     1
    # The external CTI has [0, 8) and 5, but of the five elements only four lie in [0, 8): retraction 1 has sync time
    # 8. The span that holds all five is [0, 9).
    assert sum(0 <= e.sync < end for e in data(TABLE_5)) == count
