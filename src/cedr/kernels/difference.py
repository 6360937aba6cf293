"""The net change between two answers: what to emit so that consumers of the old one get the new one.

An answer is a list of events sorted by (group, start): group, start, end, and the output values as 64-bit words. Events
with the same group, start and values are one event whose end may have changed; others are removed and inserted. Of
several events with the same group and start, equal ones are matched first.

Limits of time are arrays by group, or of length 1 if they are the same for all groups.
"""

import numpy as np
from numba import njit

from cedr.temporal.time import INF


@njit(cache=True)
def same_values(a, i, b, j):
    for m in range(a.shape[1]):  # noqa: SIM110 compiled code has no generators
        if a[i, m] != b[j, m]:
            return False
    return True


@njit(cache=True)
def net_change(og, os, oe, ov, ng, ns, ne, nv, reached):
    """Group, values, start, end before and end after of each event that differs.

    An end changes when time has `reached` the earlier of its old and new value, which is the sync time of that change.
    Until then the event keeps the end it was emitted with, and `ne` is set to it.
    """
    capacity = len(og) + len(ng)
    group = np.empty(capacity, dtype=np.int64)
    values = np.empty((capacity, ov.shape[1]), dtype=np.int64)
    start = np.empty(capacity, dtype=np.int64)
    before = np.empty(capacity, dtype=np.int64)
    after = np.empty(capacity, dtype=np.int64)
    taken = np.zeros(len(ng), dtype=np.bool_)
    size = i = j = 0
    while i < len(og) or j < len(ng):
        if j == len(ng) or (i < len(og) and (og[i] < ng[j] or (og[i] == ng[j] and os[i] < ns[j]))):
            size = put(group, values, start, before, after, size, og[i], ov, i, os[i], oe[i], os[i])
            i += 1
            continue
        if i == len(og) or ng[j] < og[i] or ns[j] < os[i]:
            size = put(group, values, start, before, after, size, ng[j], nv, j, ns[j], ns[j], ne[j])
            j += 1
            continue
        g, at = og[i], os[i]
        limit = reached[g] if len(reached) > 1 else reached[0]
        last_i, last_j = i + 1, j + 1
        while last_i < len(og) and og[last_i] == g and os[last_i] == at:
            last_i += 1
        while last_j < len(ng) and ng[last_j] == g and ns[last_j] == at:
            last_j += 1
        if last_i - i == 1 and last_j - j == 1:  # the common case
            if same_values(ov, i, nv, j):
                if min(oe[i], ne[j]) > limit:
                    ne[j] = oe[i]
                elif oe[i] != ne[j]:
                    size = put(group, values, start, before, after, size, g, nv, j, at, oe[i], ne[j])
            else:
                size = put(group, values, start, before, after, size, g, ov, i, at, oe[i], at)
                size = put(group, values, start, before, after, size, g, nv, j, at, at, ne[j])
            i, j = last_i, last_j
            continue
        matched = np.zeros(last_i - i, dtype=np.bool_)
        for exact in (True, False):
            for x in range(i, last_i):
                if matched[x - i]:
                    continue
                for y in range(j, last_j):
                    if not taken[y] and same_values(ov, x, nv, y) and (oe[x] == ne[y]) == exact:
                        taken[y] = True
                        matched[x - i] = True
                        if min(oe[x], ne[y]) > limit:
                            ne[y] = oe[x]
                        elif not exact:
                            size = put(group, values, start, before, after, size, g, nv, y, at, oe[x], ne[y])
                        break
        for x in range(i, last_i):
            if not matched[x - i]:
                size = put(group, values, start, before, after, size, g, ov, x, at, oe[x], at)
        for y in range(j, last_j):
            if not taken[y]:
                size = put(group, values, start, before, after, size, g, nv, y, at, at, ne[y])
        i, j = last_i, last_j
    return group[:size], values[:size], start[:size], before[:size], after[:size]


@njit(cache=True)
def put(group, values, start, before, after, size, g, source, row, at, was, now):
    group[size], start[size], before[size], after[size] = g, at, was, now
    for m in range(values.shape[1]):
        values[size, m] = source[row, m]
    return size + 1


@njit(cache=True)
def ending_from(g, start, end, words, time):
    """The events that do not end before a time; before infinity all do."""
    keep = 0
    for i in range(len(g)):
        limit = time[g[i]] if len(time) > 1 else time[0]
        if end[i] >= limit and limit != INF:
            keep += 1
    out_g = np.empty(keep, dtype=np.int64)
    out_start = np.empty(keep, dtype=np.int64)
    out_end = np.empty(keep, dtype=np.int64)
    out_words = np.empty((keep, words.shape[1]), dtype=np.int64)
    size = 0
    for i in range(len(g)):
        limit = time[g[i]] if len(time) > 1 else time[0]
        if end[i] >= limit and limit != INF:
            out_g[size], out_start[size], out_end[size] = g[i], start[i], end[i]
            for m in range(words.shape[1]):
                out_words[size, m] = words[i, m]
            size += 1
    return out_g, out_start, out_end, out_words
