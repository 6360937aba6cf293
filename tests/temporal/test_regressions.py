"""Mistakes made once: kept so that they are not made again."""

from datetime import date
from decimal import Decimal

import pytest

from cedr.temporal import (
    Adjust,
    Cti,
    ExternalCti,
    History,
    HistoryTable,
    Insert,
    LifetimeError,
    StreamError,
    Version,
    canonical,
    validate,
)
from cedr.temporal.row import order_key
from cedr.temporal.time import INF


def test_the_same_element_twice_arrives_twice():
    a = Insert(1, 5, "A")
    assert [row.cs for row in HistoryTable.of([a, a]).rows] == [1, 2]


def test_a_table_of_an_invalid_stream_names_the_element():
    with pytest.raises(StreamError, match=r"adjust A \[1, 5\) to 3: there is no tuple"):
        HistoryTable.of([Adjust(1, 5, 3, "A")])


def test_the_sync_column_is_there_for_versions_too():
    table = HistoryTable.of([Insert(1, 5, Version("e", 1, 9, None))])
    assert table.annotated().split()[:4] == ["ID", "Vs", "Ve", "Sync"]


@pytest.mark.parametrize("small_big", [(Decimal(9), Decimal(10)), (date(2020, 9, 1), date(2020, 10, 1))])
def test_decimals_and_dates_are_ordered_by_value(small_big):
    small, big = small_big
    assert order_key(small) < order_key(big)


@pytest.mark.parametrize("nan", [lambda: Decimal("NaN"), lambda: Version("e", 1, 2, float("nan"))])
def test_a_retraction_finds_its_tuple_whatever_holds_the_nan(nan):
    assert canonical([Insert(1, 9, nan()), Adjust(1, 9, 4, nan())]) == History([(1, 4, nan())])


def test_a_count_that_can_no_longer_come_true_is_reported():
    with pytest.raises(StreamError, match="only 1 of the 5 elements came"):
        validate([Insert(1, 5, "A"), ExternalCti(0, 8, 5), Cti(8)])
    with pytest.raises(StreamError, match="it promises 5 elements, but 1 came before cti 8"):
        validate([Insert(1, 5, "A"), Cti(8), ExternalCti(0, 8, 5)])


def test_messages_name_the_end_at_which_time_ran_out():
    with pytest.raises(LifetimeError, match=r"the start \(vs\) is ∞"):
        Insert(INF, INF, "A")
