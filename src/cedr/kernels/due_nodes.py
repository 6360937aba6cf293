"""Nodes of a merge in the order of time: the rows that `cedr.operators.merge.due` keeps sorted.

A row is a list, a time, a node and 1. A live node that starts at or after the CTI is in the list `WAITING`, at its
start. Every other one is half frozen: it is in the list `OUT`, at its first end in the output, and in the lists of the
attached inputs that have other ends than the output.
"""

import numpy as np
from numba import njit

from cedr.kernels.three_tier import NONE, find, total

WAITING, OUT = 0, 1


@njit(cache=True)
def ends_list(m):
    """The list of nodes with other ends in an input than in the output, at the first end in the input."""
    return 2 + 2 * m


@njit(cache=True)
def count_list(m):
    """The list of nodes with another number of events in an input than in the output, at their start."""
    return 3 + 2 * m


@njit(cache=True)
def put(rows, n, which, time, node):
    rows[n, 0], rows[n, 1], rows[n, 2], rows[n, 3] = which, time, node, 1
    return n + 1


@njit(cache=True)
def rows_of_two_tier(nodes, start, alive, out, ends, attached, since):
    """The rows of nodes with one end per input (see `two_tier`), not sorted."""
    ports = ends.shape[1]
    rows = np.empty((len(nodes) * (1 + ports), 4), dtype=np.int64)
    size = 0
    for i in range(len(nodes)):
        n = nodes[i]
        if not alive[n]:
            continue
        if start[n] >= since:
            size = put(rows, size, WAITING, start[n], n)
            continue
        size = put(rows, size, OUT, out[n], n)
        for m in range(ports):
            if attached[m] and ends[n, m] != out[n]:
                size = put(rows, size, ends_list(m), ends[n, m], n)
    return rows[:size]


@njit(cache=True)
def rows_of_three_tier(nodes, start, alive, head, end, count, following, attached, since):
    """The rows of nodes with a list of ends per input (see `three_tier`), not sorted."""
    ports = head.shape[1] - 1
    rows = np.empty((len(nodes) * (1 + 2 * ports), 4), dtype=np.int64)
    size = 0
    for i in range(len(nodes)):
        n = nodes[i]
        if not alive[n]:
            continue
        if start[n] >= since:
            size = put(rows, size, WAITING, start[n], n)
            continue
        out = head[n, ports]
        if out != NONE:
            size = put(rows, size, OUT, first_end(end, following, out), n)
        copies = total(count, following, out)
        for m in range(ports):
            if not attached[m]:
                continue
            same_count = total(count, following, head[n, m]) == copies
            if not same_count:
                size = put(rows, size, count_list(m), start[n], n)
            if head[n, m] != NONE and not (same_count and has_all(end, count, following, head[n, m], out)):
                size = put(rows, size, ends_list(m), first_end(end, following, head[n, m]), n)
    return rows[:size]


@njit(cache=True)
def first_end(end, following, cell):
    """The first end of a list that has any."""
    first = end[cell]
    while cell != NONE:
        first = min(first, end[cell])
        cell = following[cell]
    return first


@njit(cache=True)
def has_all(end, count, following, cell, others):
    """Whether a list has the ends of another one, as often."""
    while cell != NONE:
        other = find(end, following, others, end[cell])
        if other == NONE or count[other] != count[cell]:
            return False
        cell = following[cell]
    return True
