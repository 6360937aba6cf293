"""Sessions of sorted starts."""

import numpy as np
from numba import njit

from cedr.kernels.blocks import AHEAD, end, next_row, previous_row, room_ahead, row_at, seek_ahead


@njit(cache=True)
def sessions(g, vs, timeout):
    """The first start and the last start of the session of each tuple; tuples are sorted by group and start."""
    n = len(g)
    first = np.empty(n, dtype=np.int64)
    last = np.empty(n, dtype=np.int64)
    begin = 0
    for i in range(n):
        first[i] = vs[i] if i == begin else first[begin]
        ends = i + 1 == n or g[i + 1] != g[i]
        if not ends:
            distance = vs[i + 1] - vs[i]
            ends = distance >= timeout or distance < 0  # a distance that leaves 64 bits
        if ends:
            last[begin : i + 1] = vs[i]
            begin = i + 1
    return first, last


@njit(cache=True)
def one_row_each(g, first, last):
    """The sessions `(group, first start, last start)` of tuples that are sorted by group and start."""
    found = np.empty((len(g), 3), dtype=np.int64)
    n = 0
    for i in range(len(g)):
        if n == 0 or found[n - 1, 0] != g[i] or found[n - 1, 1] != first[i]:
            found[n, 0], found[n, 1], found[n, 2] = g[i], first[i], last[i]
            n += 1
    return found[:n]


@njit(cache=True)
def near_sessions(g, t, timeout, pool, entries, segments, numbers):
    """Of the sessions `(group, first start, last start, 1)` in blocks those that reach one of the starts `t`, or that
    it reaches; each once. Starts are sorted by group and time."""
    found = np.empty((2 * len(g), 3), dtype=np.int64)
    keys, ahead = np.column_stack((g, t)), room_ahead()
    n = 0
    for i in range(len(g)):
        if i % AHEAD == 0:
            seek_ahead(pool, entries, segments, numbers, keys, i, 2, ahead)
        b, j = ahead[i % AHEAD, 0], ahead[i % AHEAD, 1]
        p, k = previous_row(entries, segments, numbers, b, j)
        if p >= 0:  # the session before
            x = row_at(entries, segments, numbers, p, k)
            if pool[x, 0] == g[i] and t[i] - pool[x, 1] >= 0 and t[i] - pool[x, 2] < timeout:
                n = once(found, n, pool, x)
        if b < end(numbers):
            x = row_at(entries, segments, numbers, b, j)
            if pool[x, 0] == g[i] and 0 <= pool[x, 1] - t[i] < timeout:
                n = once(found, n, pool, x)
    return found[:n]


@njit(cache=True)
def once(found, n, pool, x):
    """Append a session, unless it is one of the last two there already."""
    for i in range(max(0, n - 2), n):
        if found[i, 0] == pool[x, 0] and found[i, 1] == pool[x, 1]:
            return n
    for m in range(3):
        found[n, m] = pool[x, m]
    return n + 1


@njit(cache=True)
def over_and_open(pool, entries, segments, numbers, timeout, front):
    """Of sessions `(first start, group, last start, 1)` in blocks: how many at the beginning are over, and the first
    start of the first one that is not, or of none."""
    over = b = i = 0
    while b < end(numbers):
        x = row_at(entries, segments, numbers, b, i)
        last = pool[x, 2]
        if last > front or last + timeout > front or last + timeout < last:
            return over, pool[x, 0]
        over += 1
        b, i = next_row(entries, segments, numbers, b, i)
    return over, np.int64(np.iinfo(np.int64).max)
