"""Steps: promises about one attribute of whole numbers or times, as sorted ranges.

The ranges are disjoint, and neighbours with the same time are merged: promises about the keys 1, 2, 3, ... are one
range, and a lookup is a binary search.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import polars as pl

from cedr.columnar.promises.values import whole
from cedr.columnar.times import Times
from cedr.kernels.cuts import cut_up
from cedr.temporal.time import INF, MIN


class Steps(NamedTuple):
    """Sorted, disjoint ranges from `low` to `last`, both included, of the integer representation of a column."""

    low: Times
    last: Times
    before: Times

    def at(self, values: Times) -> Times:
        """The time promised for each value."""
        if not len(self.low):
            return np.full(len(values), MIN, dtype=np.int64)
        place = np.searchsorted(self.low, values, side="right") - 1
        found = np.maximum(place, 0)
        inside = (place >= 0) & (values <= self.last[found])
        return np.where(inside, self.before[found], MIN)

    def of(self, column: pl.Series, kind: pl.DataType) -> Times:
        """The time promised for each value of a column; steps are never about missing values."""
        values, there = whole(column, kind)
        return np.where(there, self.at(values), MIN)


NO_STEPS = Steps(*(np.empty(0, dtype=np.int64) for _ in range(3)))


def unsorted_steps(low: Times, last: Times, before: Times) -> Steps:
    """Ranges that may overlap, as steps."""
    order = np.lexsort((before, last, low))
    low, last, before = low[order], last[order], before[order]
    latest = np.ones(len(order), dtype=np.bool_)
    latest[:-1] = (low[1:] != low[:-1]) | (last[1:] != last[:-1])
    return overlapping_steps(low[latest], last[latest], before[latest])


def overlapping_steps(low: Times, last: Times, before: Times) -> Steps:
    """Ranges in order of their starts, as steps."""
    if (low[1:] > last[:-1]).all():
        return merged(Steps(low, last, before))
    one, two = (overlapping_steps(low[s], last[s], before[s]) for s in (slice(0, None, 2), slice(1, None, 2)))
    return pointwise(np.maximum, one, two)


def pointwise(
    choose: Callable[[Times, Times], Times], one: Steps, two: Steps, outside: tuple[int, int] = (MIN, MIN)
) -> Steps:
    """The later or the earlier of two step functions, whose values between steps are `outside`."""
    cuts, mine, theirs = cut_up(one.low, one.last, two.low, two.last)
    return from_cuts(cuts, choose(taken(one.before, mine, outside[0]), taken(two.before, theirs, outside[1])))


def taken(before: Times, place: Times, outside: int) -> Times:
    """The times at these positions, at least `outside`."""
    if not len(before):
        return np.full(len(place), outside, dtype=np.int64)
    return np.maximum(np.where(place < 0, MIN, before[place]), outside)


def from_cuts(cuts: Times, before: Times) -> Steps:
    """The step function with these values from each cut to the next."""
    last = np.append(cuts[1:] - 1, INF)
    keep = before > MIN
    return merged(Steps(cuts[keep], last[keep], before[keep]))


def merged(steps: Steps) -> Steps:
    """The steps with adjacent ranges of equal time merged."""
    low, last, before = steps
    if len(low) < 2:
        return steps
    begins = np.ones(len(low), dtype=np.bool_)
    begins[1:] = (low[1:] - 1 != last[:-1]) | (before[1:] != before[:-1])
    ends = np.append(np.flatnonzero(begins)[1:] - 1, len(low) - 1)
    return Steps(low[begins], last[ends], before[begins])


def held_steps(steps: Steps, values: Times, until: Times) -> Steps:
    """The steps with times no later than `until` of any row that has the value."""
    order = np.lexsort((until, values))
    values, until = values[order], until[order]
    first = np.ones(len(values), dtype=np.bool_)
    first[1:] = values[1:] != values[:-1]
    late = first & (until < steps.at(values))
    if not late.any():
        return steps
    values, until = values[late], until[late]
    cuts, mine, theirs = cut_up(steps.low, steps.last, values, values)
    return from_cuts(cuts, np.where(theirs < 0, taken(steps.before, mine, MIN), until[theirs]))
