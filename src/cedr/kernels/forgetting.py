"""Passes over sorted blocks that forget: rows that are over, some at a time, and numbers that are no longer used."""

import numpy as np
from numba import njit

from cedr.kernels.blocks import BITS, BLOCK, KEY, PLACE, SIZE, compare, end, next_entry, row_at, seek, slot


@njit(cache=True)
def difference(old, new, depth):
    """The rows that make of old rows new ones when they are added; both are sorted, without equal keys."""
    width = old.shape[1]
    out = np.empty((len(old) + len(new), width), dtype=np.int64)
    n = i = j = 0
    while i < len(old) or j < len(new):
        order = -1 if j == len(new) else 1 if i == len(old) else compare(old, i, new, j, depth)
        differs = False
        for m in range(width):
            was = old[i, m] if order <= 0 else 0
            now = new[j, m] if order >= 0 else 0
            out[n, m] = now - was
            differs = differs or (m >= depth and out[n, m] != 0)
        for m in range(depth):
            out[n, m] = old[i, m] if order <= 0 else new[j, m]
        n += differs
        i += order <= 0
        j += order >= 0
    return out[:n]


@njit(cache=True)
def ended_rows(pool, entries, segments, numbers, key, count, column, by):
    """Of the next `count` rows from a key on, or all that are left, those whose number in a column is not after `by`.
    `key` is set to the key of the row behind them; returns whether there is one."""
    depth, width = entries.shape[1] - KEY, pool.shape[1]
    found = np.empty((count, width), dtype=np.int64)
    b, i = seek(pool, entries, segments, numbers, key, 0, depth, 0)
    n = seen = 0
    while b < end(numbers) and seen < count:
        s = slot(segments, numbers, b)
        start, size = entries[s, PLACE] * numbers[BLOCK], entries[s, SIZE]
        while i < size and seen < count:
            if pool[start + i, column] <= by:
                for m in range(width):
                    found[n, m] = pool[start + i, m]
                n += 1
            seen += 1
            i += 1
        if i == size:
            b, i = next_entry(segments, numbers, b), 0
    more = b < end(numbers)
    if more:
        row = row_at(entries, segments, numbers, b, i)
        for m in range(depth):
            key[0, m] = pool[row, m]
    return found[:n], more


@njit(cache=True)
def mark(pool, entries, segments, numbers, begin, end, column, used):
    """Mark the numbers that a column has in the segments from `begin` to `end`; negative ones are not numbers."""
    for j in range(begin, end):
        first = segments[j, PLACE] << numbers[BITS]
        for s in range(first, first + segments[j, SIZE]):
            start = entries[s, PLACE] * numbers[BLOCK]
            for x in range(start, start + entries[s, SIZE]):
                if pool[x, column] >= 0:
                    used[pool[x, column]] = True


@njit(cache=True)
def renumber(pool, entries, segments, numbers, begin, end, column, new):
    """Give the numbers of a column new ones, in the same order, in the segments from `begin` to `end`; negative ones
    stay."""
    in_key = column < entries.shape[1] - KEY
    for j in range(begin, end):
        first = segments[j, PLACE] << numbers[BITS]
        for s in range(first, first + segments[j, SIZE]):
            start = entries[s, PLACE] * numbers[BLOCK]
            for x in range(start, start + entries[s, SIZE]):
                if pool[x, column] >= 0:
                    pool[x, column] = new[pool[x, column]]
            if in_key:
                entries[s, KEY + column] = pool[start, column]
        if in_key:
            segments[j, KEY + column] = entries[first, KEY + column]
