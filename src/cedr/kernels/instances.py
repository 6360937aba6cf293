"""Lists of instances or events sorted by (group, start): who follows whom, and who lies between."""

import numpy as np
from numba import njit

from cedr.kernels.hashing import scramble
from cedr.kernels.overlap import near
from cedr.temporal.time import INF


@njit(cache=True)
def offsets(g, groups):
    """Where each group begins in a sorted list, and where the last one ends."""
    first = np.zeros(groups + 1, dtype=np.int64)
    for i in range(len(g)):
        first[g[i] + 1] += 1
    for k in range(groups):
        first[k + 1] += first[k]
    return first


@njit(cache=True)
def expanded(low, high):
    """Pairs `(i, x)` for all x in [low[i], high[i])."""
    total = 0
    for i in range(len(low)):
        total += high[i] - low[i]
    which = np.empty(total, dtype=np.int64)
    found = np.empty(total, dtype=np.int64)
    size = 0
    for i in range(len(low)):
        for x in range(low[i], high[i]):
            which[size], found[size] = i, x
            size += 1
    return which, found


@njit(cache=True)
def between(first, vs, g, after, until):
    """Pairs `(i, x)` of a query and an entry x of its group that starts in [after[i], until[i])."""
    low, high = ranges_between(first, vs, g, after, until)
    return expanded(low, high)


@njit(cache=True)
def ranges_between(first, vs, g, after, until):
    """For each query, the places [low, high) of its group's entries that start in [after[i], until[i]).

    Queries are almost in order, so each begins to look where the one before has found its place.
    """
    low = np.empty(len(g), dtype=np.int64)
    high = np.empty(len(g), dtype=np.int64)
    begin = end = 0
    for i in range(len(g)):
        begin = near(vs, first[g[i]], first[g[i] + 1], after[i], begin)
        end = near(vs, begin, first[g[i] + 1], until[i], end)
        low[i], high[i] = begin, end
    return low, high


@njit(cache=True)
def any_between(first, vs, g, after, before):
    """Whether some entry of the group starts strictly between the two times."""
    result = np.zeros(len(g), dtype=np.bool_)
    x = 0
    for i in range(len(g)):
        if after[i] < before[i] - 1:
            end = first[g[i] + 1]
            x = near(vs, first[g[i]], end, after[i] + 1, x)
            result[i] = x < end and vs[x] < before[i]
    return result


@njit(cache=True)
def last_before(first, vs, g, before):
    """The start of the last entry of the group that starts before a time; -INF where there is none."""
    result = np.empty(len(g), dtype=np.int64)
    x = 0
    for i in range(len(g)):
        x = near(vs, first[g[i]], first[g[i] + 1], before[i], x)
        result[i] = vs[x - 1] if x > first[g[i]] else -INF
    return result


@njit(cache=True)
def sliding_snapshots(g, vs, w, max_size):
    """The snapshots of lifetimes `[vs, vs + w)` that hold 1 to `max_size` entries: start, end, and which entries.

    Neighbours with equal g are a group, sorted by start. As all lifetimes are equally long, the entries of a snapshot
    are adjacent.
    """
    capacity = 2 * len(g)
    start = np.empty(capacity, dtype=np.int64)
    end = np.empty(capacity, dtype=np.int64)
    low = np.empty(capacity, dtype=np.int64)
    high = np.empty(capacity, dtype=np.int64)
    size = 0
    begin = 0
    while begin < len(g):
        stop = begin
        while stop < len(g) and g[stop] == g[begin]:
            stop += 1
        oldest, newest = begin, begin
        while oldest < stop:
            if newest < stop and (oldest == newest or vs[newest] <= ending(vs[oldest], w)):
                t = vs[newest]
            else:
                t = ending(vs[oldest], w)
            while newest < stop and vs[newest] == t:
                newest += 1
            while oldest < newest and ending(vs[oldest], w) <= t:
                oldest += 1
            if oldest < newest and newest - oldest <= max_size:
                upto = ending(vs[oldest], w)
                if newest < stop:
                    upto = min(upto, vs[newest])
                start[size], end[size], low[size], high[size] = t, upto, oldest, newest
                size += 1
            if t == INF:
                break
        begin = stop
    return start[:size], end[:size], low[:size], high[:size]


@njit(cache=True, inline="always")
def ending(vs, w):
    return INF if vs >= INF - w else vs + w


@njit(cache=True)
def least_of_ranges(values, low, high):
    result = np.empty(len(low), dtype=np.int64)
    for i in range(len(low)):
        result[i] = values[low[i] : high[i]].min()
    return result


@njit(cache=True)
def partners(old, new):
    """Rows of two tables of words that are equal: of each old row its place in `new`, or -1. No row occurs twice."""
    found = np.full(len(old), -1, dtype=np.int64)
    if len(old) == 0 or len(new) == 0:
        return found
    size = 64
    while size < 2 * len(old):
        size *= 2
    table = np.full(size, -1, dtype=np.int64)
    mask = np.uint64(size - 1)
    for i in range(len(old)):
        slot = word_hash(old, i) & mask
        while table[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        table[slot] = i
    for j in range(len(new)):
        slot = word_hash(new, j) & mask
        while table[slot] >= 0:
            i = table[slot]
            if same_words(old, i, new, j):
                found[i] = j
                break
            slot = (slot + np.uint64(1)) & mask
    return found


@njit(cache=True)
def word_hash(rows, i):
    h = np.uint64(0)
    for c in range(rows.shape[1]):
        h = scramble(h + np.uint64(rows[i, c]) + np.uint64(0x9E3779B97F4A7C15))
    return h


@njit(cache=True)
def same_words(old, i, new, j):
    for c in range(old.shape[1]):  # noqa: SIM110 numba needs a loop
        if old[i, c] != new[j, c]:
            return False
    return True
