"""Tritemporal tables: statements about valid time, rows about occurrence and CEDR time, and what streams leave in them.

The figures of the paper are in tests/papers; here are the laws and the edges.
"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr import testing
from cedr.temporal import (
    INF,
    Adjust,
    Cti,
    History,
    HistoryRow,
    HistoryTable,
    Insert,
    LifetimeError,
    Statement,
    TimeError,
    Version,
    bitemporal,
    canonical,
    equivalent,
    known_at,
    retract,
)
from cedr.temporal.stream import data
from cedr.temporal.tritemporal import logically_equivalent

# --- statements ----------------------------------------------------------------------------------------------------


def test_each_statement_holds_until_the_next_about_the_same_event():
    # occurrence   1      4      6
    # door         open          shut
    # lamp                on
    history = bitemporal(
        [Statement("door", 0, 9, 1, "open"), Statement("door", 0, 9, 6, "shut"), Statement("lamp", 0, 9, 4, "on")]
    )
    assert history == History(
        [
            (1, 6, Version("door", 0, 9, "open")),
            (6, INF, Version("door", 0, 9, "shut")),
            (4, INF, Version("lamp", 0, 9, "on")),
        ]
    )


def test_two_statements_at_one_time_about_one_event_contradict_each_other():
    with pytest.raises(LifetimeError, match="event 'e0' has two statements at occurrence time 3; remove one"):
        bitemporal([Statement("e0", 1, 5, 3), Statement("e0", 1, 7, 3)])


def test_a_statement_needs_a_valid_lifetime():
    with pytest.raises(LifetimeError, match=re.escape("[5, 5) is empty")):
        bitemporal([Statement("e0", 5, 5, 3)])


STATEMENTS = st.lists(
    st.builds(
        Statement, st.sampled_from("xy"), testing.times(4), st.integers(5, 9), testing.times(9), testing.PAYLOADS
    ),
    unique_by=lambda s: (s.id, s.os),
    max_size=6,
)


@given(STATEMENTS, st.integers(0, 10))
def test_known_at_an_instant_is_the_latest_statement_about_each_event(statements, now):
    latest = {}
    for s in sorted(statements, key=lambda s: s.os):
        if s.os <= now:
            latest[s.id] = (s.vs, s.ve, s.payload)
    assert known_at(bitemporal(statements), now) == History(latest.values())


def test_a_version_prints_its_id_and_valid_time():
    assert str(Version("e0", 1, INF, "open")) == "e0 [1, ∞) open"


# --- rows ----------------------------------------------------------------------------------------------------------


def test_a_row_with_oe_at_os_is_removed():
    assert HistoryRow("E0", 5, 5, 1, INF).removed
    assert not HistoryRow("E0", 5, 6, 1, INF).removed


def test_a_row_that_ends_before_it_starts_is_refused():
    with pytest.raises(LifetimeError, match="row E0: Oe 4 lies before Os 5"):
        HistoryRow("E0", 5, 4, 1, INF)


def test_a_row_without_a_time_is_refused():
    with pytest.raises(TimeError, match=re.escape("Cs is missing (None)")):
        HistoryRow("E0", 5, 6, None, INF)


# --- tables --------------------------------------------------------------------------------------------------------


def test_without_arrivals_the_elements_come_at_1_2_3_and_ctis_take_no_time():
    stream = [Insert(1, 9, "A"), Cti(1), Adjust(1, 9, 5, "A"), Insert(4, 6, "B")]
    assert HistoryTable.of(stream).rows == (
        HistoryRow("E0", 1, 9, 1, 2, "A"),
        HistoryRow("E0", 1, 5, 2, INF, "A"),
        HistoryRow("E1", 4, 6, 3, INF, "B"),
    )


def test_every_element_needs_an_arrival():
    with pytest.raises(ValueError, match="zip"):
        HistoryTable.of([Insert(1, 9, "A"), Insert(4, 6, "B")], arrivals=[1])


def test_a_removed_chain_leaves_no_row_in_the_canonical_table():
    table = HistoryTable.of([Insert(1, 9, "A"), retract(1, 9, "A"), Insert(4, 6, "B")])
    assert [row.k for row in table.reduced().rows] == ["E0", "E1"]
    assert [row.k for row in table.canonical().rows] == ["E1"]


def test_a_grown_end_is_kept_as_the_last_row_of_its_chain():
    # The paper keeps the earliest Oe, which is the last row when ends only shrink; here one grows.
    table = HistoryTable.of([Insert(1, 5, "A"), Adjust(1, 5, 9, "A")])
    assert table.history() == History([(1, 9, "A")])


def test_truncation_drops_rows_that_start_at_the_time_or_later():
    table = HistoryTable.of([Insert(1, 9, "A"), Insert(4, 6, "B"), Insert(5, 6, "C")])
    assert [(r.os, r.oe) for r in table.canonical(to=4).rows] == [(1, 4)]
    assert [(r.os, r.oe) for r in table.canonical(to=5).rows] == [(1, 5), (4, 5)]
    assert [(r.os, r.oe) for r in table.canonical(at=8).rows] == [(1, 8)]


def test_the_sync_column_knows_growing_adjusts():
    table = HistoryTable.of([Insert(1, 5, "A"), Adjust(1, 5, 9, "A"), Adjust(1, 9, 7, "A")])
    assert table.syncs() == [1, 5, 7]


def test_an_empty_stream_leaves_an_empty_table():
    assert HistoryTable.of([]).rows == ()
    assert HistoryTable.of([]).history() == History()


# --- tables and streams describe the same --------------------------------------------------------------------------


@given(testing.streams())
def test_the_table_of_a_stream_has_its_canonical_history(stream):
    assert HistoryTable.of(stream).history() == canonical(stream)


@given(testing.streams())
def test_the_sync_column_is_that_of_the_elements(stream):
    assert HistoryTable.of(stream).syncs() == [e.sync for e in data(stream)]


@given(testing.streams(), st.integers(0, 45))
def test_canonical_tables_are_histories_to_and_at_a_time(stream, t):
    table, history = HistoryTable.of(stream), canonical(stream)
    assert table.canonical(to=t).history() == history.to(t)
    assert table.canonical(at=t).history() == history.at(t)


@given(testing.streams(max_size=3), testing.streams(max_size=3), st.integers(0, 45))
def test_tables_are_logically_equivalent_iff_their_streams_are(one, two, t):
    tables = HistoryTable.of(one), HistoryTable.of(two)
    assert logically_equivalent(*tables) == equivalent(one, two)
    assert logically_equivalent(*tables, to=t) == equivalent(one, two, to=t)
    assert logically_equivalent(*tables, at=t) == equivalent(one, two, at=t)


@given(testing.streams())
def test_the_rows_of_a_chain_follow_each_other_in_cedr_time(stream):
    rows = HistoryTable.of(stream).rows
    for k in {row.k for row in rows}:
        chain = [row for row in rows if row.k == k]
        assert [row.ce for row in chain] == [row.cs for row in chain[1:]] + [INF]


@given(testing.streams(), st.integers(0, 20))
def test_the_rows_believed_at_a_cedr_time_are_the_history_of_that_prefix(stream, now):
    believed = [row for row in HistoryTable.of(stream).rows if row.cs <= now < row.ce]
    history = History((row.os, row.oe, row.payload) for row in believed if not row.removed)
    assert history == canonical(data(stream)[:now])
