"""Looking up, in lists sorted by (group, start), the events of many groups that start within some time.

Almost all of the cost in large lists is waiting for memory. So a directory shows where the events of a few neighbouring
groups begin, and memory is requested for many groups before the first is looked at.
"""

import numpy as np
from numba import njit

from cedr.kernels.prefetch import prefetch

ROWS = 8
"""Events for each place of a directory, on average at least."""
AHEAD = 32
"""Groups for which memory is requested before the first of them is looked at."""
PROBES = 64
"""Up to this number of events all are requested before a search among them, otherwise the one in the middle."""
LINE = 8
"""Numbers in a line of the cache."""


@njit(cache=True)
def directory(g):
    """`first, shift, places`: events of groups from `first + (k << shift)` on begin at `places[k]`."""
    if len(g) == 0:
        return 0, 0, np.zeros(1, dtype=np.int64)
    first, last, shift = g[0], g[-1], 0
    while (((last - first) >> shift) + 1) * ROWS > len(g) and (last - first) >> shift > 0:
        shift += 1
    places = np.empty(((last - first) >> shift) + 2, dtype=np.int64)
    known = 0
    for x in range(len(g)):
        k = (g[x] - first) >> shift
        while known <= k:
            places[known] = x
            known += 1
    places[known:] = len(g)
    return first, shift, places


@njit(cache=True, inline="always")
def entry(first, shift, places, group):
    """The entry of a directory that has a group; the last one, where all ends, for groups that are not in it."""
    k = (group - first) >> shift
    return k if 0 <= k < len(places) else len(places) - 1


@njit(cache=True)
def near_ranges(g, vs, first, shift, places, groups, low, high, begin, end):
    """Sets, for each group, `begin` and `end` of its events that start in [low, high]; returns how many there are."""
    lows, highs = np.empty(AHEAD, dtype=np.int64), np.empty(AHEAD, dtype=np.int64)
    total = 0
    for since in range(0, len(groups), AHEAD):
        until = min(len(groups), since + AHEAD)
        for k in range(since, until):
            prefetch(places, entry(first, shift, places, groups[k]), 0)
        for k in range(since, until):
            at = entry(first, shift, places, groups[k])
            a, b = places[at], places[min(at + 1, len(places) - 1)]
            lows[k - since], highs[k - since] = a, b
            request(g, a, b)
            request(vs, a, b)
        for k in range(since, until):
            a, b = lows[k - since], highs[k - since]
            while a < b:
                middle = (a + b) >> 1
                if g[middle] < groups[k] or (g[middle] == groups[k] and vs[middle] < low[k]):
                    a = middle + 1
                else:
                    b = middle
            begin[k] = a
            while a < len(g) and g[a] == groups[k] and vs[a] <= high[k]:
                a += 1
            end[k] = a
            total += a - begin[k]
    return total


@njit(cache=True, inline="always")
def request(column, a, b):
    """Request what a search in [a, b) reads."""
    if b - a > PROBES:
        prefetch(column, (a + b) >> 1, 0)
    elif a < b:
        for x in range(a, b, LINE):
            prefetch(column, x, 0)
        prefetch(column, b - 1, 0)


@njit(cache=True)
def copy_ranges(columns, begin, end, out, n):
    """Copies the ranges of some columns, one after the other, into the rows of a matrix from place `n` on."""
    for k in range(len(begin)):
        ahead = k + AHEAD
        if ahead < len(begin) and begin[ahead] < end[ahead]:
            for c in range(len(columns)):
                prefetch(columns[c], begin[ahead], 0)
                prefetch(columns[c], end[ahead] - 1, 0)
        at = begin[k]
        for c in range(len(columns)):
            column = columns[c]
            for x in range(end[k] - at):
                out[c, n + x] = column[at + x]
        n += end[k] - at


@njit(cache=True)
def merge_near(begin, end, vs):
    """Events of several lists, one list after the other, in one order: by range, then start, then list.

    `begin, end` are the ranges by list, `vs` the starts of all events. Returns the range and the number of each event
    in this order.
    """
    lists, ranges = begin.shape
    number, order = np.empty(len(vs), dtype=np.int64), np.empty(len(vs), dtype=np.int64)
    at, stop = np.zeros(lists, dtype=np.int64), np.zeros(lists, dtype=np.int64)
    for i in range(lists - 1):
        stop[i + 1] = stop[i]
        for k in range(ranges):
            stop[i + 1] += end[i, k] - begin[i, k]
    n = 0
    for k in range(ranges):
        left = 0
        for i in range(lists):
            at[i] = stop[i]
            stop[i] += end[i, k] - begin[i, k]
            left += at[i] < stop[i]
        while left > 0:
            best = -1
            for i in range(lists):
                if at[i] < stop[i] and (best < 0 or vs[at[i]] < vs[at[best]]):
                    best = i
            until = at[best] + 1 if left > 1 else stop[best]
            for x in range(at[best], until):
                number[n], order[n] = k, x
                n += 1
            at[best] = until
            left -= until == stop[best]
    return number, order
