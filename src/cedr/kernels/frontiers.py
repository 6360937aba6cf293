"""Parts of the end points of `endpoints`, read from blocks: what a few changes and some progress can affect.

In every group the emitted snapshots are a prefix. The *frontier* of a group is the start of its first live snapshot
that is not emitted, or INF; `base` are the sums of all entries of the group before its frontier. So the sums at any
entry follow from the entries between it and the frontier, however many entries the group has.

Rows of blocks are `g, t, k, weights...`, see `blocks`; the rows of frontiers are `start, end, g, 1`.
"""

import numpy as np
from numba import njit

from cedr.kernels.blocks import AHEAD, near, next_row, previous_row, room_ahead, row_at, seek, seek_ahead
from cedr.kernels.blocks import end as end_of
from cedr.temporal.time import INF, MIN

HEAD = 3
"""Columns of a row before its weights."""


@njit(cache=True)
def rewind(pool, entries, segments, numbers, groups, since, start, base):
    """For each group where a change at time `since` makes it necessary to begin again: at the entry before, but not
    after its frontier. Returns that time, and the sums of the entries before it.

    `start`, `base`: the frontiers by group, and the sums before them with the changes.
    """
    width = base.shape[1]
    begin = np.empty(len(groups), dtype=np.int64)
    sums = np.empty((len(groups), width), dtype=np.int64)
    keys, ahead = np.column_stack((groups, since)), room_ahead()
    for q in range(len(groups)):
        if q % AHEAD == 0:
            seek_ahead(pool, entries, segments, numbers, keys, q, 2, ahead)
        g, at = groups[q], since[q]
        b, i = ahead[q % AHEAD, 0], ahead[q % AHEAD, 1]
        before, last = previous_row(entries, segments, numbers, b, i)
        if before >= 0:
            row = row_at(entries, segments, numbers, before, last)
            if pool[row, 0] == g and pool[row, 1] < at:
                at, b, i = pool[row, 1], before, last
        begin[q] = min(at, start[g])
        for m in range(width):
            sums[q, m] = base[g, m]
        if start[g] <= at:  # nothing lies between
            continue
        while b < end_of(numbers):
            row = row_at(entries, segments, numbers, b, i)
            if pool[row, 0] != g or (start[g] < INF and pool[row, 1] >= start[g]):
                break
            for m in range(width):
                sums[q, m] -= pool[row, HEAD + m]
            b, i = next_row(entries, segments, numbers, b, i)
    return begin, sums


@njit(cache=True)
def open_start(pool, entries, segments, numbers, g, begin, live, until, promised):
    """The start, from `promised` on, of the snapshot of a group that began by a time and has not ended, or INF.

    `live`: how many tuples are live before the entry at `begin`.
    """
    key = np.empty((1, 2), dtype=np.int64)
    key[0, 0], key[0, 1] = g, begin
    b, i = seek(pool, entries, segments, numbers, key, 0, 2, 0)
    at = MIN
    while b < end_of(numbers):
        row = row_at(entries, segments, numbers, b, i)
        if pool[row, 0] != g or pool[row, 1] > until:
            break
        at = pool[row, 1]
        live += pool[row, HEAD]
        b, i = next_row(entries, segments, numbers, b, i)
    return at if live > 0 and at >= promised else INF


@njit(cache=True)
def earliest_of(pool, entries, segments, numbers, groups, begin, sums, until, promised):
    """The earliest of the open starts of some groups."""
    best = INF
    for q in range(len(groups)):
        found = open_start(pool, entries, segments, numbers, groups[q], begin[q], sums[q, 0], until, promised)
        best = min(best, found)
    return best


@njit(cache=True)
def due(pool, entries, segments, numbers, wpool, wentries, wsegments, wnumbers, base, until, released, promised, best):
    """The groups whose first snapshot that is not emitted may be over by `until`, in order of their starts as far as
    the earliest open start allows; and that start. `best`: the earliest that is known already."""
    found = np.empty(16, dtype=np.int64)
    key = np.empty((1, 1), dtype=np.int64)
    n = b = i = 0
    while b < end_of(wnumbers):
        row = row_at(wentries, wsegments, wnumbers, b, i)
        start, end, g = wpool[row, 0], wpool[row, 1], wpool[row, 2]
        if start > until or start > max(best, released):
            break
        if end > until:  # and so are all others with this start
            best = min(best, start)
            key[0, 0] = start + 1
            b, i = seek(wpool, wentries, wsegments, wnumbers, key, 0, 1, near(wnumbers, b))
            continue
        best = min(best, open_start(pool, entries, segments, numbers, g, start, base[g, 0], until, promised))
        if n == len(found):
            more = np.empty(2 * n, dtype=np.int64)
            more[:n] = found
            found = more
        found[n] = g
        n += 1
        b, i = next_row(wentries, wsegments, wnumbers, b, i)
    return found[:n], best


@njit(cache=True)
def gather(pool, entries, segments, numbers, groups, begin, until, width, more):
    """The entries of each group from a time on, as end points: up to `more` entries after `until`."""
    total = 0
    g = np.empty(0, dtype=np.int64)
    t = np.empty(0, dtype=np.int64)
    ints = np.empty((0, width), dtype=np.int64)
    key = np.empty((1, 2), dtype=np.int64)
    for write in (False, True):
        if write:
            g, t, ints = (
                np.empty(total, dtype=np.int64),
                np.empty(total, dtype=np.int64),
                np.empty((total, width), dtype=np.int64),
            )
        n = 0
        for q in range(len(groups)):
            key[0, 0], key[0, 1] = groups[q], begin[q]
            b, i = seek(pool, entries, segments, numbers, key, 0, 2, 0)
            after = 0
            while b < end_of(numbers) and after < more:
                row = row_at(entries, segments, numbers, b, i)
                if pool[row, 0] != groups[q]:
                    break
                after += pool[row, 1] > until[q]
                if write:
                    g[n], t[n] = pool[row, 0], pool[row, 1]
                    for m in range(width):
                        ints[n, m] = pool[row, HEAD + m]
                n += 1
                b, i = next_row(entries, segments, numbers, b, i)
        total = n
    return g, t, ints


@njit(cache=True)
def carried(g, ints, groups, sums):
    """End points whose first entry in each group carries the sums of those before; groups are sorted."""
    with_sums = ints.copy()
    q = 0
    for i in range(len(g)):
        if i == 0 or g[i] != g[i - 1]:
            while groups[q] != g[i]:
                q += 1
            for m in range(ints.shape[1]):
                with_sums[i, m] += sums[q, m]
    return with_sums


@njit(cache=True)
def frontiers(g, t, ints, groups, sums, end_by, start_by, promised, goes_on, start, end, base):
    """Set the frontiers of groups from their end points and the sums before those: the first snapshot of each that
    `endpoints.snapshots` does not emit. Groups are sorted. An end that is elsewhere (`goes_on`) is INF here."""
    width = ints.shape[1]
    at = np.zeros(width, dtype=np.int64)
    found = False
    for x in groups:
        start[x] = end[x] = INF
        base[x, :] = 0
    q = 0
    for i in range(len(g)):
        if i == 0 or g[i] != g[i - 1]:
            while groups[q] != g[i]:
                q += 1
            at[:] = sums[q]
            found = False
        is_last = i + 1 == len(g) or g[i + 1] != g[i]
        if not found and at[0] + ints[i, 0] > 0 and (goes_on or not is_last):
            until = INF if is_last else t[i + 1]
            if not ((until <= end_by and t[i] <= start_by) or t[i] < promised):
                found = True
                start[g[i]], end[g[i]] = t[i], until
                base[g[i], :] = at
        for m in range(width):
            at[m] += ints[i, m]
