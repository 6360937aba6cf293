"""Times that make no lifetime: a row with such times is set aside with the reason, and nothing wraps around."""

from datetime import timedelta

import polars as pl
import pytest

import cedr
from cedr import api
from cedr.sources.user_times import chronons_within
from cedr.temporal.errors import StreamError, TimeError
from cedr.temporal.time import INF, MIN

spans = api.source("s", {"v": int}, vs="t", duration="d")


def run(source, **columns):
    size = len(next(iter(columns.values())))
    return source.run(pl.DataFrame({"v": range(size), **columns}))


def test_negative_and_zero_lengths_are_set_aside():
    result = run(spans, t=[1, 2, 3, 4, -5], d=[-3, 0, 2, None, -(2**63)])
    assert result.table().rows() == [(3, 5, 2), (4, None, 3)]
    late = result.late()
    assert late["v"].to_list() == [0, 1, 4]
    assert late["reason"].to_list() == ["no_lifetime"] * 3
    assert "its duration is -3; a lifetime cannot have a negative length" in late["message"][0]
    assert "its times are not a lifetime" in late["message"][1]
    assert "its duration is -9223372036854775808; a lifetime" in late["message"][2]


def test_lengths_as_durations():
    result = run(spans, t=[1, 2], d=[timedelta(microseconds=-7), timedelta(microseconds=7)])
    assert result.table().rows() == [(2, 9, 1)]
    assert result.late()["v"].to_list() == [0]


@pytest.mark.parametrize("start", [0, 5, INF - 10, MIN])
def test_a_lifetime_ends_before_the_last_time_or_never(start):
    lengths = [1, 9, 10, 11, INF - 1, INF, None]
    table = run(spans, t=[start] * 7, d=lengths).table()
    ends = {v: ve for _, ve, v in table.rows()}
    for number, length in enumerate(lengths):
        if length in (INF, None):
            assert ends[number] is None
        elif start + length < INF:
            assert ends[number] == start + length
        else:
            assert number not in ends


def test_a_fixed_length_that_leads_past_the_last_time():
    result = run(api.source("s", {"v": int}, vs="t", duration=5), t=[INF - 6, INF - 5, INF - 1, INF])
    assert result.table().rows() == [(INF - 6, INF - 1, 0)]
    assert result.late()["v"].to_list() == [1, 2, 3]
    assert "its duration is 5; the lifetime would end past the last time" in result.late()["message"][0]


@pytest.mark.parametrize("kind", [pl.UInt64, pl.Int128])
@pytest.mark.parametrize("setting", ["t", "e", "n", "c"])
def test_numbers_outside_of_64_bits(kind, setting):
    source = api.source("s", {"v": int}, vs="t", ve="e", times=cedr.Times(ve_new="n"), cti="c", insert_only=False)
    good = {"t": [1, 2], "e": [5, 6], "n": [None, None], "c": [None, None]}
    columns = {name: pl.Series(values, dtype=kind) for name, values in good.items()}
    columns[setting] = pl.Series([2**63, good[setting][1]], dtype=kind)
    result = run(source, **columns)
    assert result.table().rows() == [(2, 6, 1)]
    names = {"t": "vs", "e": "ve", "n": "ve_new", "c": "cti"}
    assert (
        f"{names[setting]} is 9223372036854775808, which is outside the range of times" in result.late()["message"][0]
    )


def far(kind):
    days = pl.Series([2**31 - 1, 19_000, -(2**31)], dtype=pl.Int32).cast(pl.Date)
    moments = pl.Series([2**63 - 2, 1_600_000_000_000, -(2**62)], dtype=pl.Int64)
    return days if kind == pl.Date else moments.cast(kind)


@pytest.mark.parametrize("kind", [pl.Date(), pl.Datetime("ms"), pl.Datetime("us"), pl.Datetime("ms", "UTC")])
def test_far_dates_are_set_aside(kind):
    source = api.source("s", {"v": int}, vs="t", ve="e")
    result = run(source, t=far(kind), e=pl.Series([None] * 3, dtype=kind))
    kept = [1, 2] if kind == pl.Datetime("us") else [1]  # 2**62 microseconds are 146,000 years
    assert sorted(result.table()["v"]) == kept
    assert all("from 1970, which is outside the range of times" in text for text in result.late()["message"])


def test_a_punctuation_with_an_impossible_time_promises_nothing():
    source = api.source("s", {"v": int}, vs="t", progress=cedr.Progress(punctuation="p", promises="v"))
    table = pl.DataFrame(
        {"t": pl.Series([2**63, 3, None, 4], dtype=pl.UInt64), "v": [1, 1, 2, 2], "p": [True, False, True, False]}
    )
    late = source.run(table).late()
    assert late["reason"].to_list() == ["no_lifetime", "below_punctuation"]


def test_external_counts_with_impossible_spans():
    source = api.source("s", {"v": int}, vs="t", ve="e", progress=cedr.Progress(external_ctis="n"))
    with pytest.raises(TimeError, match="a row with a count: ve is 9223372036854775808"):
        run(source, t=pl.Series([1], dtype=pl.UInt64), e=pl.Series([2**63], dtype=pl.UInt64), n=[1])


def test_late_rows_raise_when_asked():
    source = api.source("s", {"v": int}, vs="t", duration="d", late="raise")
    with pytest.raises(StreamError, match="its duration is -1"):
        run(source, t=[1, 2], d=[1, -1])


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_the_end_of_time_is_a_timestamp_too(zone):
    """Replicas write how far they have come as a timestamp, and INF when they have come to their end."""
    times = pl.Series([0, INF, None, INF - 1]).cast(pl.Datetime("us", zone))
    chronons, outside = chronons_within(times, "")
    assert chronons.to_list() == [0, INF, None, None]
    assert outside.to_list() == [False, False, False, True]


def test_rows_from_the_future_name_their_file():
    rows = pl.DataFrame({"ts": [0, 2**60, 2**60], "v": [1, 2, 3], "_cedr_file": ["a.csv", "a.csv", "b.csv"]})
    late = api.source("A", {"v": int}, vs="ts", progress=cedr.Progress(max_ahead=5)).run(rows).late()
    found = [(reason, message.partition(" (in ")[2]) for reason, message in late.select("reason", "message").rows()]
    assert found == [("from_the_future", "file a.csv)"), ("from_the_future", "file b.csv)")]
