"""Events with their places: rows `(group, place, vs, ve, content, rank, emitted end, emitted after)`, sorted.

The *rank* distinguishes the events at one place; *after* is the place before their own. Each tuple is a row of its own,
copies too, and stores what was emitted for it: `emitted end` equals its start while nothing was.
"""

import numpy as np
from numba import njit

from cedr.kernels.automata.places import AT, CONTENT, VE, VS, G
from cedr.temporal.time import MIN

RANK, EMITTED_VE, EMITTED_AFTER = 5, 6, 7
WIDTH = 8
OLD, NEW = 3, 4
"""Columns of changes, which are (group, place, vs, old end, new end, content)."""


@njit(cache=True)
def worked_in(rows, changes):
    """Rows after changes, which are sorted like the rows and at each place by arrival; rows that are gone stay."""
    found = np.empty((len(rows) + len(changes), WIDTH), dtype=np.int64)
    i = j = size = 0
    while i < len(rows) or j < len(changes):
        if j == len(changes) or (i < len(rows) and not before(changes, j, rows[i, G], rows[i, AT])):
            g, at = rows[i, G], rows[i, AT]
        else:
            g, at = changes[j, G], changes[j, AT]
        first = size
        while i < len(rows) and rows[i, G] == g and rows[i, AT] == at:
            found[size] = rows[i]
            i, size = i + 1, size + 1
        while j < len(changes) and changes[j, G] == g and changes[j, AT] == at:
            size = change_place(found, first, size, changes[j])
            j += 1
    return found[:size]


@njit(cache=True)
def before(rows, i, g, at):
    return rows[i, G] < g or (rows[i, G] == g and rows[i, AT] < at)


@njit(cache=True)
def change_place(found, first, size, change):
    """Work one change into the rows of its place; returns how many rows there are then."""
    g, at, vs, old, new, content = change
    if old == vs:
        rank = 0
        for k in range(first, size):
            rank = max(rank, found[k, RANK] + 1)
        found[size, G], found[size, AT], found[size, VS], found[size, VE] = g, at, vs, new
        found[size, CONTENT], found[size, RANK], found[size, EMITTED_VE], found[size, EMITTED_AFTER] = (
            content,
            rank,
            vs,
            MIN,
        )
        return size + 1
    for k in range(first, size):
        if found[k, VS] == vs and found[k, VE] == old and found[k, CONTENT] == content:
            found[k, VE] = new
            break
    return size


@njit(cache=True)
def unemitted(rows, linked):
    """The changes to emit: row, end before, end after, and the place before its own. Marks them as emitted.

    `linked`: that place is the previous one in the group, which changes; otherwise it is the number before its own.
    What came before the first place of a group is forgotten, and has ended.
    """
    changes = np.empty((2 * len(rows), 4), dtype=np.int64)
    size = k = 0
    group, previous, is_first = np.int64(-1), np.int64(MIN), True
    while k < len(rows):
        at = rows[k, AT]
        if rows[k, G] != group:
            group, is_first = rows[k, G], True
        lives = False
        last = k
        while last < len(rows) and rows[last, G] == group and rows[last, AT] == at:
            vs, ve, was, was_after = rows[last, VS], rows[last, VE], rows[last, EMITTED_VE], rows[last, EMITTED_AFTER]
            after = at - 1 if not linked else was_after if is_first else previous
            if was > vs and ve > vs and after != was_after:
                changes[size, 0], changes[size, 1], changes[size, 2], changes[size, 3] = last, was, vs, was_after
                changes[size + 1, 0], changes[size + 1, 1], changes[size + 1, 2], changes[size + 1, 3] = (
                    last,
                    vs,
                    ve,
                    after,
                )
                size += 2
            elif was != ve:
                about = was_after if was > vs else after
                changes[size, 0], changes[size, 1], changes[size, 2], changes[size, 3] = last, was, ve, about
                size += 1
            rows[last, EMITTED_VE] = ve
            rows[last, EMITTED_AFTER] = after
            lives |= ve > vs
            last += 1
        if lives:
            previous, is_first = at, False
        k = last
    return changes[:size]
