"""The two-tier index of Algorithm R3 (in2t), as arrays by node number.

A node is a start and a payload. `ends[n, m]` is its end in input m, `out[n]` the end that was emitted. An event
that is not there ends where it starts, so that an insert, an adjust and a removal are all `old -> new`. Ends before
`since`, the CTI of the output, are no longer used and may be anything.
"""

import numpy as np
from numba import njit

from cedr.temporal.time import INF

DUPLICATE, UNKNOWN = 1, 2


@njit(cache=True)
def work_in(node, vs, old, new, ends, port, since):
    """Give the nodes their new ends in one input.

    Returns the first row that cannot be, why, and the end that is known; then nothing is worked in. -1 if all can.
    """
    before = np.empty(len(node), dtype=np.int64)
    for i in range(len(node)):
        n = node[i]
        if n < 0:
            continue
        known = ends[n, port]
        there = known > vs[i] and known >= since
        why = 0
        if there and old[i] == vs[i]:
            why = DUPLICATE
        elif there and old[i] >= since and known != old[i]:
            why = UNKNOWN
        if why:
            for j in range(i - 1, -1, -1):
                if node[j] >= 0:
                    ends[node[j], port] = before[j]
            return i, why, known
        before[i] = known
        ends[n, port] = new[i]
    return -1, 0, 0


@njit(cache=True)
def emit_new(node, start, out, ends, attached, port, since, needed):
    """Of the touched nodes, emit those not emitted yet that `needed` inputs have: rows, old and new ends."""
    rows = np.empty(len(node), dtype=np.int64)
    size = 0
    for i in range(len(node)):
        n = node[i]
        if n < 0 or start[n] < since or out[n] != start[n] or ends[n, port] == start[n]:
            continue
        if needed > 1:
            having = 0
            for m in range(ends.shape[1]):
                having += attached[m] and ends[n, m] != start[n]
            if having < needed:
                continue
        out[n] = ends[n, port]
        rows[size] = i
        size += 1
    return rows[:size]


@njit(cache=True)
def emit_changes(node, start, out, ends, port, since):
    """Make the touched nodes as this input has them, as far as the output's CTI allows."""
    rows = np.empty(len(node), dtype=np.int64)
    old = np.empty(len(node), dtype=np.int64)
    size = 0
    for i in range(len(node)):
        n = node[i]
        if n < 0 or out[n] == ends[n, port] or min(out[n], ends[n, port]) < since:
            continue
        rows[size] = i
        old[size] = out[n]
        out[n] = ends[n, port]
        size += 1
    return rows[:size], old[:size]


@njit(cache=True)
def contradiction(start, alive, end, since):
    """A node that is half frozen in the output and, according to these ends, never was or ended before; -1 if none."""
    for n in range(len(start)):
        if alive[n] and start[n] < since and end[n] < since:
            return n
    return -1


@njit(cache=True)
def freeze(start, alive, out, end, t):
    """Make the output fit these ends where CTI t would make a difference final; what is fully frozen dies.

    Returns the nodes whose end changes, and their old ends.
    """
    nodes = np.empty(len(start), dtype=np.int64)
    old = np.empty(len(start), dtype=np.int64)
    size = 0
    for n in range(len(start)):
        if not alive[n] or start[n] >= t:
            continue
        final = t == INF or end[n] < t
        if end[n] != out[n] and (final or out[n] < t):
            nodes[size] = n
            old[size] = out[n]
            size += 1
            out[n] = end[n]
        if final:
            alive[n] = False
    return nodes[:size], old[:size]
