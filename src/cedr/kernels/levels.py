"""Levels of a height that changes over time: the k-th event lives exactly where the height is at least k."""

import numpy as np
from numba import njit

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
    """The levels open after the last entry of each group before a time: what `levels` needs once those are folded."""
    capacity = len(open_g) + 16
    for i in range(len(g)):
        capacity += max(height[i], 0)
    kept_g = np.empty(capacity, dtype=np.int64)
    kept_start = np.empty(capacity, dtype=np.int64)
    size = first = o = 0
    for i in range(len(g)):
        if i == 0 or g[i] != g[i - 1]:
            first = size
            while o < len(open_g) and open_g[o] < g[i]:
                o += 1
            while o < len(open_g) and open_g[o] == g[i]:
                kept_g[size], kept_start[size] = g[i], open_start[o]
                size += 1
                o += 1
        if t[i] < before:
            size = min(size, first + height[i])
            while size - first < height[i]:
                kept_g[size], kept_start[size] = g[i], t[i]
                size += 1
    return kept_g[:size], kept_start[:size]


@njit(cache=True)
def earliest_open(start, end, watermark, over, promised):
    """The smallest start from `promised` on of an event that has begun by the watermark and is not over, or INF."""
    earliest = INF
    for i in range(len(start)):
        if promised <= start[i] <= watermark and end[i] > over:
            earliest = min(earliest, start[i])
    return earliest
