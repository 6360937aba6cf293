"""Columns of times, and arithmetic on them that never wraps around.

Time has a first and a last chronon, and every result is cut there: what would begin before MIN begins at MIN, and what
would end after the last chronon has no end. `cedr.temporal.time.plus` is the definition for one time.
"""

from typing import Any

import numpy as np

from cedr.temporal.time import INF, MIN

Times = np.ndarray[Any, np.dtype[np.int64]]


def later(times: Times, length: int | Times) -> Times:
    """`times + length`, for lengths of 0 or more; INF at the latest."""
    if isinstance(length, int) and length == INF:
        return np.full_like(times, INF)
    return np.where(times >= INF - length, INF, times + length)


def earlier(times: Times, length: int | Times) -> Times:
    """`times - length`, for lengths of 0 or more; MIN at the earliest."""
    return np.where(times < MIN + length, MIN, times - length)


def shifted(times: Times, by: int) -> Times:
    """`times + by`, by a length of either sign; INF stays."""
    if by >= 0:
        return later(times, by)
    return np.where(times == INF, INF, earlier(times, -by))


def since_grid(times: Times, hop: int, offset: int) -> Times:
    """How long ago the last point of the grid `offset + k * hop` was.

    numpy divides by one number several times faster than it takes a remainder, and the product may wrap: the difference
    is the same.
    """
    since: Times = times - times // hop * hop
    first = offset % hop
    return np.where(since < first, since + (hop - first), since - first) if first else since


Lengths = np.ndarray[Any, np.dtype[np.uint64]]
"""Lengths of any lifetimes, which may be longer than a time is large."""
ENDLESS = np.uint64(2**64 - 1)


def lengths(vs: Times, ve: Times) -> Lengths:
    """`ve - vs`, where an end of INF gives a length without end."""
    return np.where(ve == INF, ENDLESS, (ve - vs).view(np.uint64))


def after_lengths(start: Times, length: Lengths) -> Times:
    """`start + length`; INF at the latest."""
    room = (INF - start).view(np.uint64)
    return np.where(length >= room, INF, (start.view(np.uint64) + length).view(np.int64))
