"""Levels of a height that changes over time: the k-th event lives exactly where the height is at least k.

Limits of time are arrays by group, or of length 1 if they are the same for all groups.
"""

import numpy as np
from numba import njit

from cedr.kernels.blocks import end as end_of
from cedr.kernels.blocks import near, next_row, row_at, seek
from cedr.temporal.time import INF


@njit(cache=True)
def levels(g, t, height, open_g, open_start):
    """All level intervals, sorted by group and start.

    `open_g, open_start` are the starts, lowest level first, of the levels that were open at the first entry of a group.
    """
    capacity = len(open_g) + 16
    for i in range(len(g)):
        capacity += max(height[i] - (height[i - 1] if i > 0 and g[i - 1] == g[i] else 0), 0)
    out_g = np.empty(capacity, dtype=np.int64)
    start = np.empty(capacity, dtype=np.int64)
    end = np.empty(capacity, dtype=np.int64)
    stack = np.empty(capacity, dtype=np.int64)
    depth = size = first = o = 0
    for i in range(len(g)):
        if i == 0 or g[i] != g[i - 1]:
            depth, first = 0, size
            while o < len(open_g) and open_g[o] < g[i]:
                o += 1
            while o < len(open_g) and open_g[o] == g[i]:
                stack[depth] = open_start[o]
                depth += 1
                o += 1
        while depth > height[i]:
            depth -= 1
            out_g[size], start[size], end[size] = g[i], stack[depth], t[i]
            place = size  # almost always in place already: levels above the first are rare
            while place > first and start[place - 1] > start[place]:
                start[place - 1], start[place] = start[place], start[place - 1]
                end[place - 1], end[place] = end[place], end[place - 1]
                place -= 1
            size += 1
        while depth < height[i]:
            stack[depth] = t[i]
            depth += 1
    return out_g[:size], start[:size], end[:size]


@njit(cache=True)
def open_levels(g, t, height, open_g, open_start, before):
    """The levels open after the last entry of each group before a time: what `levels` needs once those are folded.

    Before infinity none is left.
    """
    capacity = len(open_g) + 16
    for i in range(len(g)):
        capacity += max(height[i], 0)
    kept_g = np.empty(capacity, dtype=np.int64)
    kept_start = np.empty(capacity, dtype=np.int64)
    size = first = o = 0
    for i in range(len(g)):
        limit = before[g[i]] if len(before) > 1 else before[0]
        if limit == INF:
            continue
        if i == 0 or g[i] != g[i - 1]:
            first = size
            while o < len(open_g) and open_g[o] < g[i]:
                o += 1
            while o < len(open_g) and open_g[o] == g[i]:
                kept_g[size], kept_start[size] = g[i], open_start[o]
                size += 1
                o += 1
        if t[i] < limit:
            size = min(size, first + height[i])
            while size - first < height[i]:
                kept_g[size], kept_start[size] = g[i], t[i]
                size += 1
    return kept_g[:size], kept_start[:size]


@njit(cache=True)
def foldable(g, end, settled, front, groups):
    """By group how far its past can be folded: to its front if no level ends between what is settled and there."""
    limits = np.empty(groups, dtype=np.int64)
    for x in range(groups):
        limits[x] = front[x] if len(front) > 1 else front[0]
        if limits[x] == INF:
            limits[x] = settled[x] if len(settled) > 1 else settled[0]
    for i in range(len(g)):
        so_far = settled[g[i]] if len(settled) > 1 else settled[0]
        if so_far <= end[i] < limits[g[i]]:
            limits[g[i]] = so_far
    return limits


@njit(cache=True)
def earliest_open(g, start, end, watermark, over, promised):
    """By group the earliest start from `promised` on of what began by the watermark and is not over, or INF."""
    earliest = np.full(len(watermark), INF, dtype=np.int64)
    for i in range(len(start)):
        x = g[i] if len(watermark) > 1 else 0
        if promised[x] <= start[i] <= watermark[x] and end[i] > over[x]:
            earliest[x] = min(earliest[x], start[i])
    return earliest


@njit(cache=True)
def emitted(g, start, end, end_by, start_by, promised):
    """Which events are emitted, as in `endpoints.snapshots`; and by group the earliest start of one that is not."""
    emits = np.empty(len(start), dtype=np.bool_)
    held = np.full(len(end_by), INF, dtype=np.int64)
    for i in range(len(start)):
        x = g[i] if len(end_by) > 1 else 0
        emits[i] = (end[i] <= end_by[x] and start[i] <= start_by[x]) or start[i] < promised[x]
        if not emits[i]:
            held[x] = min(held[x], start[i])
    return emits, held


@njit(cache=True)
def over_in_order(pool, entries, segments, numbers, until, over, released, best):
    """Of the rows `start, end, g, copies` of blocks those that are over, in order of their starts as far as the
    earliest start of one that is not over allows; and that start. `best`: the earliest that is known already."""
    found = np.empty((16, 3), dtype=np.int64)
    key = np.empty((1, 1), dtype=np.int64)
    n = b = i = 0
    while b < end_of(numbers):
        row = row_at(entries, segments, numbers, b, i)
        start, end = pool[row, 0], pool[row, 1]
        if start > until or start > max(best, released):
            break
        if end > over:  # and so are all others with this start
            best = min(best, start)
            key[0, 0] = start + 1
            b, i = seek(pool, entries, segments, numbers, key, 0, 1, near(numbers, b))
            continue
        for _ in range(pool[row, 3]):
            if n == len(found):
                more = np.empty((2 * n, 3), dtype=np.int64)
                more[:n] = found
                found = more
            for m in range(3):
                found[n, m] = pool[row, m]
            n += 1
        b, i = next_row(entries, segments, numbers, b, i)
    return found[:n], best
