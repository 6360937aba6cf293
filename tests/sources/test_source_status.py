"""`why_waiting` names who holds a query back: a partition or key that is silent or ahead, or what is missing."""

from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import cedr
from cedr.api import source_of_keys
from cedr.runtime.local import LocalRun
from cedr.sources.keys import extremes

SECOND = 1_000_000


def ran(query, *tables, seconds=()) -> LocalRun:
    """A run after these tables, which arrive at these seconds, or one after the other."""
    now = [0]
    run = LocalRun(query.fragment(), clock=lambda: now[0])
    for number, table in enumerate(tables):
        now[0] = SECOND * (seconds[number] if seconds else number)
        list(run.steps(iter([table]), close=False))
    return run


def counts(stream, by):
    return stream.sliding(10).group_by(by).agg(n=cedr.count()).with_consistency("strong")


def table(*lines, first=0, rows=10) -> pl.DataFrame:
    """A row of every line in each of `rows` rounds."""
    pairs = [(first + i * len(lines) + j, line, 1) for i in range(rows) for j, line in enumerate(lines)]
    return pl.DataFrame(pairs, schema={"ts": pl.Int64, "line": pl.Int64, "v": pl.Int64}, orient="row")


def lines(**options):
    return source_of_keys("lines", {"line": int, "v": int}, vs="ts", delay=5, **options)


def test_a_silent_partition():
    run = ran(counts(lines(partition="line"), "v"), table(*range(8)), table(*range(7), first=80), seconds=(10, 52))
    why = run.why_waiting()
    assert why.reasons == (
        "source 'lines' has progressed to 74: line=7 has progressed to 74 and is the slowest of 8; "
        "its last report was at 1970-01-01 00:00:10 UTC, 42.0s before the others",
        "Align ordered, block ∞ holds back 76 rows; its input has progressed to 74",
    )
    assert why.sources.row(0)[:4] == ("lines", "line=7", 74, 79)
    assert why.operators.row(0) == ("Align ordered, block ∞", 76, "74")
    assert "lines   line=7  74     79" in str(why)


def test_a_partition_that_is_given_up():
    query = counts(lines(partition="line", idle="5s"), "v")
    why = ran(query, table(0, 1), table(0, first=20), seconds=(0, 60)).why_waiting()
    assert why.reasons[:2] == (
        "source 'lines' has progressed to 24: line=0 has progressed to 24 and is the slowest of 2",
        "line=1 of source 'lines' no longer counts: it has been silent for 60.0s, longer than 5s",
    )


def test_a_key_that_is_ahead_concerns_no_other():
    far = table(3, rows=1, first=1_000_000)
    run = ran(counts(lines(progress_by="line"), "line"), table(*range(8)), far)
    why = run.why_waiting()
    assert why.reasons[0] == (
        "source 'lines' has separate progress for each line: line=0 has progressed to 67 and is the slowest of 8; "
        "its last report was at 1970-01-01 00:00:00 UTC, 1.0s before the others"
    )
    assert why.reasons[1] == (
        "line=3 of source 'lines' is far ahead: its highest start is 1000000, that of most others is near 77"
    )
    assert why.sources.filter(note="ahead")["of"].to_list() == ["line=3"]


def test_who_is_slow_among_even_ones_is_not_ahead():
    why = ran(counts(lines(progress_by="line"), "line"), table(*range(8))).why_waiting()
    assert not any("ahead" in reason for reason in why.reasons)


def test_rows_from_the_future():
    start = datetime(2024, 1, 1)
    rows = [(start + timedelta(seconds=i), i % 2, 1) for i in range(10)] + [(start + timedelta(days=365), 0, 1)]
    given = pl.DataFrame(rows, schema={"ts": pl.Datetime("us"), "line": pl.Int64, "v": pl.Int64}, orient="row")
    now = (start - datetime(1970, 1, 1)) // timedelta(seconds=1)
    kept = ran(counts(lines(max_ahead="1h"), "v"), given, seconds=(now,)).why_waiting()
    assert "1 row from the future; see the late rows" in kept.reasons
    assert not any("ahead of the clock" in reason for reason in kept.reasons)
    trusted = ran(counts(lines(), "v"), given, seconds=(now,)).why_waiting()
    assert any("is ahead of the clock, at 2024-12-30 23:59:59.999995" in reason for reason in trusted.reasons)


def test_what_is_missing():
    silent = cedr.source("lines", {"line": int, "v": int}, vs="ts")
    why = ran(counts(silent, "line"), table(1, 2)).why_waiting()
    assert why.reasons[0] == "source 'lines' has not reported any progress"
    assert why.reasons[1] == "Align ordered, block ∞ holds back 20 rows; its input has no CTI"
    assert why.reasons[2].startswith("missing: source 'lines' makes no promise about progress")


def test_nothing_waits_when_all_has_ended():
    result = counts(lines(), "line").run(table(1, 2))
    assert result.why_waiting().reasons == ("nothing waits: all sources have ended",)


def test_the_last_of_the_updates_can_be_asked():
    for result in counts(lines(), "line").updates(iter([table(1, 2)]), close=False):
        assert result.why_waiting().reasons[0] == "source 'lines' has progressed to 14, 5 behind its highest start"


@given(arrays(np.int64, st.integers(0, 30), elements=st.integers(-5, 5)), st.integers(0, 35), st.booleans())
def test_extremes_are_the_ends_of_the_sorted(times, most, furthest):
    found = times[extremes(times, most, furthest)]
    expected = np.sort(times)[::-1][:most] if furthest else np.sort(times)[:most]
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("ahead", [False, True])
def test_clocks_that_differ_a_little_are_not_ahead(ahead):
    """Ten times the distance between the quarters of all is much."""
    starts = [100, 110, 120, 130, 140, 150, 2000 if ahead else 180]
    rows = pl.DataFrame({"ts": starts, "line": range(7), "v": [1] * 7})
    why = ran(counts(lines(progress_by="line"), "line"), rows).why_waiting()
    assert any("line=6 of source 'lines' is far ahead" in reason for reason in why.reasons) == ahead
