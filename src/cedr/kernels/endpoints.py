"""Sorted end points: the state of every operator that works snapshot by snapshot.

An entry `(g, t)` describes the tuples of group g that start or end at time t: their number `k`, and by how much the
weights of what is live change there. Running sums over the entries of a group give the content of each snapshot. A
chunk becomes sorted changes, which one linear pass merges into the sorted state.

Weights are whole numbers. Sums of other numbers are made of such weights, too (`exact`), so taking a value out again
leaves no trace, and the order of arrival none either.

Limits of time are arrays by group, or of length 1 if they are the same for all groups.
"""

import numpy as np
from numba import njit

from cedr.kernels.sorting import argsort_by_group_and_time
from cedr.temporal.time import INF


def empty_endpoints(n_ints):
    return (
        np.empty(0, dtype=np.int64),
        np.empty(0, dtype=np.int64),
        np.empty(0, dtype=np.int64),
        np.empty((0, n_ints), dtype=np.int64),
    )


def changes_of(g, vs, old, new, copies, ints):
    """The sorted changes of end points that rows of `copies` tuples make, with their weights."""
    both_g = np.concatenate((g, g))
    both_t = np.concatenate((old, new))
    order = argsort_by_group_and_time(both_g, both_t)
    return collect_changes(order, g, vs, old, new, copies, ints)


@njit(cache=True)
def collect_changes(order, g, vs, old, new, copies, ints):
    """A row raises what is live from `old` on and lowers it from `new` on; changes at one (g, t) become one."""
    n, n_ints = len(order), ints.shape[1]
    rows = len(g)
    cg = np.empty(n, dtype=np.int64)
    ct = np.empty(n, dtype=np.int64)
    ck = np.empty(n, dtype=np.int64)
    ci = np.empty((n, n_ints), dtype=np.int64)
    size = -1
    for o in order:
        row = o if o < rows else o - rows
        start_of_change = o < rows
        t = old[row] if start_of_change else new[row]
        sign = 1 if start_of_change else -1
        # An end point appears where the tuple now starts or ends, and disappears where it did before.
        k = sign * copies[row] if t == vs[row] else -sign * copies[row]
        if size < 0 or cg[size] != g[row] or ct[size] != t:
            size += 1
            cg[size], ct[size], ck[size] = g[row], t, k
            for j in range(n_ints):
                ci[size, j] = sign * ints[row, j]
            continue
        ck[size] += k
        for j in range(n_ints):
            ci[size, j] += sign * ints[row, j]
    size += 1
    return cg[:size], ct[:size], ck[:size], ci[:size]


@njit(cache=True)
def merge(ag, at, ak, ai, bg, bt, bk, bi):
    """State and changes, both sorted, as one state; entries without end points are gone."""
    n = len(ag) + len(bg)
    n_ints = ai.shape[1]
    g = np.empty(n, dtype=np.int64)
    t = np.empty(n, dtype=np.int64)
    k = np.empty(n, dtype=np.int64)
    ints = np.empty((n, n_ints), dtype=np.int64)
    i = j = size = 0
    while i < len(ag) or j < len(bg):
        if j == len(bg) or (i < len(ag) and (ag[i] < bg[j] or (ag[i] == bg[j] and at[i] < bt[j]))):
            g[size], t[size], k[size] = ag[i], at[i], ak[i]
            for m in range(n_ints):
                ints[size, m] = ai[i, m]
            i += 1
            size += 1
            continue
        both = i < len(ag) and ag[i] == bg[j] and at[i] == bt[j]
        g[size], t[size], k[size] = bg[j], bt[j], bk[j]
        for m in range(n_ints):
            ints[size, m] = bi[j, m]
        if both:
            k[size] += ak[i]
            for m in range(n_ints):
                ints[size, m] += ai[i, m]
            i += 1
        j += 1
        if k[size] != 0:
            size += 1
    return g[:size], t[:size], k[:size], ints[:size]


@njit(cache=True)
def snapshots(g, t, ints, end_by, start_by, promised, goes_on):
    """The snapshots to emit, in order: entry, group, start, end, and the sums of what is live during each.

    Emitted are snapshots that end by `end_by` and start by `start_by`; and those that start before a promised time,
    which stay emitted even if their end has moved past the watermark. Integer column 0 counts the live tuples.

    `goes_on`: groups may have entries behind their last one, later than `end_by`, which are elsewhere. The snapshot
    from a last entry on then has an end that is not known here.

    Then comes `held`: by group the earliest start of a snapshot that is not emitted, or INF. Last come the groups of
    which the end of a snapshot has to be known, as it starts before a promised time.
    """
    n, n_ints = len(g), ints.shape[1]
    by_group = len(end_by) > 1
    held = np.full(len(end_by), INF, dtype=np.int64)
    entry = np.empty(n, dtype=np.int64)
    out_g = np.empty(n, dtype=np.int64)
    start = np.empty(n, dtype=np.int64)
    end = np.empty(n, dtype=np.int64)
    sum_ints = np.empty((n, n_ints), dtype=np.int64)
    at_int = np.zeros(n_ints, dtype=np.int64)
    unknown = np.empty(n if goes_on else 0, dtype=np.int64)
    size = missing = 0
    x = g[0] if by_group and n else 0
    for i in range(n):
        for m in range(n_ints):
            at_int[m] += ints[i, m]
        is_last = i + 1 == n or g[i + 1] != g[i]
        if at_int[0] > 0 and not is_last:
            if (t[i + 1] <= end_by[x] and t[i] <= start_by[x]) or t[i] < promised[x]:
                entry[size], out_g[size], start[size], end[size] = i, g[i], t[i], t[i + 1]
                for m in range(n_ints):
                    sum_ints[size, m] = at_int[m]
                size += 1
            else:
                held[x] = min(held[x], t[i])
        elif at_int[0] > 0 and goes_on:
            if t[i] < promised[x]:
                unknown[missing] = g[i]
                missing += 1
            else:
                held[x] = min(held[x], t[i])
        if is_last:
            at_int[:] = 0
            x = g[i + 1] if by_group and i + 1 < n else 0
    return entry[:size], out_g[:size], start[:size], end[:size], sum_ints[:size], held, unknown[:missing]


@njit(cache=True)
def live_copies(g, ints):
    """How many tuples of each integer column are live from each entry on, up to the next."""
    copies = np.empty(ints.shape, dtype=np.int64)
    at = np.zeros(ints.shape[1], dtype=np.int64)
    for i in range(len(g)):
        if i == 0 or g[i] != g[i - 1]:
            at[:] = 0
        for m in range(len(at)):
            at[m] += ints[i, m]
            copies[i, m] = at[m]
    return copies


@njit(cache=True)
def fold(g, t, k, ints, before):
    """Forget what lies before a time: of each group, the last entry before it takes over the sums of those before.

    A group in which nothing is live then loses that entry, too, and before infinity every group loses all.
    Works in place and returns views.
    """
    n, n_ints = len(g), ints.shape[1]
    out = 0
    i = 0
    while i < n:
        j = i
        limit = before[g[i]] if len(before) > 1 else before[0]
        if limit == INF:
            while i < n and g[i] == g[j]:
                i += 1
            continue
        while j + 1 < n and g[j + 1] == g[i] and t[j + 1] < limit:
            j += 1
        if t[i] < limit:  # entries i..j of this group lie before
            for x in range(i, j):
                for m in range(n_ints):
                    ints[j, m] += ints[x, m]
            live = False
            for m in range(n_ints):
                live = live or ints[j, m] != 0
            i = j if live else j + 1
        while i < n and (i == j or g[i] == g[j]):
            g[out], t[out], k[out] = g[i], t[i], k[i]
            for m in range(n_ints):
                ints[out, m] = ints[i, m]
            out += 1
            i += 1
    return g[:out], t[:out], k[:out], ints[:out]


@njit(cache=True)
def earliest_open(g, t, ints, watermark, promised, goes_on):
    """By group the earliest start from `promised` on of a snapshot that began by the watermark and has not ended.
    `goes_on`: as in `snapshots`."""
    by_group = len(watermark) > 1
    earliest = np.full(len(watermark), INF, dtype=np.int64)
    live = 0
    x = g[0] if by_group and len(g) else 0
    for i in range(len(g)):
        live += ints[i, 0]
        is_last = i + 1 == len(g) or g[i + 1] != g[i]
        is_open = goes_on if is_last else watermark[x] < t[i + 1]
        if is_open and promised[x] <= t[i] <= watermark[x] and live > 0:
            earliest[x] = min(earliest[x], t[i])
        if is_last:
            live = 0
            x = g[i + 1] if by_group and i + 1 < len(g) else 0
    return earliest
