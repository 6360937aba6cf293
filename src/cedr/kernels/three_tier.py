"""The three-tier index of Algorithm R4 (in3t), as arrays: by node and input a list of ends with their counts.

A node is a start and a payload. `head[n, m]` is the first cell of input m, the last column is that of the output; cells
`(end, count, following)` lie in one pool. Only ends at or after the output's CTI are kept: what ended before it is
settled and the same everywhere. Lists are short, as copies of one start and payload are few.

The pool is three arrays and `free`: the first unused cell, and how many are in use. `following` links unused cells.
"""

import numpy as np
from numba import njit

from cedr.temporal.time import INF

NONE = -1


@njit(cache=True)
def link_free(following, first, free):
    """Cells from `first` on are unused."""
    for c in range(first, len(following)):
        following[c] = c + 1 if c + 1 < len(following) else free[0]
    if first < len(following):
        free[0] = first


@njit(cache=True)
def give_back(following, free, cell):
    following[cell] = free[0]
    free[0] = cell
    free[1] -= 1


@njit(cache=True)
def find(end, following, cell, value):
    while cell != NONE and end[cell] != value:
        cell = following[cell]
    return cell


@njit(cache=True)
def add(head, end, count, following, free, n, m, value):
    """One more copy that ends there."""
    cell = find(end, following, head[n, m], value)
    if cell == NONE:
        cell = free[0]
        free[0] = following[cell]
        free[1] += 1
        end[cell], count[cell], following[cell] = value, 0, head[n, m]
        head[n, m] = cell
    count[cell] += 1


@njit(cache=True)
def take(head, end, count, following, free, n, m, value):
    """One copy less, if there is one."""
    before, cell = NONE, head[n, m]
    while cell != NONE and end[cell] != value:
        before, cell = cell, following[cell]
    if cell == NONE:
        return
    count[cell] -= 1
    if count[cell] == 0:
        if before == NONE:
            head[n, m] = following[cell]
        else:
            following[before] = following[cell]
        give_back(following, free, cell)


@njit(cache=True)
def total(count, following, cell):
    copies = 0
    while cell != NONE:
        copies += count[cell]
        cell = following[cell]
    return copies


@njit(cache=True)
def clear(head, following, free, n, m):
    """Give back all cells of a list."""
    cell = head[n, m]
    while cell != NONE:
        after = following[cell]
        give_back(following, free, cell)
        cell = after
    head[n, m] = NONE


@njit(cache=True)
def drop_before(head, end, count, following, free, n, m, t):
    """Give back the cells of ends before t."""
    before, cell = NONE, head[n, m]
    while cell != NONE:
        after = following[cell]
        if end[cell] < t:
            if before == NONE:
                head[n, m] = after
            else:
                following[before] = after
            give_back(following, free, cell)
        else:
            before = cell
        cell = after


@njit(cache=True)
def surplus(end, count, following, mine, others):
    """The ends, in order, that one list has more often than another, repeated by the difference."""
    copies = 0
    cell = mine
    while cell != NONE:
        other = find(end, following, others, end[cell])
        copies += max(0, count[cell] - (count[other] if other != NONE else 0))
        cell = following[cell]
    found = np.empty(copies, dtype=np.int64)
    if copies == 0:
        return found
    size = 0
    cell = mine
    while cell != NONE:
        other = find(end, following, others, end[cell])
        for _ in range(count[cell] - (count[other] if other != NONE else 0)):
            found[size] = end[cell]
            size += 1
        cell = following[cell]
    found.sort()
    return found


@njit(cache=True)
def appended(emitted, size, place, old, new):
    """The list of emitted changes with one more."""
    if size == emitted.shape[1]:
        bigger = np.empty((3, 2 * size), dtype=np.int64)
        bigger[:, :size] = emitted
        emitted = bigger
    emitted[0, size], emitted[1, size], emitted[2, size] = place, old, new
    return emitted


@njit(cache=True)
def fit(head, end, count, following, free, n, m, start, t, place, emitted, size):
    """Make the output of a node agree with an input on the number of events and on ends before t.

    Wrong ends become right ones, the smallest first; missing events are then emitted, surplus ones removed.
    """
    out = head.shape[1] - 1
    right = surplus(end, count, following, head[n, m], head[n, out])
    wrong = surplus(end, count, following, head[n, out], head[n, m])
    for i in range(max(len(right), len(wrong))):
        r, w = i - max(0, len(wrong) - len(right)), i - max(0, len(right) - len(wrong))
        old = wrong[w] if w >= 0 else start
        new = right[r] if r >= 0 else start
        if min(old, new) >= t and t != INF:
            break
        if old != start:
            take(head, end, count, following, free, n, out, old)
        if new != start:
            add(head, end, count, following, free, n, out, new)
        emitted = appended(emitted, size, place, old, new)
        size += 1
    return emitted, size


@njit(cache=True)
def work_in(node, vs, old, new, head, end, count, following, free, port, since):
    for i in range(len(node)):
        n = node[i]
        if n < 0:
            continue
        if old[i] != vs[i] and old[i] >= since:
            take(head, end, count, following, free, n, port, old[i])
        if new[i] != vs[i] and new[i] >= since:
            add(head, end, count, following, free, n, port, new[i])


@njit(cache=True)
def emit_new(node, start, head, end, count, following, free, attached, port, since, needed):
    """For the touched nodes, emit as many events as this input has, or as `needed` inputs have."""
    ports = head.shape[1] - 1
    emitted = np.empty((3, max(len(node), 1)), dtype=np.int64)
    size = 0
    totals = np.zeros(ports, dtype=np.int64)
    for i in range(len(node)):
        n = node[i]
        if n < 0 or start[n] < since:
            continue
        expected = total(count, following, head[n, port])
        if needed > 1:
            for m in range(ports):
                totals[m] = total(count, following, head[n, m]) if attached[m] else 0
            expected = min(expected, np.sort(totals)[ports - needed])
        missing = expected - total(count, following, head[n, ports])
        if missing <= 0:
            continue
        right = surplus(end, count, following, head[n, port], head[n, ports])
        for k in range(min(missing, len(right))):
            add(head, end, count, following, free, n, ports, right[k])
            emitted = appended(emitted, size, i, start[n], right[k])
            size += 1
    return emitted[:, :size]


@njit(cache=True)
def emit_changes(node, start, head, end, count, following, free, port, since):
    """Make the touched nodes as this input has them, as far as the output's CTI allows."""
    out = head.shape[1] - 1
    emitted = np.empty((3, max(len(node), 1)), dtype=np.int64)
    size = 0
    for i in range(len(node)):
        n = node[i]
        if n < 0:
            continue
        if start[n] < since:
            same = total(count, following, head[n, port]) == total(count, following, head[n, out])
            if not same:
                continue
        emitted, size = fit(head, end, count, following, free, n, port, start[n], INF, i, emitted, size)
    return emitted[:, :size]


@njit(cache=True)
def contradiction(start, alive, head, count, following, port, since):
    """A node of which the output has another number of half frozen events than this input; -1 if there is none."""
    out = head.shape[1] - 1
    for n in range(len(start)):
        if not alive[n] or start[n] >= since:
            continue
        if total(count, following, head[n, port]) != total(count, following, head[n, out]):
            return n
    return -1


@njit(cache=True)
def freeze(start, alive, head, end, count, following, free, port, t):
    """Make the output fit an input where CTI t would make a difference final, and drop what is settled then."""
    out = head.shape[1] - 1
    emitted = np.empty((3, 16), dtype=np.int64)
    size = 0
    for n in range(len(start)):
        if not alive[n] or start[n] >= t:
            continue
        emitted, size = fit(head, end, count, following, free, n, port, start[n], t, n, emitted, size)
        for m in range(out + 1):
            drop_before(head, end, count, following, free, n, m, t)
        if t == INF or head[n, out] == NONE:
            alive[n] = False
            for m in range(out + 1):
                clear(head, following, free, n, m)
    return emitted[:, :size]


@njit(cache=True)
def forget(head, following, free, port):
    for n in range(len(head)):
        clear(head, following, free, n, port)
