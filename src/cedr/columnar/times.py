"""Columns of times, and arithmetic on them that never wraps around.

Every result is clamped to the ends of time: a time before MIN becomes MIN, and a time after the last chronon INF.
`cedr.temporal.time.plus` is the definition for one time.
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
    """The time since the last point of the grid `offset + k * hop`.

    numpy divides by a scalar several times faster than it computes a remainder. The product may wrap around, but the
    difference is still correct.
    """
    since: Times = times - times // hop * hop
    first = offset % hop
    return np.where(since < first, since + (hop - first), since - first) if first else since


Lengths = np.ndarray[Any, np.dtype[np.uint64]]
"""Lengths of lifetimes, which may exceed the largest time."""
ENDLESS = np.uint64(2**64 - 1)


def lengths(vs: Times, ve: Times) -> Lengths:
    """`ve - vs`, or `ENDLESS` where the end is INF."""
    return np.where(ve == INF, ENDLESS, (ve - vs).view(np.uint64))


def after_lengths(start: Times, length: Lengths) -> Times:
    """`start + length`; INF at the latest."""
    room = (INF - start).view(np.uint64)
    return np.where(length >= room, INF, (start.view(np.uint64) + length).view(np.int64))
