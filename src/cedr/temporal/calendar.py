"""Grids of days, weeks and months in a time zone.

The points of a grid are wall-clock times: midnights of a zone, or a fixed time after them. Days have 23 or 25 hours
when the clocks change, and months differ in length. A wall-clock time that exists twice means its first occurrence; one
that is skipped means the instant it would have been without the clock change.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from typing import Literal
from zoneinfo import ZoneInfo, available_timezones

from cedr.temporal.duration import Duration, duration
from cedr.temporal.errors import QueryError
from cedr.temporal.time import within_time

DAY = 86_400_000_000
MONDAY = -3
"""The Monday before 1970-01-01, as a day number."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CYCLE_YEARS, CYCLE_DAYS = 400, 146_097
"""The period after which the calendar repeats, days of the week included."""
FIRST_YEAR, LAST_YEAR = 2, 9998
"""One year within the limits of Python's dates."""

Unit = Literal["day", "week", "month"]
AMOUNT = re.compile(r"\s*(\d+)\s*(d|days?|w|weeks?|mo|months?|y|years?)\s*", re.IGNORECASE)
UNITS: dict[str, tuple[Unit, int]] = {"d": ("day", 1), "w": ("week", 1), "mo": ("month", 1), "y": ("month", 12)}


@dataclass(frozen=True)
class Calendar:
    """The grid of every `count` units in a zone, `offset` chronons after midnight; a window has `cells` cells of it."""

    zone: str
    unit: Unit
    count: int
    cells: int = 1
    offset: int = 0

    @property
    def usual(self) -> int:
        """The length of a cell without clock changes; for months, the maximum."""
        return self.count * DAY * {"day": 1, "week": 7, "month": 31}[self.unit]

    def point(self, number: int) -> int:
        """The instant at which a cell begins, clamped to the ends of time."""
        return point(self, number)

    def day_of(self, number: int) -> int:
        """The first day of a cell, as a number of days since 1970-01-01; for days and weeks."""
        return number * self.count if self.unit == "day" else number * self.count * 7 + MONDAY

    def __str__(self) -> str:
        def units(n: int) -> str:
            return f"{n} {self.unit}{'s' if n > 1 else ''}"

        size = units(self.cells * self.count)
        every = f" every {units(self.count)}" if self.cells > 1 else ""
        return f"{size}{every} in {self.zone}"


@lru_cache(maxsize=2**17)
def point(grid: Calendar, number: int) -> int:
    date, cycles = month_start(number * grid.count) if grid.unit == "month" else day_start(grid.day_of(number))
    days, rest = divmod(grid.offset, DAY)
    local = date + timedelta(days=days, microseconds=rest)
    instant = local.replace(tzinfo=ZoneInfo(grid.zone), fold=0) - EPOCH
    return within_time(instant // timedelta(microseconds=1) + cycles * CYCLE_DAYS * DAY)


def month_start(months: int) -> tuple[datetime, int]:
    """The first of a month, counted from January 1970, moved by whole cycles into Python's range, and their number."""
    year, month = divmod(months, 12)
    year, cycles = supported_year(1970 + year)
    return datetime(year, month + 1, 1), cycles


def day_start(day: int) -> tuple[datetime, int]:
    _, cycles = supported_year(1970 + day * CYCLE_YEARS // CYCLE_DAYS)
    return datetime(1970, 1, 1) + timedelta(days=day - cycles * CYCLE_DAYS), cycles


def supported_year(year: int) -> tuple[int, int]:
    cycles = 0
    if not FIRST_YEAR < year < LAST_YEAR:
        edge = FIRST_YEAR + 1 if year <= FIRST_YEAR else LAST_YEAR - CYCLE_YEARS
        cycles = (year - edge) // CYCLE_YEARS
    return year - cycles * CYCLE_YEARS, cycles


# --- grids from user input -----------------------------------------------------------------------------------------


def calendar(size: Duration, hop: Duration, offset: Duration, zone: str, what: str) -> Calendar:
    """The grid of windows of a size every hop, in a zone."""
    check_zone(zone, what)
    unit, count = amount(hop, f"{what}: {'size' if size == hop else 'hop'}")
    length = days_or_months(*amount(size, f"{what}: size"), unit, what)
    cells, rest = divmod(length, 7 * count if unit == "week" else count)
    if rest or not cells:
        raise QueryError(f"{what}({size!r}, {hop!r}): the size must be a multiple of the hop")
    return Calendar(zone, unit, count, cells, duration(offset, f"{what}: offset", least=0))


def amount(length: Duration, what: str) -> tuple[Unit, int]:
    found = AMOUNT.fullmatch(length) if isinstance(length, str) else None
    if found is None or not int(found[1]):
        raise QueryError(
            f'{what} is {length!r}; with a zone it is a whole number of days, weeks, months or years, such as "1 day" '
            'or "3 months"'
        )
    name = found[2].lower()
    unit, factor = UNITS["mo" if name.startswith("mo") else name[0]]
    return unit, int(found[1]) * factor


def days_or_months(unit: Unit, count: int, other: Unit, what: str) -> int:
    """The length in months if both are months, in days if neither is."""
    if (unit == "month") != (other == "month"):
        raise QueryError(f"{what}: size and hop must both be months or years, or both days or weeks")
    return count * 7 if unit == "week" else count


def check_zone(zone: str, what: str) -> None:
    try:
        ZoneInfo(zone)
    except (OSError, ValueError, TypeError, KeyError):
        near = get_close_matches(str(zone), available_timezones(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        example = hint or '; zones have names such as "Europe/Berlin"'
        raise QueryError(f"{what}: there is no time zone {zone!r}{example}") from None


def check_no_months(what: str, *lengths: Duration) -> None:
    """Months and years have no fixed length."""
    for length in lengths:
        found = AMOUNT.fullmatch(length) if isinstance(length, str) else None
        if found is not None and found[2][0].lower() in "my":
            raise QueryError(
                f'{what}({length!r}): months differ in length; give the time zone of the calendar, such as zone="UTC" '
                'or zone="Europe/Berlin"'
            )
