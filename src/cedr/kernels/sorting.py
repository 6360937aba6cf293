"""Sorting by (group, time): one radix sort over a combined key where it fits into 64 bits."""

import numpy as np
from numba import njit

from cedr.temporal.time import INF

DIGIT = 11


def argsort_by_group_and_time(g, t):
    """The stable order of rows by group, then time. Groups are small numbers; INF comes last."""
    if not len(g):
        return np.empty(0, dtype=np.int64)
    keys, bits = combined_keys(g, t)
    return np.lexsort((t, g)) if keys is None else radix_argsort(keys, bits)


def combined_keys(g, t):
    first, last, groups = extent(g, t)
    span = last - first + 2  # one place more for INF
    bits = int(span * groups).bit_length()
    return (None, 0) if bits > 62 else (pack(g, t, first, span), bits)


@njit(cache=True)
def extent(g, t):
    """Smallest and largest finite time, and the number of groups."""
    first, last, groups = INF, -INF, 0
    for i in range(len(t)):
        if t[i] != INF:
            first = min(first, t[i])
            last = max(last, t[i])
        groups = max(groups, g[i] + 1)
    if first > last:
        first, last = 0, 0
    return first, last, groups


@njit(cache=True)
def pack(g, t, first, span):
    keys = np.empty(len(g), dtype=np.uint64)
    for i in range(len(g)):
        place = span - 1 if t[i] == INF else t[i] - first
        keys[i] = np.uint64(g[i] * span + place)
    return keys


@njit(cache=True)
def radix_argsort(keys, bits):
    n = len(keys)
    order = np.arange(n)
    other_order = np.empty(n, dtype=np.int64)
    keys = keys.copy()
    other_keys = np.empty(n, dtype=np.uint64)
    counts = np.empty(1 << DIGIT, dtype=np.int64)
    mask = np.uint64((1 << DIGIT) - 1)
    for shift in range(0, bits, DIGIT):
        counts[:] = 0
        by = np.uint64(shift)
        for i in range(n):
            counts[(keys[i] >> by) & mask] += 1
        total = 0
        for d in range(len(counts)):
            total, counts[d] = total + counts[d], total
        for i in range(n):
            digit = (keys[i] >> by) & mask
            place = counts[digit]
            counts[digit] += 1
            other_keys[place] = keys[i]
            other_order[place] = order[i]
        keys, other_keys = other_keys, keys
        order, other_order = other_order, order
    return order
