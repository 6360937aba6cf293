"""Durations in user input: `"60s"`, `"5 minutes"`, `"1h 30m"`, `"250ms"`, or a number of chronons.

A chronon is a microsecond wherever a unit is given; plain numbers have no unit and count chronons.
"""

import re
from datetime import timedelta

from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF, as_time

UNITS = {
    "w": 604_800_000_000,
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
}
"""Chronons per unit, longest first."""

NAMES = {
    **dict.fromkeys(("us", "µs", "microsecond", "microseconds", "micros"), "us"),
    **dict.fromkeys(("ms", "millisecond", "milliseconds", "millis"), "ms"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("d", "day", "days"), "d"),
    **dict.fromkeys(("w", "week", "weeks"), "w"),
}

PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zµ]+)\s*,?")
WHOLE = re.compile(rf"(?:{PART.pattern})+\s*")

Duration = int | str | timedelta


class RealLength(int):
    """A duration that was written with a unit, so it has no meaning where times are plain numbers. `text` is the user's
    text. Arithmetic returns plain numbers."""

    text: str

    def __new__(cls, chronons: int, text: str) -> "RealLength":
        made = super().__new__(cls, chronons)
        made.text = text
        return made

    def __reduce__(self) -> tuple[type["RealLength"], tuple[int, str]]:
        return RealLength, (int(self), self.text)


def duration(value: Duration, what: str = "duration", least: int = 1) -> int:
    """`value` in chronons, at least `least`; errors name `what`, the user's argument."""
    length = chronons(value, what)
    if length < least:
        raise QueryError(f"{what} is {value!r}; it must be {'at least one chronon' if least else '0 or more'}")
    return length


def chronons(value: Duration, what: str) -> int:
    match value:
        case RealLength():
            return value
        case timedelta():
            return RealLength(value // timedelta(microseconds=1), str(value))
        case str():
            return parse(value, what)
    return as_time(value, what)


def parse(text: str, what: str) -> int:
    if text.strip().lower() in ("inf", "∞", "forever"):
        return INF
    if not is_duration(text):
        raise QueryError(
            f'{what} is {text!r}, which is not a duration; write a number and a unit, such as "250ms", "60s", '
            '"5 minutes", "1h 30m", "2 days", or a whole number of chronons'
        )
    total = sum(float(number) * UNITS[NAMES[unit]] for number, unit in PART.findall(text.lower()))
    return RealLength(as_time(round(total), what), text.strip())


def is_duration(text: str) -> bool:
    return bool(WHOLE.fullmatch(text.lower())) and all(unit in NAMES for _, unit in PART.findall(text.lower()))


def show_duration(length: int) -> str:
    """The duration in its largest whole unit; a plain number if it is not a whole number of milliseconds."""
    if length == INF:
        return "∞"
    for unit, size in UNITS.items():
        if length and unit != "us" and length % size == 0:
            return f"{length // size}{unit}"
    return str(length)
