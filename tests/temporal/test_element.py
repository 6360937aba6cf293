"""Elements: what they hold, their sync times, how they print, and which ones cannot be made."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr.temporal import (
    END,
    INF,
    Adjust,
    Cti,
    ExternalCti,
    Insert,
    Interval,
    LifetimeError,
    Row,
    TimeError,
    retract,
)

# --- sync times ----------------------------------------------------------------------------------------------------


def test_an_insert_can_change_things_from_its_start_on():
    #   1  2  3  4
    #   ############
    #   ^ sync
    assert Insert(1, 5, "A").sync == 1


def test_a_retraction_can_change_things_from_its_new_end_on():
    #   1  2  3  4  5  6
    #   #########|------
    #            ^ sync
    assert Adjust(1, 7, 4, "A").sync == 4


def test_a_growing_adjust_can_change_things_from_its_old_end_on():
    #   1  2  3  4  5  6
    #   #########|++++++
    #            ^ sync
    assert Adjust(1, 4, 7, "A").sync == 4


def test_a_cti_has_its_time_as_sync():
    assert Cti(5).sync == 5
    assert END.sync == INF


@given(st.integers(0, 9), st.integers(1, 9), st.integers(0, 9))
def test_an_adjust_changes_no_instant_before_its_sync_time(vs, length, new_length):
    if length != new_length:
        adjust = Adjust(vs, vs + length, vs + new_length, "A")
        before, after = set(range(vs, vs + length)), set(range(vs, vs + new_length))
        assert min(before ^ after) == adjust.sync


# --- kinds of adjusts ----------------------------------------------------------------------------------------------


def test_an_adjust_to_its_start_removes():
    assert retract(1, 5, "A") == Adjust(1, 5, 1, "A")
    assert retract(1, 5, "A").removes
    assert retract(1, 5, "A").retracts
    assert not Adjust(1, 5, 2, "A").removes


def test_only_a_shrinking_adjust_retracts():
    assert Adjust(1, 5, 3, "A").retracts
    assert not Adjust(1, 5, 8, "A").retracts
    assert Adjust(1, INF, 8, "A").retracts
    assert not Adjust(1, 8, INF, "A").retracts


# --- content -------------------------------------------------------------------------------------------------------


def test_elements_know_their_lifetimes():
    assert Insert(1, 5, "A").lifetime == Interval(1, 5)
    assert Adjust(1, 5, 3, "A").lifetime == Interval(1, 5)
    assert ExternalCti(0, 8, 5).span == Interval(0, 8)


def test_equal_elements_are_equal_and_hashable():
    assert {Insert(1, 5, {"a": [1]}), Insert(1, 5, Row(a=(1,)))} == {Insert(1, 5, Row(a=[1]))}
    assert Insert(1, 5, "A") != Insert(1, 6, "A")


def test_elements_cannot_be_changed():
    insert = Insert(1, 5, "A")
    with pytest.raises(AttributeError):
        insert.ve = 9
    assert insert == Insert(1, 5, "A")


@pytest.mark.parametrize(
    ("element", "text"),
    [
        (Insert(1, INF, "A"), "insert A [1, ∞)"),
        (Adjust(1, INF, 5, "A"), "adjust A [1, ∞) to 5"),
        (Adjust(1, 5, INF, Row(a=1)), "adjust a=1 [1, 5) to ∞"),
        (Cti(5), "cti 5"),
        (END, "cti ∞"),
        (ExternalCti(0, 8, 5), "external cti [0, 8) of 5"),
    ],
)
def test_elements_print_as_sentences(element, text):
    assert str(element) == text


# --- what cannot be made -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("vs", "ve"), [(5, 5), (6, 5)])
def test_an_end_at_or_before_the_start_is_refused(vs, ve):
    text = re.escape(f"[{vs}, {ve}) is empty: the end (ve) must be greater than the start (vs)")
    with pytest.raises(LifetimeError, match=text):
        Insert(vs, ve, "A")
    with pytest.raises(LifetimeError, match=text):
        Adjust(vs, ve, 9, "A")
    with pytest.raises(LifetimeError, match=text):
        ExternalCti(vs, ve, 1)


def test_an_adjust_to_before_its_start_is_refused_with_how_to_remove():
    text = re.escape("adjust of A [3, 7): the new end 2 lies before the start; use ve_new = vs = 3 to remove the tuple")
    with pytest.raises(LifetimeError, match=text):
        Adjust(3, 7, 2, "A")


def test_an_adjust_that_changes_nothing_is_refused():
    with pytest.raises(LifetimeError, match=re.escape("adjust of A [3, 7): the new end is the old one")):
        Adjust(3, 7, 7, "A")


@pytest.mark.parametrize("value", [None, True, 4.0, float("nan")])
def test_a_new_end_that_is_no_time_is_refused(value):
    with pytest.raises(TimeError, match=re.escape("new end (ve_new) is ")):
        Adjust(3, 7, value, "A")


def test_a_negative_count_is_refused():
    with pytest.raises(TimeError, match=re.escape("external cti [0, 8): the count is -1; it cannot be negative")):
        ExternalCti(0, 8, -1)
