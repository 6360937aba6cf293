"""Ticks of time axes: round times of the user's clock, labels that have room, and late rows that look like it."""

from datetime import UTC, datetime

import polars as pl
import pytest

from cedr import INF, Insert, Row
from cedr.cli.plot import of_job
from cedr.columnar.chunk import chunk_of
from cedr.recording.lifetimes import Lane, LifetimeBar, bars, picture
from cedr.recording.ticks import LETTER, MOST, ticks

BERLIN = pl.Datetime("us", "Europe/Berlin")
ROOM = 430.0
SECOND = 1_000_000
DAY = 86_400 * SECOND


def us(*moment: int) -> int:
    return round(datetime(*moment, tzinfo=UTC).timestamp()) * SECOND


BASE = us(2024, 3, 30, 22, 7, 13)  # 23:07:13 in Berlin; the clock skips 02:00 to 03:00 in the night that follows
GOLDEN = {
    "a few microseconds": (12, ["23:07:13.000000\n2024-03-30", "23:07:13.000005", "23:07:13.000010"]),
    "milliseconds": (1_900, ["23:07:13.0000\n2024-03-30", "23:07:13.0005", "23:07:13.0010", "23:07:13.0015"]),
    "seconds": (7 * SECOND, ["23:07:14\n2024-03-30", "23:07:16", "23:07:18", "23:07:20"]),
    "minutes": (300 * SECOND, ["23:08\n2024-03-30", "23:09", "23:10", "23:11", "23:12"]),
    "hours over midnight": (9 * 3600 * SECOND, ["00:00\n2024-03-31", "04:00", "06:00", "08:00"]),
    "days": (4 * DAY, ["2024-03-31", "2024-04-01", "2024-04-02", "2024-04-03", "2024-04-04"]),
    "months": (
        200 * DAY,
        ["2024-04", "2024-05", "2024-06", "2024-07", "2024-08", "2024-09", "2024-10"],
    ),
    "years": (4_000 * DAY, ["2026", "2028", "2030", "2032", "2034"]),
    "one instant": (0, ["23:07:13\n2024-03-30"]),
}


@pytest.mark.parametrize(("span", "labels"), GOLDEN.values(), ids=GOLDEN.keys())
def test_ticks_are_round_on_the_clock_of_the_zone(span, labels):
    found = ticks(BASE, BASE + span, BERLIN, ROOM)
    assert [tick.label for tick in found.ticks] == labels
    assert found.about == "Europe/Berlin"


def test_ticks_are_where_the_clock_has_them():
    """Over the change to summer time, local midnights are 23 hours apart."""
    found = ticks(us(2024, 3, 30, 12), us(2024, 4, 5, 12), BERLIN, 1_000.0)
    midnights = {tick.label: tick.time for tick in found.ticks}
    assert midnights["2024-03-31"] == us(2024, 3, 30, 23)
    assert midnights["2024-04-01"] == us(2024, 3, 31, 22)


@pytest.mark.parametrize("span", [1, 10, 999, 54_321, 10**7, 10**9, 10**11, 10**13, 10**15, 10**16])
@pytest.mark.parametrize("kind", [BERLIN, pl.Datetime("us"), pl.Datetime("us", "Asia/Kolkata"), pl.Int64()])
@pytest.mark.parametrize("room", [200.0, ROOM])
def test_labels_have_room(span, kind, room):
    found = ticks(BASE + 3, BASE + 3 + span, kind, room).ticks
    assert 1 <= len(found) <= MOST
    if len(found) > 2:
        assert sum(max(map(len, tick.label.split("\n"))) for tick in found) * LETTER <= room
    assert len({tick.label for tick in found}) == len(found)
    assert all(BASE + 3 <= tick.time <= BASE + 3 + span for tick in found)


NUMBERS = {
    "small": (3, 17, ["4", "6", "8", "10", "12", "14", "16"], ""),
    "nothing but one": (5, 5, ["5"], ""),
    "large": (-500, 12_345_678, ["0", *(f"{n},000,000" for n in (2, 4, 6, 8, 10, 12))], ""),
    "very large": (10**17 + 3, 10**17 + 24, ["+0", "+5", "+10", "+15"], "after 100,000,000,000,000,005"),
}


@pytest.mark.parametrize(("first", "last", "labels", "about"), NUMBERS.values(), ids=NUMBERS.keys())
def test_whole_numbers(first, last, labels, about):
    found = ticks(first, last, pl.Int64(), ROOM)
    assert ([tick.label for tick in found.ticks], found.about) == (labels, about)


# --- pictures ------------------------------------------------------------------------------------------------------


def drawn(axes) -> list[tuple[float, float, bool]]:
    return [(bar.get_x(), bar.get_width(), bar.get_fill()) for bar in axes.patches]


def test_late_rows_look_different():
    rows = chunk_of([Insert(1, 9, Row(m="a", v=0.1 + 0.2)), Insert(2, 9, Row(m="b", v=1.0))] * 2, schema()).rows
    late = rows[3:]
    found = bars(rows, late)
    assert [(bar.label, bar.late) for bar in found] == [
        ("a, 0.3", False),
        ("a, 0.3", False),
        ("b, 1", False),
        ("b, 1 (late)", True),
    ]
    (axes,) = picture([Lane("input", found)], pl.Int64(), "").axes
    assert drawn(axes) == [(0, 8, True), (0, 8, True), (1, 7, True), (1, 7, False)]


def schema():
    return {"m": pl.String(), "v": pl.Float64()}


def test_large_times_keep_their_digits():
    start = 2**60
    lane = Lane("input", [LifetimeBar("a", start, start + 3, start + 3), LifetimeBar("b", start + 1, INF, INF)])
    (axes,) = picture([lane], pl.Int64(), "").axes
    assert drawn(axes)[0] == (0, 3, True)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["+0", "+1", "+2", "+3", "+4"]


JOB = """\
[query]
text = "EVENT Hot WHEN ANY(readings r) OUTPUT r.machine"

[sources.readings]
files = "a.csv"
columns = { machine = "str" }
vs = "start"
ve = "end"
delay = 2
"""


def test_the_late_rows_of_a_job_are_marked(tmp_path):
    (tmp_path / "a.csv").write_text("start,end,machine\n0,9,a\n9,12,b\n1,4,c\n9,12,b\n")
    (tmp_path / "job.toml").write_text(JOB)
    (read, answer), _ = of_job(tmp_path / "job.toml")
    assert [(bar.label, bar.late) for bar in read.bars] == [
        ("a", False),
        ("c (late)", True),
        ("b", False),
        ("b", False),
    ]
    assert [bar.label for bar in answer.bars] == ["a", "b", "b"]
