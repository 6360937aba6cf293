"""Searches among live tuples in blocks: which of a group's tuples comes first in an order, and is live at a time."""

import numpy as np
from numba import njit

from cedr.kernels.blocks import AHEAD, end, next_row, previous_row, room_ahead, row_at, seek_ahead


@njit(cache=True)
def first_live(pool, entries, segments, numbers, g, t, columns, backwards):
    """The value of the first tuple of each group, in the order of the rows or backwards, that is live at a time; and
    whether there is one. `columns` are those of start, end and value.

    If rows are ordered by start after the group, tuples that start later are not read.
    """
    vs, ve, value = columns
    by_start = vs == 1
    values = np.zeros(len(g), dtype=np.int64)
    found = np.zeros(len(g), dtype=np.bool_)
    keys, ahead = np.column_stack((g + 1 if backwards and not by_start else g, t + 1)), room_ahead()
    for q in range(len(g)):
        if q % AHEAD == 0:
            seek_ahead(pool, entries, segments, numbers, keys, q, 2 if backwards and by_start else 1, ahead)
        b, i = ahead[q % AHEAD, 0], ahead[q % AHEAD, 1]
        if backwards:
            b, i = previous_row(entries, segments, numbers, b, i)
        while 0 <= b < end(numbers):
            row = row_at(entries, segments, numbers, b, i)
            if pool[row, 0] != g[q] or (by_start and pool[row, vs] > t[q]):
                break
            if pool[row, vs] <= t[q] < pool[row, ve]:
                values[q], found[q] = pool[row, value], True
                break
            if backwards:
                b, i = previous_row(entries, segments, numbers, b, i)
            else:
                b, i = next_row(entries, segments, numbers, b, i)
    return values, found
