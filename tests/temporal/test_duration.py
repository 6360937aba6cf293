"""Lengths of time as people write them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr.temporal import INF, CedrError, QueryError
from cedr.temporal.duration import UNITS, duration, show_duration


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("60s", 60_000_000),
        ("5 minutes", 300_000_000),
        ("1h", 3_600_000_000),
        ("1h 30m", 5_400_000_000),
        ("1 hour, 30 min", 5_400_000_000),
        ("250ms", 250_000),
        ("1.5 s", 1_500_000),
        ("7us", 7),
        ("2 days", 172_800_000_000),
        ("1w", 604_800_000_000),
        ("inf", INF),
        (7, 7),
        (timedelta(seconds=2), 2_000_000),
    ],
)
def test_ways_to_write_it(text, length):
    assert duration(text) == length


@given(st.integers(1, 10**6), st.sampled_from(list(UNITS)))
def test_what_is_shown_can_be_read(n, unit):
    length = duration(f"{n}{unit}")
    shown = show_duration(length)
    assert duration(int(shown) if shown.isdigit() else shown) == length


@pytest.mark.parametrize("wrong", ["", "60", "s", "60 parsecs", "-5s", "5s ago", 0, -1, 1.5, None, True])
def test_mistakes_name_the_argument(wrong):
    with pytest.raises(CedrError, match=r"^sliding: length is"):
        duration(wrong, "sliding: length")


def test_the_hint_shows_how():
    with pytest.raises(QueryError, match='write a number and a unit, such as "250ms"'):
        duration("60 parsecs")
