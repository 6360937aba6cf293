"""Time: whole chronons in 64 bits, INF, sums that never wrap around, and errors that name what the user gave."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr import reference
from cedr.temporal import INF, MIN, Cti, ExternalCti, History, Insert, TimeError
from cedr.temporal.time import as_duration, as_time, plus, show

FINITE = st.integers(MIN, INF - 1)


def pattern_of(*parts):
    """A pattern that finds these texts in this order."""
    return ".*".join(re.escape(part) for part in parts)


class Whole:
    """Anything with `__index__` is a whole number, as the integers of numeric libraries are."""

    def __index__(self):
        return 7


def test_inf_and_min_are_the_ends_of_64_bits():
    assert INF == 2**63 - 1
    assert MIN == -(2**63)


@pytest.mark.parametrize("value", [0, -5, INF, MIN, 10**15])
def test_whole_numbers_of_64_bits_are_times(value):
    assert as_time(value) == value


def test_other_integer_types_become_plain_ints():
    assert type(as_time(Whole())) is int
    assert type(Insert(Whole(), 9, "A").vs) is int
    assert Insert(Whole(), 9, "A") == Insert(7, 9, "A")


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        (None, ("start is missing (None)", "whole number of chronons, or INF for no end")),
        (True, ("start is True", "not a truth value")),
        (False, ("start is False", "not a truth value")),
        (1.5, ("start is 1.5 of type float", "convert it to a whole number")),
        (2.0, ("start is 2.0 of type float", "convert it to a whole number")),
        (float("nan"), ("start is nan of type float", "NaN is not a time")),
        (float("inf"), ("start is inf of type float", "convert it")),
        ("5", ("start is '5' of type str", "convert it")),
        (2**63, (f"start is {2**63}", "times must fit into 64 bits, from -2^63 to 2^63-1 (INF)")),
        (-(2**63) - 1, (f"start is {-(2**63) - 1}", "times must fit into 64 bits")),
    ],
)
def test_what_is_no_time_is_refused_by_name_and_value(value, parts):
    with pytest.raises(TimeError, match=pattern_of(*parts)):
        as_time(value, "start")


@pytest.mark.parametrize("value", [None, True, 1.5, float("nan"), "5", 2**63])
def test_elements_reject_invalid_times_and_name_them(value):
    with pytest.raises(TimeError, match=pattern_of("start (vs) is ")):
        Insert(value, 9, "A")
    with pytest.raises(TimeError, match=pattern_of("end (ve) is ")):
        Insert(1, value, "A")
    with pytest.raises(TimeError, match=pattern_of("time of the CTI is ")):
        Cti(value)
    with pytest.raises(TimeError, match=pattern_of("count (n) is ")):
        ExternalCti(1, 5, value)
    with pytest.raises(TimeError, match=pattern_of("start (vs) is ")):
        History([(value, 9, "A")])


@pytest.mark.parametrize("length", [0, -1])
def test_a_duration_is_at_least_one_chronon(length):
    with pytest.raises(TimeError, match=pattern_of(f"window length is {length}", "at least one chronon")):
        as_duration(length, "window length")


def test_a_duration_may_be_infinite():
    assert as_duration(INF) == INF
    assert as_duration(1) == 1


@given(st.integers(-(2**40), 2**40), st.integers(-(2**40), 2**40))
def test_plus_is_addition_where_nothing_overflows(time, length):
    assert plus(time, length) == time + length


@given(st.integers(MIN, INF))
def test_inf_absorbs(time):
    assert plus(time, INF) == plus(INF, time) == INF


@given(FINITE, FINITE)
def test_a_finite_sum_is_cut_at_the_ends_of_time(time, length):
    assert plus(time, length) == max(MIN, min(time + length, INF))


LATE = History([(INF - 3, INF - 1, "A")])


@pytest.mark.parametrize(
    ("window", "vs"),
    [
        (lambda h: reference.sliding(h, 10), INF - 3),
        (lambda h: reference.session(h, 10), INF - 3),
        (lambda h: reference.hopping(h, 100, 50), (INF - 3) // 50 * 50),
        (lambda h: reference.tumbling(h, 64), INF - 63),
        (lambda h: reference.shift(h, 2), INF - 1),
    ],
    ids=["sliding", "session", "hopping", "tumbling", "shift"],
)
def test_what_would_end_after_the_last_chronon_has_no_end(window, vs):
    assert window(LATE) == History([(vs, INF, "A")])


def test_what_lies_beyond_the_ends_of_time_is_not_there():
    assert reference.shift(LATE, 3) == History([])
    assert reference.shift(History([(MIN, MIN + 5, "A")]), -5) == History([])
    assert reference.shift(History([(MIN, MIN + 5, "A")]), -4) == History([(MIN, MIN + 1, "A")])


def test_windows_up_to_the_last_chronon_and_for_ever_are_fine():
    assert reference.sliding(LATE, 2) == LATE
    assert reference.sliding(LATE, INF) == History([(INF - 3, INF, "A")])
    assert reference.moving(LATE, 2**62) == LATE


def test_a_window_that_would_begin_before_the_first_chronon_begins_there():
    end = -(-MIN // 10) * 10
    assert MIN < end < MIN + 10
    assert reference.tumbling(History([(MIN, 0, "A")]), 10) == History([(MIN, end, "A")])


@pytest.mark.parametrize(("time", "text"), [(INF, "∞"), (MIN, "-∞"), (0, "0"), (-7, "-7"), (INF - 1, str(INF - 1))])
def test_times_show_as_in_the_papers(time, text):
    assert show(time) == text
