"""Chains: the adjusts of tuples with one start and payload, as edges between ends.

A row `(vs, old, new)` of a payload is an edge `old -> new`; an insert comes from nowhere and a removal leads nowhere.
Tuples are tokens on the ends; equal ones are indistinguishable. So a set of rows leads to the same tokens in whatever
order it is applied, and a row that starts where another ends can be joined with it.
"""

import numpy as np
from numba import njit

from cedr.kernels.mixing import mix

NOWHERE = -1


@njit(cache=True)
def nodes(vs, pid, old, new):
    """Each end as a small number: where rows come from, where they lead, and how many ends there are."""
    size = 16
    while size < 4 * len(vs):
        size *= 2
    owner = np.full(size, np.int64(-1))
    end_of = np.empty(2 * len(vs), dtype=np.int64)
    row_of = np.empty(2 * len(vs), dtype=np.int64)
    ends = np.full((2, len(vs)), np.int64(NOWHERE))
    count = 0
    for i in range(len(vs)):
        for side in range(2):
            end = old[i] if side == 0 else new[i]
            if end == vs[i]:
                continue
            slot = mix(vs[i], pid[i], end) & np.uint64(size - 1)
            while owner[slot] >= 0:
                node = owner[slot]
                row = row_of[node]
                if end_of[node] == end and vs[row] == vs[i] and pid[row] == pid[i]:
                    break
                slot = (slot + np.uint64(1)) & np.uint64(size - 1)
            if owner[slot] < 0:
                owner[slot] = count
                end_of[count] = end
                row_of[count] = i
                count += 1
            ends[side, i] = owner[slot]
    return ends[0], ends[1], count


@njit(cache=True)
def merge(source, target, count):
    """Join every row with an earlier one that ends where it starts.

    Returns, for each row, the row whose end it has in the end, and whether it is still there: joined rows are not, nor
    are rows that came back to where they started. A row keeps its place.
    """
    n = len(source)
    top = np.full(count, np.int64(-1))  # a stack of rows for each end
    below = np.full(n, np.int64(-1))
    last = np.arange(n)
    kept = np.ones(n, dtype=np.bool_)
    for i in range(n):
        row = i
        if source[i] != NOWHERE and top[source[i]] >= 0:
            row = top[source[i]]
            top[source[i]] = below[row]
            last[row] = i
            kept[i] = False
        if target[i] == source[row]:
            kept[row] = False
        elif target[i] != NOWHERE:
            below[row] = top[target[i]]
            top[target[i]] = row
    return last, kept


@njit(cache=True)
def on_cycles(source, target, count):
    """The edges of as many cycles as there are: what is left has none.

    A walk from each end along edges not yet used; where it meets itself the loop is cut out, where it cannot go on it
    steps back.
    """
    n = len(source)
    head = np.full(count, np.int64(-1))
    following = np.full(n, np.int64(-1))
    for i in range(n):
        following[i] = head[source[i]]
        head[source[i]] = i
    found = np.zeros(n, dtype=np.bool_)
    place = np.full(count, np.int64(-1))
    path = np.empty(count + 1, dtype=np.int64)
    edges = np.empty(count + 1, dtype=np.int64)
    for start in range(count):
        path[0] = start
        place[start] = 0
        depth = 0
        while depth >= 0:
            here = path[depth]
            edge = head[here]
            if edge < 0:
                place[here] = -1
                depth -= 1
                continue
            head[here] = following[edge]
            to = target[edge]
            if to == NOWHERE:
                continue
            if place[to] < 0:
                depth += 1
                path[depth] = to
                edges[depth] = edge
                place[to] = depth
                continue
            found[edge] = True
            while depth > place[to]:
                found[edges[depth]] = True
                place[path[depth]] = -1
                depth -= 1
    return found


@njit(cache=True)
def reachable(source, target, count, open_):
    """The edges that a token on an open end could still take, alone or after others; `open_` is given per edge."""
    reached = np.zeros(count, dtype=np.bool_)
    for i in range(len(source)):
        if open_[i]:
            reached[source[i]] = True
    changed = True
    while changed:
        changed = False
        for i in range(len(source)):
            if reached[source[i]] and target[i] != NOWHERE and not reached[target[i]]:
                reached[target[i]] = True
                changed = True
    result = np.empty(len(source), dtype=np.bool_)
    for i in range(len(source)):
        result[i] = reached[source[i]]
    return result
