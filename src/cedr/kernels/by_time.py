"""Rows of sorted blocks whose first column is a time: those that time has reached, and the first of some groups."""

import numpy as np
from numba import njit

from cedr.kernels.blocks import BLOCK, PLACE, ROWS, SIZE, end, next_entry, remove_entry, set_first, slot


@njit(cache=True)
def rows_until(pool, entries, segments, numbers, time):
    """How many rows are not after a time."""
    n = b = 0
    while b < end(numbers):
        s = slot(segments, numbers, b)
        start, size = entries[s, PLACE] * numbers[BLOCK], entries[s, SIZE]
        if pool[start + size - 1, 0] > time:
            for i in range(size):
                n += pool[start + i, 0] <= time
            break
        n += size
        b = next_entry(segments, numbers, b)
    return n


@njit(cache=True)
def take_head(pool, entries, segments, numbers, count):
    """Remove the first rows, and return them."""
    width = pool.shape[1]
    rows = np.empty((count, width), dtype=np.int64)
    n = 0
    while n < count:
        s = slot(segments, numbers, 0)
        start, size = entries[s, PLACE] * numbers[BLOCK], entries[s, SIZE]
        some = min(size, count - n)
        for i in range(some):
            for m in range(width):
                rows[n, m] = pool[start + i, m]
            n += 1
        if some == size:
            remove_entry(pool, entries, segments, numbers, 0)
            continue
        for i in range(size - some):
            for m in range(width):
                pool[start + i, m] = pool[start + some + i, m]
        entries[s, SIZE] = size - some
        set_first(pool, entries, segments, numbers, 0)
    numbers[ROWS] -= count
    return rows


@njit(cache=True)
def first_of_groups(pool, entries, segments, numbers, wanted, groups):
    """The first row of each of some groups, in the order of time, and how many rows were looked at. The group is the
    second column; `wanted`: by group whether its row is needed, false for all afterwards."""
    rows = np.empty((groups, pool.shape[1]), dtype=np.int64)
    n = seen = b = 0
    while b < end(numbers) and n < groups:
        s = slot(segments, numbers, b)
        start, size = entries[s, PLACE] * numbers[BLOCK], entries[s, SIZE]
        for i in range(start, start + size):
            g = pool[i, 1]
            if wanted[g]:
                wanted[g] = False
                for m in range(pool.shape[1]):
                    rows[n, m] = pool[i, m]
                n += 1
        seen += size
        b = next_entry(segments, numbers, b)
    return rows[:n], seen
