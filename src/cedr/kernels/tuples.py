"""Sorted tuples `(g, vs, ve, value)` with their number of copies, for what running sums cannot answer.

Extremes, first and last, quantiles and top-k need to know which tuples are live, not only how much of something. A
sweep over a group's end points keeps the live tuples in a heap; ended ones leave when they reach the top.
"""

import numpy as np
from numba import njit

from cedr.kernels.sorting import argsort_by_group_and_time

FEW = 256
"""Up to this number of starting tuples are inserted one by one."""


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
def members(g, t, requested, tg, tvs, tve, tm):
    """The live tuples at each requested end point, copies repeated: offsets and tuple numbers."""
    offsets = np.zeros(len(requested) + 1, dtype=np.int64)
    total = 0
    for fill in (False, True):
        if fill:
            found = np.empty(total, dtype=np.int64)
            total = 0
        first = 0
        for w in range(len(requested)):
            i = requested[w]
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


def by_end(tg, tve):
    """The tuples by group and end, as the sweeps below need them."""
    return argsort_by_group_and_time(tg, tve)


@njit(cache=True)
def place_of(live, size, rank, item):
    """Where the item is or belongs among the live tuples, which are sorted by rank, then by number."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        other = live[middle]
        if rank[other] < rank[item] or (rank[other] == rank[item] and other < item):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def sweep(group, time, state, live, tg, tvs, tve, ends, rank):
    """Bring the live tuples to a later end point: `state` is their number, and which start and which end come next."""
    size, start, end = state
    if (start < len(tg) and tg[start] < group) or (end < len(tg) and tg[ends[end]] < group):
        size = 0
        while start < len(tg) and tg[start] < group:
            start += 1
        while end < len(tg) and tg[ends[end]] < group:
            end += 1
    many = start + max(FEW, size // 8)
    if many < len(tg) and tg[many] == group and tvs[many] <= time:
        return collected(group, time, (size, start, end), live, tg, tvs, tve, ends, rank)
    while start < len(tg) and tg[start] == group and tvs[start] <= time:
        if tve[start] > time:
            at = place_of(live, size, rank, start)
            live[at + 1 : size + 1] = live[at:size].copy()
            live[at] = start
            size += 1
        start += 1
    while end < len(tg) and tg[ends[end]] == group and tve[ends[end]] <= time:
        at = place_of(live, size, rank, ends[end])
        if at < size and live[at] == ends[end]:
            live[at : size - 1] = live[at + 1 : size].copy()
            size -= 1
        end += 1
    return size, start, end


@njit(cache=True)
def collected(group, time, state, live, tg, tvs, tve, ends, rank):
    """The same where many tuples start at once: they are sorted together, as each insertion moves those behind it."""
    size, start, end = state
    begun = start
    while begun < len(tg) and tg[begun] == group and tvs[begun] <= time:
        begun += 1
    numbers = np.concatenate((live[:size], np.arange(start, begun)))
    numbers = np.sort(numbers[tve[numbers] > time])
    size = len(numbers)
    live[:size] = numbers[np.argsort(rank[numbers], kind="mergesort")]
    while end < len(tg) and tg[ends[end]] == group and tve[ends[end]] <= time:
        end += 1
    return size, begun, end


@njit(cache=True)
def advance(w, g, t, requested, state, live, tg, tvs, tve, ends, rank):
    """Bring the live tuples from one requested end point to the next, `w`; a new group starts without any."""
    i = requested[w]
    if w > 0 and g[requested[w - 1]] != g[i]:
        state = (0, state[1], state[2])
    return sweep(g[i], t[i], state, live, tg, tvs, tve, ends, rank)


@njit(cache=True)
def kth(g, t, requested, tg, tvs, tve, tm, ends, rank, counts, place):
    """At each requested end point the live tuple at its place, from 0, in the order of ranks; -1 for none.

    The place is that for the number of live tuples, copies counted: `place[i]` for `counts[i]`, which is sorted.
    """
    result = np.full(len(requested), -1, dtype=np.int64)
    live = np.empty(len(tg) + 1, dtype=np.int64)
    state = (0, 0, 0)
    for w in range(len(requested)):
        state = advance(w, g, t, requested, state, live, tg, tvs, tve, ends, rank)
        total = 0
        for x in range(state[0]):
            total += tm[live[x]]
        if total == 0:
            continue
        left = place[np.searchsorted(counts, total)]
        for x in range(state[0]):
            left -= tm[live[x]]
            if left < 0:
                result[w] = live[x]
                break
    return result


@njit(cache=True)
def live_counts(g, t, requested, tg, tvs, tve, tm, ends):
    """How many tuples, copies counted, are live at each requested end point."""
    counts = np.zeros(len(requested), dtype=np.int64)
    start = end = live = 0
    for w in range(len(requested)):
        i = requested[w]
        if w > 0 and g[requested[w - 1]] != g[i]:
            live = 0
        while start < len(tg) and (tg[start] < g[i] or (tg[start] == g[i] and tvs[start] <= t[i])):
            live += tm[start] if tg[start] == g[i] else 0
            start += 1
        while end < len(tg) and (tg[ends[end]] < g[i] or (tg[ends[end]] == g[i] and tve[ends[end]] <= t[i])):
            live -= tm[ends[end]] if tg[ends[end]] == g[i] else 0
            end += 1
        counts[w] = live
    return counts


@njit(cache=True)
def distinct_counts(g, t, requested, tg, tvs, tve, tm, ends, rank):
    """The number of different ranks among the live tuples at each requested end point."""
    result = np.zeros(len(requested), dtype=np.int64)
    live = np.empty(len(tg) + 1, dtype=np.int64)
    state = (0, 0, 0)
    for w in range(len(requested)):
        state = advance(w, g, t, requested, state, live, tg, tvs, tve, ends, rank)
        for x in range(state[0]):
            if x == 0 or rank[live[x]] != rank[live[x - 1]]:
                result[w] += 1
    return result


@njit(cache=True)
def most_frequent(g, t, requested, tg, tvs, tve, tm, ends, rank):
    """A live tuple of the rank with the most copies at each requested end point, the lowest such rank; -1 for none."""
    result = np.full(len(requested), -1, dtype=np.int64)
    live = np.empty(len(tg) + 1, dtype=np.int64)
    state = (0, 0, 0)
    for w in range(len(requested)):
        state = advance(w, g, t, requested, state, live, tg, tvs, tve, ends, rank)
        most = copies = 0
        for x in range(state[0]):
            if x == 0 or rank[live[x]] != rank[live[x - 1]]:
                copies = 0
            copies += tm[live[x]]
            if copies > most:
                most = copies
                result[w] = live[x]
    return result


@njit(cache=True)
def best_k(g, t, requested, tg, tvs, tve, tm, ends, rank, k):
    """The k live tuples of lowest rank at each requested end point: its number, the tuple, its place from 1."""
    capacity = 4 * len(requested) + 16
    which = np.empty(capacity, dtype=np.int64)
    chosen = np.empty(capacity, dtype=np.int64)
    place = np.empty(capacity, dtype=np.int64)
    live = np.empty(len(tg) + 1, dtype=np.int64)
    state = (0, 0, 0)
    size = 0
    for w in range(len(requested)):
        state = advance(w, g, t, requested, state, live, tg, tvs, tve, ends, rank)
        taken = 0
        for x in range(state[0]):
            for _ in range(tm[live[x]]):
                if taken == k:
                    break
                if size == capacity:
                    capacity *= 2
                    which, chosen, place = grown(which, capacity), grown(chosen, capacity), grown(place, capacity)
                taken += 1
                which[size], chosen[size], place[size] = w, live[x], taken
                size += 1
            if taken == k:
                break
    return which[:size], chosen[:size], place[:size]


@njit(cache=True)
def grown(values, capacity):
    more = np.empty(capacity, dtype=np.int64)
    more[: len(values)] = values
    return more
