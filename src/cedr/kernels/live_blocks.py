"""Searches among live tuples in blocks: which of a group's tuples comes first in an order, and is live at a time."""

import numpy as np
from numba import njit

from cedr.kernels.blocks import seek


@njit(cache=True)
def first_live(pool, block, place, size, first, g, t, columns, backwards):
    """The value of the first tuple of each group, in the order of the rows or backwards, that is live at a time; and
    whether there is one. `columns` are those of start, end and value.

    If rows are ordered by start after the group, tuples that start later are not read.
    """
    vs, ve, value = columns
    by_start = vs == 1
    values = np.zeros(len(g), dtype=np.int64)
    found = np.zeros(len(g), dtype=np.bool_)
    key = np.empty((1, 2), dtype=np.int64)
    for q in range(len(g)):
        key[0, 0], key[0, 1] = g[q], t[q] + 1
        if backwards and not by_start:
            key[0, 0] += 1
        b, i = seek(pool, block, place, size, first, key, 0, 2 if backwards and by_start else 1, 0)
        if backwards:
            b, i = previous(size, b, i)
        while 0 <= b < len(place):
            row = place[b] * block + i
            if pool[row, 0] != g[q] or (by_start and pool[row, vs] > t[q]):
                break
            if pool[row, vs] <= t[q] < pool[row, ve]:
                values[q], found[q] = pool[row, value], True
                break
            if backwards:
                b, i = previous(size, b, i)
            elif i + 1 < size[b]:
                i += 1
            else:
                b, i = b + 1, 0
    return values, found


@njit(cache=True)
def previous(size, b, i):
    """The position before; -1 is before the first block."""
    if i > 0:
        return b, i - 1
    return b - 1, (size[b - 1] - 1 if b > 0 else 0)
