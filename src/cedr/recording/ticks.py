"""Ticks of a time axis: round times of the user's clock, as many as there is room for, and short labels.

Times with a zone are round in that zone: hours and days are those of its clock, over changes of daylight saving, too.
What the labels have in common, the date or a large number, is written once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from cedr.sources.user_times import TimeType

SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND
MONTHS = ("1mo", "2mo", "3mo", "6mo")
YEARS = (1, 2, 5)
STEPS = (
    *(digit * 10**power for power in range(6) for digit in (1, 2, 5)),
    *(n * SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 3, 6, 12)),
    *(n * DAY for n in (1, 2, 7, 14)),
)
MOST = 8
LETTER = 6.0
"""The width of a letter of a label, in points."""
LONG = 12
"""Numbers with more letters than this are written as distances from the first tick."""


@dataclass(frozen=True)
class Tick:
    time: int
    label: str


@dataclass(frozen=True)
class Ticks:
    """`about` is what all labels are about: the zone, or the number that they are distances from."""

    ticks: Sequence[Tick]
    about: str = ""


def ticks(first: int, last: int, kind: TimeType, room: float) -> Ticks:
    """For times from `first` to `last`, on an axis of this number of points."""
    found = date_ticks(first, last, kind) if isinstance(kind, pl.Datetime) else number_ticks(first, last)
    *_, coarsest = candidates = list(found)
    return next((ticks for ticks in candidates if fits(ticks.ticks, room)), coarsest)


def fits(found: Sequence[Tick], room: float) -> bool:
    widths = [max(map(len, tick.label.split("\n"))) + 2 for tick in found]
    return len(found) <= MOST and sum(widths) * LETTER <= room


# --- whole numbers -------------------------------------------------------------------------------------------------


def number_ticks(first: int, last: int) -> Iterator[Ticks]:
    """The finest first."""
    for power in range(20):
        for digit in (1, 2, 5):
            step = digit * 10**power
            if (last - first) // step > 4 * MOST:
                continue
            times = list(range(-(-first // step) * step, last + 1, step)) or [first]
            yield labelled(times)
            if len(times) < 2:
                return


def labelled(times: list[int]) -> Ticks:
    labels = [f"{time:,}" for time in times]
    if len(times) < 2 or max(map(len, labels)) <= LONG:
        return Ticks([Tick(time, label) for time, label in zip(times, labels, strict=True)])
    return Ticks([Tick(time, f"+{time - times[0]:,}") for time in times], f"after {times[0]:,}")


# --- timestamps ----------------------------------------------------------------------------------------------------


def date_ticks(first: int, last: int, kind: pl.Datetime) -> Iterator[Ticks]:
    """The finest first."""
    about = kind.time_zone or ""
    ends = pl.Series([first, last]).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    low, high = ends.dt.convert_time_zone(kind.time_zone or "UTC").dt.replace_time_zone(None)
    steps: list[int | str] = [step for step in STEPS if (last - first) // step <= 4 * MOST]
    days = (last - first) // DAY
    steps += [step for step in MONTHS if days // 30 <= 4 * MOST * int(step[:-2])]
    steps += [f"{digit * 10**power}y" for power in range(6) for digit in YEARS]
    for step in steps:
        every = step if isinstance(step, str) else f"{step}us"
        start = pl.Series([low]).dt.truncate(every)[0]
        local = pl.datetime_range(start, high, every, time_unit="us", eager=True)
        times = in_zone(local, kind.time_zone)
        shown = pl.DataFrame({"local": local, "time": times}).filter(pl.col("time").is_between(first, last))
        if shown.height < 2 and isinstance(step, str) and step.endswith("y"):
            yield Ticks(dated(pl.DataFrame({"local": [low], "time": [first]}), SECOND), about)
            return
        if shown.height >= 2:
            yield Ticks(dated(shown, step), about)


def in_zone(local: pl.Series, zone: str | None) -> pl.Series:
    """Chronons of times on the clock of a zone. Those that the clock leaves out are missing."""
    if zone is None:
        return local.cast(pl.Int64)
    known = local.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    return known.cast(pl.Int64)


def dated(shown: pl.DataFrame, step: int | str) -> list[Tick]:
    """Times of day with the date below where it is another; from days on, dates alone."""
    if isinstance(step, str):
        form = "%Y" if step.endswith("y") else "%Y-%m"
    elif step >= DAY:
        form = "%Y-%m-%d"
    else:
        form = "%H:%M" if step >= MINUTE else "%H:%M:%S" if step >= SECOND else "%H:%M:%S%.6f"
    labels = shown["local"].dt.strftime(form)
    if isinstance(step, int) and step < SECOND:
        digits = next(n for n in (1, 2, 3, 4, 5, 6) if step % 10 ** (6 - n) == 0)
        labels = labels.str.head(len("00:00:00.") + digits)
    if isinstance(step, int) and step < DAY:
        days = shown["local"].dt.strftime("%Y-%m-%d")
        is_new = days.ne_missing(days.shift(1))
        labels = (labels + "\n" + days).zip_with(is_new, labels)
    return [Tick(time, label) for time, label in zip(shown["time"].to_list(), labels.to_list(), strict=True)]
