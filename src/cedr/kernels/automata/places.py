"""The events of an automaton: rows `(group, place, vs, ve, content, copies)` of one table, sorted by all but copies.

Rows of one group at one place are adjacent. Each row also has the *reach* of the runs that begin at its place: they
depend on the events at places up to it, and on no others.
"""

import numpy as np
from numba import njit

from cedr.kernels.sorting import argsort_by_group_and_time
from cedr.temporal.time import INF

G, AT, VS, VE, CONTENT, COPIES = range(6)
WIDTH = 6


def in_order(rows):
    """Sorted rows, equal ones as one with the sum of their copies; without those of no copies."""
    order = argsort_by_group_and_time(rows[:, G], rows[:, AT])
    rows = rows[order]
    if shares_places(rows):
        rows = rows[np.lexsort((rows[:, CONTENT], rows[:, VE], rows[:, VS], rows[:, AT], rows[:, G]))]
    nothing = np.empty((0, WIDTH), dtype=np.int64)
    no_reach = np.empty(0, dtype=np.int64)
    return merged(nothing, no_reach, rows)[0]


@njit(cache=True)
def shares_places(rows):
    for i in range(1, len(rows)):  # noqa: SIM110 compiled code has no generators
        if rows[i, G] == rows[i - 1, G] and rows[i, AT] == rows[i - 1, AT]:
            return True
    return False


@njit(cache=True)
def compared(a, i, b, j):
    """Which of two rows comes first, copies aside: -1, 0 or 1."""
    for m in range(COPIES):
        if a[i, m] != b[j, m]:
            return -1 if a[i, m] < b[j, m] else 1
    return 0


@njit(cache=True)
def merged(rows, reach, changes):
    """Two sorted tables as one, and the reach of its rows: INF for new ones, as it was not computed yet."""
    n = len(rows) + len(changes)
    found = np.empty((n, WIDTH), dtype=np.int64)
    far = np.empty(n, dtype=np.int64)
    i = j = 0
    size = 0
    while i < len(rows) or j < len(changes):
        from_rows = j == len(changes) or (i < len(rows) and compared(rows, i, changes, j) <= 0)
        source, at = (rows, i) if from_rows else (changes, j)
        if size > 0 and compared(found, size - 1, source, at) == 0:
            found[size - 1, COPIES] += source[at, COPIES]
        else:
            if size > 0 and found[size - 1, COPIES] == 0:
                size -= 1
            found[size] = source[at]
            far[size] = reach[i] if from_rows else INF
            size += 1
        if from_rows:
            i += 1
        else:
            j += 1
    if size > 0 and found[size - 1, COPIES] == 0:
        size -= 1
    return found[:size], far[:size]


@njit(cache=True)
def end_of_place(rows, first):
    last = first + 1
    while last < len(rows) and rows[last, G] == rows[first, G] and rows[last, AT] == rows[first, AT]:
        last += 1
    return last


@njit(cache=True)
def touched(rows, reach, changes):
    """The places whose runs depend on a change, by their first row, and of each the first change that concerns it."""
    places = np.empty(len(rows), dtype=np.int64)
    since = np.empty(len(rows), dtype=np.int64)
    size = i = j = 0
    while i < len(rows):
        g, at = rows[i, G], rows[i, AT]
        last = end_of_place(rows, i)
        while j < len(changes) and (changes[j, G] < g or (changes[j, G] == g and changes[j, AT] < at)):
            j += 1
        if j < len(changes) and changes[j, G] == g and changes[j, AT] <= reach[i:last].max():
            places[size], since[size] = i, changes[j, AT]
            size += 1
        i = last
    return places[:size], since[:size]


@njit(cache=True)
def all_places(rows):
    """Every place by its first row, and where it is."""
    places = np.empty(len(rows), dtype=np.int64)
    at = np.empty(len(rows), dtype=np.int64)
    size = i = 0
    while i < len(rows):
        places[size], at[size] = i, rows[i, AT]
        size += 1
        i = end_of_place(rows, i)
    return places[:size], at[:size]


@njit(cache=True)
def set_reach(rows, reach, places, found):
    """Note how far the runs reach that begin at these places."""
    for k in range(len(places)):
        reach[places[k] : end_of_place(rows, places[k])] = found[k]


@njit(cache=True)
def still_needed(rows, limits):
    """All rows of a group from the first one on that may still change the answer.

    `limits`: up to where each group is settled, or one time for all. What ends before that cannot change any more, but
    later rows are neighbours of earlier ones, so only rows before all others go.
    """
    keep = np.zeros(len(rows), dtype=np.bool_)
    for i in range(len(rows)):
        limit = limits[rows[i, G]] if len(limits) > 1 else limits[0]
        before = i > 0 and rows[i - 1, G] == rows[i, G] and keep[i - 1]
        keep[i] = limit != INF and (before or rows[i, VE] >= limit)
    return keep
