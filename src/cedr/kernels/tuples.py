"""Sorted tuples `(g, vs, ve, value)` with their number of copies, for what running sums cannot tell.

Extremes, first and last, quantiles and top-k need to know which tuples are live, not only how much of something. A
sweep over a group's end points keeps the live tuples in a heap; ended ones leave when they come to the top.
"""

import numpy as np
from numba import njit

from cedr.kernels.sorting import argsort_by_group_and_time


def empty_tuples():
    return tuple(np.empty(0, dtype=np.int64) for _ in range(5))


def tuple_changes(g, vs, old, new, value):
    """Which tuples a chunk's rows take away and bring, sorted, copies counted."""
    gone, come = old > vs, new > vs
    cg = np.concatenate((g[gone], g[come]))
    cvs = np.concatenate((vs[gone], vs[come]))
    cve = np.concatenate((old[gone], new[come]))
    cv = np.concatenate((value[gone], value[come]))
    cm = np.concatenate((np.full(gone.sum(), -1), np.full(come.sum(), 1)))
    order = argsort_by_group_and_time(cg, cvs)
    if same_start(order, cg, cvs):
        order = np.lexsort((cv, cve, cvs, cg))
    return merge_tuples(*empty_tuples(), cg[order], cvs[order], cve[order], cv[order], cm[order])


@njit(cache=True)
def same_start(order, g, vs):
    """Do two tuples of one group start together, so that ends and values must be sorted as well?"""
    for i in range(1, len(order)):
        a, b = order[i - 1], order[i]
        if g[a] == g[b] and vs[a] == vs[b]:
            return True
    return False


@njit(cache=True)
def precedes(ag, avs, ave, av, bg, bvs, bve, bv):
    if ag != bg:
        return ag < bg
    if avs != bvs:
        return avs < bvs
    if ave != bve:
        return ave < bve
    return av < bv


@njit(cache=True)
def merge_tuples(ag, avs, ave, av, am, bg, bvs, bve, bv, bm):
    """Two sorted lists of tuples as one; equal tuples add their copies, those without copies are gone."""
    n = len(ag) + len(bg)
    g = np.empty(n, dtype=np.int64)
    vs = np.empty(n, dtype=np.int64)
    ve = np.empty(n, dtype=np.int64)
    v = np.empty(n, dtype=np.int64)
    m = np.empty(n, dtype=np.int64)
    i = j = 0
    size = -1
    while i < len(ag) or j < len(bg):
        from_a = j == len(bg) or (
            i < len(ag) and not precedes(bg[j], bvs[j], bve[j], bv[j], ag[i], avs[i], ave[i], av[i])
        )
        if from_a:
            xg, xvs, xve, xv, xm = ag[i], avs[i], ave[i], av[i], am[i]
            i += 1
        else:
            xg, xvs, xve, xv, xm = bg[j], bvs[j], bve[j], bv[j], bm[j]
            j += 1
        if size >= 0 and g[size] == xg and vs[size] == xvs and ve[size] == xve and v[size] == xv:
            m[size] += xm
            continue
        if size < 0 or m[size] != 0:
            size += 1
        g[size], vs[size], ve[size], v[size], m[size] = xg, xvs, xve, xv, xm
    size = size + 1 if size >= 0 and m[size] != 0 else max(size, 0)
    return g[:size], vs[:size], ve[:size], v[:size], m[:size]


@njit(cache=True)
def push(heap, size, priority, item):
    place = size
    while place > 0 and priority[heap[(place - 1) // 2]] < priority[item]:
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = item
    return size + 1


@njit(cache=True)
def pop(heap, size, priority):
    size -= 1
    item = heap[size]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and priority[heap[child + 1]] > priority[heap[child]]:
            child += 1
        if priority[heap[child]] <= priority[item]:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = item
    return size


@njit(cache=True)
def foremost(g, t, tg, tvs, tve, priority):
    """For each end point, the live tuple with the highest priority, or -1."""
    best = np.full(len(g), -1, dtype=np.int64)
    heap = np.empty(len(tg), dtype=np.int64)
    size = next_tuple = 0
    for i in range(len(g)):
        if i == 0 or g[i] != g[i - 1]:
            size = 0
            while next_tuple < len(tg) and tg[next_tuple] < g[i]:
                next_tuple += 1
        while next_tuple < len(tg) and tg[next_tuple] == g[i] and tvs[next_tuple] <= t[i]:
            size = push(heap, size, priority, next_tuple)
            next_tuple += 1
        while size > 0 and tve[heap[0]] <= t[i]:
            size = pop(heap, size, priority)
        if size > 0:
            best[i] = heap[0]
    return best


@njit(cache=True)
def members(g, t, wanted, tg, tvs, tve, tm):
    """The live tuples at each wanted end point, copies repeated: offsets and tuple numbers."""
    offsets = np.zeros(len(wanted) + 1, dtype=np.int64)
    total = 0
    for fill in (False, True):
        if fill:
            found = np.empty(total, dtype=np.int64)
            total = 0
        first = 0
        for w in range(len(wanted)):
            i = wanted[w]
            while first < len(tg) and tg[first] < g[i]:
                first += 1
            x = first
            while x < len(tg) and tg[x] == g[i] and tvs[x] <= t[i]:
                if tve[x] > t[i]:
                    for _ in range(tm[x]):
                        if fill:
                            found[total] = x
                        total += 1
                x += 1
            offsets[w + 1] = total
    return offsets, found


@njit(cache=True)
def kth(offsets, found, rank, place):
    """In each list the tuple at its place, from 0, in the order of ranks; -1 for an empty list."""
    result = np.full(len(offsets) - 1, -1, dtype=np.int64)
    for w in range(len(result)):
        live = found[offsets[w] : offsets[w + 1]]
        if len(live):
            order = np.argsort(rank[live])
            result[w] = live[order[place[w]]]
    return result


@njit(cache=True)
def best_k(offsets, found, rank, k):
    """In each list the k tuples of lowest rank, in order: list number, tuple number, place from 1."""
    n = len(offsets) - 1
    which = np.empty(n * k, dtype=np.int64)
    chosen = np.empty(n * k, dtype=np.int64)
    place = np.empty(n * k, dtype=np.int64)
    size = 0
    for w in range(n):
        live = found[offsets[w] : offsets[w + 1]]
        order = np.argsort(rank[live])
        for p in range(min(k, len(live))):
            which[size], chosen[size], place[size] = w, live[order[p]], p + 1
            size += 1
    return which[:size], chosen[:size], place[:size]
