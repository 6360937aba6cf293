"""Time: whole chronons in 64 bits, with the special value `INF` for infinity.

A chronon has no unit here; users see microseconds. A time given by a user must fit into 64 bits. A computed time is
clamped to the ends of time instead of wrapping around: a lifetime that would end after the last chronon has no end, and
one that would begin before the first chronon begins there.
"""

import operator
from typing import Final

from cedr.temporal.errors import TimeError

INF: Final = 2**63 - 1
"""The end of a lifetime that has no end, and the CTI after which nothing comes."""

MIN: Final = -(2**63)
"""The first chronon; as a CTI it promises nothing."""


def as_time(value: object, what: str = "time") -> int:
    """`value` as a time, or a `TimeError` that names `what` the user gave."""
    if value is None:
        raise TimeError(f"{what} is missing (None); a time is a whole number of chronons, or INF for no end")
    if isinstance(value, bool):
        raise TimeError(f"{what} is {value!r}; a time is a whole number of chronons, not a truth value")
    try:
        time = operator.index(value)  # type: ignore[arg-type]  # rejects what is not a whole number
    except TypeError:
        hint = "NaN is not a time" if value != value else "convert it to a whole number of chronons first"
        raise TimeError(f"{what} is {value!r} of type {type(value).__name__}; {hint}") from None
    if not MIN <= time <= INF:
        raise TimeError(f"{what} is {time}; times must fit into 64 bits, from -2^63 to 2^63-1 (INF)")
    return time


def as_duration(value: object, what: str = "duration") -> int:
    """`value` as a positive length of time (INF is allowed), or a `TimeError` that names `what`."""
    length = as_time(value, what)
    if length <= 0:
        raise TimeError(f"{what} is {length}; it must be at least one chronon")
    return length


def plus(time: int, length: int) -> int:
    """`time + length`, clamped to the ends of time; the sum is INF if either is."""
    return INF if INF in (time, length) else within_time(time + length)


def within_time(time: int) -> int:
    """A computed time, clamped to the ends of time."""
    return max(MIN, min(time, INF))


def show(time: int) -> str:
    """The time as the papers print it."""
    return "∞" if time == INF else "-∞" if time == MIN else str(time)
