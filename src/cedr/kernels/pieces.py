"""Pieces of lifetimes: where a tuple has a partner, where it has none, and where it is clipped.

Limits of time are arrays by group, or of length 1 if they are the same for all groups.
"""

import numpy as np
from numba import njit

from cedr.kernels.blocks import AHEAD, previous_row, room_ahead, row_at, seek_ahead
from cedr.kernels.blocks import end as end_of
from cedr.kernels.overlap import from_start
from cedr.temporal.time import INF, MIN


@njit(cache=True)
def pieces(vs, ve, first, start, end, partnered):
    """The parts of each lifetime with (or without) a partner.

    Tuple i's partners are `start[first[i]:first[i + 1]]`, sorted, and their ends, all inside its lifetime.
    """
    capacity = len(vs) + len(start) + 16
    owner = np.empty(capacity, dtype=np.int64)
    low = np.empty(capacity, dtype=np.int64)
    high = np.empty(capacity, dtype=np.int64)
    size = 0
    for i in range(len(vs)):
        reached = vs[i]  # up to here the lifetime is dealt with
        x = first[i]
        while x < first[i + 1]:
            covered_from, covered_to = start[x], end[x]
            x += 1
            while x < first[i + 1] and start[x] <= covered_to:
                covered_to = max(covered_to, end[x])
                x += 1
            if partnered:
                owner[size], low[size], high[size] = i, covered_from, covered_to
                size += 1
            elif reached < covered_from:
                owner[size], low[size], high[size] = i, reached, covered_from
                size += 1
            reached = covered_to
        if not partnered and reached < ve[i]:
            owner[size], low[size], high[size] = i, reached, ve[i]
            size += 1
    return owner[:size], low[:size], high[:size]


@njit(cache=True)
def next_starts(g, vs, first, starts):
    """The first start of the other side after each tuple's own, in its group; INF when there is none."""
    result = np.full(len(g), INF, dtype=np.int64)
    for i in range(len(g)):
        if g[i] < 0 or g[i] + 1 >= len(first):
            continue
        x = from_start(starts, first[g[i]], first[g[i] + 1], vs[i] + 1)
        if x < first[g[i] + 1]:
            result[i] = starts[x]
    return result


@njit(cache=True)
def next_in_blocks(g, vs, pool, entries, segments, numbers):
    """As `next_starts`, for starts `(group, start, ...)` in blocks."""
    result = np.full(len(g), INF, dtype=np.int64)
    keys, ahead = np.column_stack((g, vs + 1)), room_ahead()
    for i in range(len(g)):
        if i % AHEAD == 0:
            seek_ahead(pool, entries, segments, numbers, keys, i, 2, ahead)
        b, j = ahead[i % AHEAD, 0], ahead[i % AHEAD, 1]
        if b < end_of(numbers) and pool[row_at(entries, segments, numbers, b, j), 0] == g[i]:
            result[i] = pool[row_at(entries, segments, numbers, b, j), 1]
    return result


@njit(cache=True)
def previous_in_blocks(g, vs, pool, entries, segments, numbers):
    """The last start in blocks before each time, in its group; MIN when there is none."""
    result = np.full(len(g), MIN, dtype=np.int64)
    keys, ahead = np.column_stack((g, vs)), room_ahead()
    for i in range(len(g)):
        if i % AHEAD == 0:
            seek_ahead(pool, entries, segments, numbers, keys, i, 2, ahead)
        b, j = ahead[i % AHEAD, 0], ahead[i % AHEAD, 1]
        b, j = previous_row(entries, segments, numbers, b, j)
        if b >= 0 and pool[row_at(entries, segments, numbers, b, j), 0] == g[i]:
            result[i] = pool[row_at(entries, segments, numbers, b, j), 1]
    return result


@njit(cache=True)
def stored(g, vs, number, first, tvs, tnumber):
    """Is there a stored tuple with this group, start and payload number?"""
    found = np.zeros(len(g), dtype=np.bool_)
    for i in range(len(g)):
        if g[i] + 1 >= len(first):
            continue
        x = from_start(tvs, first[g[i]], first[g[i] + 1], vs[i])
        while x < first[g[i] + 1] and tvs[x] == vs[i]:
            if tnumber[x] == number[i]:
                found[i] = True
                break
            x += 1
    return found


@njit(cache=True)
def last_covered(g, vs, ve, before):
    """Per group, the last stretch before a time that tuples cover without a gap: group, start, end.

    What is covered before a settled time no longer changes, so this one stretch can replace all tuples that ended.
    """
    out_g = np.empty(len(g), dtype=np.int64)
    start = np.empty(len(g), dtype=np.int64)
    end = np.empty(len(g), dtype=np.int64)
    size = 0
    for i in range(len(g)):
        limit = before[g[i]] if len(before) > 1 else before[0]
        if vs[i] >= limit:
            continue
        until = min(ve[i], limit)
        if size > 0 and out_g[size - 1] == g[i]:
            if vs[i] > end[size - 1]:
                start[size - 1] = vs[i]
            end[size - 1] = max(end[size - 1], until)
            continue
        out_g[size], start[size], end[size] = g[i], vs[i], until
        size += 1
    return out_g[:size], start[:size], end[:size]
