"""Events of an automaton near a change, where they are stored in several sorted tables, see `places` for their columns.

A *tree of maxima* over the reach of the rows finds the runs that reach a change without a pass over those that do not:
its first part has the maximum of every `FAN` rows, the next one that of every `FAN` of these, and so on.

A *stretch* is a part of a group: the rows from one place up to another. Rows that are gathered have the number of their
stretch instead of their group.
"""

import numpy as np
from numba import njit

from cedr.kernels.automata.places import AT, COPIES, WIDTH, G, compared, end_of_place
from cedr.temporal.time import INF, MIN

FAN = 64


@njit(cache=True)
def tree_of(reach):
    """The tree of maxima, and where each of its parts begins."""
    begins = [np.int64(0)]
    n = len(reach)
    while n > FAN:
        n = -(-n // FAN)
        begins.append(begins[-1] + n)
    tree = np.full(begins[-1], MIN, dtype=np.int64)
    offsets = np.array(begins)
    for part in range(len(offsets) - 1):
        below = reach if part == 0 else tree[offsets[part - 1] : offsets[part]]
        for i in range(len(below)):
            at = offsets[part] + i // FAN
            tree[at] = max(tree[at], below[i])
    return tree, offsets


@njit(cache=True)
def repair(reach, tree, offsets, row):
    """The reach of a row has changed."""
    at = row
    for part in range(len(offsets) - 1):
        below = reach if part == 0 else tree[offsets[part - 1] : offsets[part]]
        at //= FAN
        tree[offsets[part] + at] = below[at * FAN : (at + 1) * FAN].max()


@njit(cache=True)
def next_reaching(reach, tree, offsets, begin, end, time):
    """The first row from `begin` on, before `end`, whose reach is at least this time; `end` if there is none."""
    part, i, width = 0, begin, 1
    while True:
        values = reach if part == 0 else tree[offsets[part - 1] : offsets[part]]
        last = -(-end // width)
        stop = min((i // FAN + 1) * FAN, last)
        while i < stop and values[i] < time:
            i += 1
        if i < stop and part == 0:
            return i
        if i < stop:
            part, i, width = part - 1, i * FAN, width // FAN
        elif i >= last:
            return end
        else:
            part, i, width = part + 1, i // FAN, width * FAN


@njit(cache=True)
def first_from(rows, g, at):
    """The first row that is not before a place."""
    low, high = 0, len(rows)
    while low < high:
        middle = (low + high) // 2
        if rows[middle, G] < g or (rows[middle, G] == g and rows[middle, AT] < at):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def first_after(rows, g, at):
    """The first row after a place, in the same group or a later one."""
    return first_from(rows, g, at + 1) if at < INF else first_from(rows, g + 1, MIN)


@njit(cache=True)
def reaching(rows, reach, tree, offsets, changes):
    """The places whose runs reach a change: group, place, the first change from there on, and how far they reach.

    Between two changes of a group only the second one concerns a place.
    """
    found = np.empty((16, 4), dtype=np.int64)
    n = 0
    for j in range(len(changes)):
        g, at = changes[j, G], changes[j, AT]
        follows = j > 0 and changes[j - 1, G] == g
        if follows and changes[j - 1, AT] == at:
            continue
        row = first_after(rows, g, changes[j - 1, AT]) if follows else first_from(rows, g, MIN)
        end = first_after(rows, g, at)
        row = next_reaching(reach, tree, offsets, row, end, at)
        while row < end:
            if n > 0 and found[n - 1, 0] == g and found[n - 1, 1] == rows[row, AT]:
                found[n - 1, 3] = max(found[n - 1, 3], reach[row])
            else:
                if n == len(found):
                    more = np.empty((2 * n, 4), dtype=np.int64)
                    more[:n] = found
                    found = more
                found[n, 0], found[n, 1], found[n, 2], found[n, 3] = g, rows[row, AT], at, reach[row]
                n += 1
            row = next_reaching(reach, tree, offsets, row + 1, end, at)
    return found[:n]


@njit(cache=True)
def united(places):
    """Sorted places as `reaching` returns them, each once."""
    found = np.empty_like(places)
    n = 0
    for i in range(len(places)):
        if n > 0 and found[n - 1, 0] == places[i, 0] and found[n - 1, 1] == places[i, 1]:
            found[n - 1, 3] = max(found[n - 1, 3], places[i, 3])
        else:
            found[n] = places[i]
            n += 1
    return found[:n]


@njit(cache=True)
def stretches(places, number, far):
    """Where the runs of these places look, as stretches `(group, first, last)`; sets the number of each place.

    `far` is by the number that places had before: up to where rows are needed in addition.
    """
    found = np.empty((len(places), 3), dtype=np.int64)
    n = 0
    for i in range(len(places)):
        g, at, high = places[i, 0], places[i, 1], max(places[i, 2], places[i, 3])
        if len(far):
            high = max(high, far[number[i]])
        if n > 0 and found[n - 1, 0] == g and at <= found[n - 1, 2]:
            found[n - 1, 2] = max(found[n - 1, 2], high)
        else:
            found[n, 0], found[n, 1], found[n, 2] = g, at, high
            n += 1
        number[i] = n - 1
    return found[:n]


@njit(cache=True)
def some_more(rows, stretch, count, far):
    """Lower `far` to the place of the row that is `count` rows after each stretch, if there are that many."""
    for k in range(len(stretch)):
        if stretch[k, 2] < INF:
            row = first_after(rows, stretch[k, 0], stretch[k, 2]) + count - 1
            if row < len(rows) and rows[row, G] == stretch[k, 0]:
                far[k] = min(far[k], rows[row, AT])


@njit(cache=True)
def added(near, rows, stretch, far):
    """Gathered rows, and those of one more table."""
    begin = np.empty(len(stretch), dtype=np.int64)
    size = np.int64(0)
    for k in range(len(stretch)):
        begin[k] = first_from(rows, stretch[k, 0], stretch[k, 1])
        i = begin[k]
        while i < len(rows) and rows[i, G] == stretch[k, 0] and rows[i, AT] <= far[k]:
            i += 1
        size += i - begin[k]
    more = np.empty((size, WIDTH), dtype=np.int64)
    n = 0
    for k in range(len(stretch)):
        i = begin[k]
        while i < len(rows) and rows[i, G] == stretch[k, 0] and rows[i, AT] <= far[k]:
            more[n] = rows[i]
            more[n, G] = k
            n += 1
            i += 1
    return summed(near, more)


@njit(cache=True)
def summed(rows, more):
    """Two sorted tables as one; equal rows add up their copies, and those without copies are gone."""
    if not len(rows) or not len(more):
        return more if len(more) else rows
    found = np.empty((len(rows) + len(more), WIDTH), dtype=np.int64)
    i = j = n = 0
    while i < len(rows) or j < len(more):
        order = -1 if j == len(more) else 1 if i == len(rows) else compared(rows, i, more, j)
        found[n] = rows[i] if order <= 0 else more[j]
        if order == 0:
            found[n, COPIES] += more[j, COPIES]
        i += order <= 0
        j += order >= 0
        n += found[n, COPIES] != 0
    return found[:n]


@njit(cache=True)
def merged(rows, reach, more, reach_of_more):
    """The same with the reach of each row."""
    found = np.empty((len(rows) + len(more), WIDTH), dtype=np.int64)
    far = np.empty(len(found), dtype=np.int64)
    i = j = n = 0
    while i < len(rows) or j < len(more):
        order = -1 if j == len(more) else 1 if i == len(rows) else compared(rows, i, more, j)
        found[n] = rows[i] if order <= 0 else more[j]
        far[n] = reach[i] if order <= 0 else reach_of_more[j]
        if order == 0:
            found[n, COPIES] += more[j, COPIES]
            far[n] = max(far[n], reach_of_more[j])
        i += order <= 0
        j += order >= 0
        n += found[n, COPIES] != 0
    return found[:n].copy(), far[:n].copy()


@njit(cache=True)
def located(near, places, number):
    """Which of the places have gathered rows, and the first row of each."""
    row = np.empty(len(places), dtype=np.int64)
    which = np.empty(len(places), dtype=np.int64)
    n = i = 0
    for k in range(len(places)):
        while i < len(near) and (near[i, G] < number[k] or (near[i, G] == number[k] and near[i, AT] < places[k, 1])):
            i += 1
        if i < len(near) and near[i, G] == number[k] and near[i, AT] == places[k, 1]:
            row[n], which[n] = i, k
            n += 1
    return row[:n], which[:n]


@njit(cache=True)
def rows_at(near, first):
    """How many rows there are at places, given by their first rows."""
    n = 0
    for row in first:
        n += end_of_place(near, row) - row
    return n


@njit(cache=True)
def note_reach(rows, reach, tree, offsets, places, found):
    """Set how far the runs reach that begin at these places, as far as the table has rows there."""
    for k in range(len(places)):
        i = first_from(rows, places[k, 0], places[k, 1])
        while i < len(rows) and rows[i, G] == places[k, 0] and rows[i, AT] == places[k, 1]:
            reach[i] = found[k]
            repair(reach, tree, offsets, i)
            i += 1
