"""Supports: how many derivations each payload has at each instant, and where it holds for that.

Counts are sorted entries (payload, time, change). Holdings are sorted, disjoint, maximal intervals (payload, start,
end). A loop turns one into the other; see `cedr.operators.iterate`.
"""

import numpy as np
from numba import njit

from cedr.kernels.sorting import argsort_by_group_and_time
from cedr.temporal.time import INF


def nothing():
    """No entries, or no intervals."""
    return tuple(np.empty(0, dtype=np.int64) for _ in range(3))


def count_changes(p, low, high, sign):
    """Entries for payloads whose count changes by `sign` during [low, high)."""
    if (p[1:] > p[:-1]).all():  # mostly new ones, which have numbers in the order in which they come
        return np.repeat(p, 2), np.column_stack((low, high)).ravel(), np.column_stack((sign, -sign)).ravel()
    payload, t, change = np.concatenate((p, p)), np.concatenate((low, high)), np.concatenate((sign, -sign))
    order = argsort_by_group_and_time(payload, t)
    return merge(*nothing(), payload[order], t[order], change[order])


@njit(cache=True)
def merge(ap, at, ac, bp, bt, bc):
    """Two sorted lists of entries as one; changes at the same place are added up, and gone when they are 0."""
    n = len(ap) + len(bp)
    p = np.empty(n, dtype=np.int64)
    t = np.empty(n, dtype=np.int64)
    c = np.empty(n, dtype=np.int64)
    i = j = size = 0
    while i < len(ap) or j < len(bp):
        if j == len(bp) or (i < len(ap) and (ap[i] < bp[j] or (ap[i] == bp[j] and at[i] <= bt[j]))):
            xp, xt, xc = ap[i], at[i], ac[i]
            i += 1
        else:
            xp, xt, xc = bp[j], bt[j], bc[j]
            j += 1
        if size > 0 and p[size - 1] == xp and t[size - 1] == xt:
            c[size - 1] += xc
        else:
            if size > 0 and c[size - 1] == 0:
                size -= 1
            p[size], t[size], c[size] = xp, xt, xc
            size += 1
    if size > 0 and c[size - 1] == 0:
        size -= 1
    return p[:size].copy(), t[:size].copy(), c[:size].copy()


@njit(cache=True)
def fold(p, t, c, until):
    """Entries up to a time as one entry at it per payload."""
    out_p, out_t, out_c = p.copy(), t.copy(), c.copy()
    size = 0
    for i in range(len(p)):
        at = max(t[i], until)
        if size > 0 and out_p[size - 1] == p[i] and out_t[size - 1] == at:
            out_c[size - 1] += c[i]
        else:
            if size > 0 and out_c[size - 1] == 0:
                size -= 1
            out_p[size], out_t[size], out_c[size] = p[i], at, c[i]
            size += 1
    if size > 0 and out_c[size - 1] == 0:
        size -= 1
    return out_p[:size].copy(), out_t[:size].copy(), out_c[:size].copy()


@njit(cache=True)
def as_intervals(found):
    p = np.empty(len(found), dtype=np.int64)
    start = np.empty(len(found), dtype=np.int64)
    end = np.empty(len(found), dtype=np.int64)
    for i, (x, low, high) in enumerate(found):
        p[i], start[i], end[i] = x, low, high
    return p, start, end


@njit(cache=True)
def supported(t, c, begin, end, since):
    """When the count of one payload's entries is positive, from a time on."""
    found = [(np.int64(0), np.int64(0)) for _ in range(0)]
    count = 0
    for i in range(begin, end):
        before = count
        count += c[i]
        if before <= 0 < count:
            found.append((max(t[i], since), np.int64(INF)))
        elif count <= 0 < before:
            start = found.pop()[0]
            if start < t[i]:
                found.append((start, t[i]))
    return found


@njit(cache=True)
def all_supported(first, size, t, c, members, since):
    """When each member has support, from a time on: intervals in the order of members."""
    most = len(members)
    for x in members:
        most += size[x] // 2
    p = np.empty(most, dtype=np.int64)
    start = np.empty(most, dtype=np.int64)
    end = np.empty(most, dtype=np.int64)
    n = 0
    for x in members:
        count = 0
        for i in range(first[x], first[x] + size[x]):
            before = count
            count += c[i]
            if before <= 0 < count:
                p[n], start[n], end[n] = x, max(t[i], since), INF
                n += 1
            elif count <= 0 < before:
                if start[n - 1] < t[i]:
                    end[n - 1] = t[i]
                else:
                    n -= 1
    return p[:n].copy(), start[:n].copy(), end[:n].copy()


@njit(cache=True)
def best(first, size, t, c, members, groups, since):
    """When each member is the first of its group that has support, from a time on: intervals in the order of members.

    `members` are payloads by group, and in each group in the order in which they are preferred. The entries of x
    are the `size[x]` ones from `first[x]` on.
    """
    found = [(np.int64(0), np.int64(0), np.int64(0)) for _ in range(0)]
    free = [(np.int64(0), np.int64(0)) for _ in range(0)]  # when no better member has support
    for m in range(len(members)):
        x = members[m]
        if m == 0 or groups[m] != groups[m - 1]:
            free = [(np.int64(since), np.int64(INF))]
        for start, end in supported(t, c, first[x], first[x] + size[x], since):
            left = [(np.int64(0), np.int64(0)) for _ in range(0)]
            for low, high in free:
                if high <= start or low >= end:
                    left.append((low, high))
                    continue
                found.append((x, max(low, start), min(high, end)))
                if low < start:
                    left.append((low, start))
                if end < high:
                    left.append((end, high))
            free = left
    return as_intervals(found)


@njit(cache=True)
def without_support(first, size, t, c, p, low, high):
    """The parts of intervals during which their payload has no support."""
    found = [(np.int64(0), np.int64(0), np.int64(0)) for _ in range(0)]
    for n in range(len(p)):
        reached = low[n]
        for start, end in supported(t, c, first[p[n]], first[p[n]] + size[p[n]], low[n]):
            if start >= high[n]:
                break
            if reached < start:
                found.append((p[n], reached, start))
            reached = max(reached, end)
        if reached < high[n]:
            found.append((p[n], reached, high[n]))
    return as_intervals(found)


@njit(cache=True)
def union(p, start, end):
    """Intervals that are sorted by payload and start, with those that meet as one."""
    found = [(np.int64(0), np.int64(0), np.int64(0)) for _ in range(0)]
    for i in range(len(p)):
        if len(found) > 0 and found[-1][0] == p[i] and start[i] <= found[-1][2]:
            x, low, high = found.pop()
            found.append((x, low, max(high, end[i])))
        else:
            found.append((p[i], start[i], end[i]))
    return as_intervals(found)


@njit(cache=True)
def subtract(p, start, end, lp, low, high):
    """Intervals without the parts that others cover; both sorted and disjoint."""
    found = [(np.int64(0), np.int64(0), np.int64(0)) for _ in range(0)]
    other = 0
    for i in range(len(p)):
        while other < len(lp) and (lp[other] < p[i] or (lp[other] == p[i] and high[other] <= start[i])):
            other += 1
        reached, k = start[i], other
        while k < len(lp) and lp[k] == p[i] and low[k] < end[i]:
            if reached < low[k]:
                found.append((p[i], reached, low[k]))
            reached = high[k]
            k += 1
        if reached < end[i]:
            found.append((p[i], reached, end[i]))
    return as_intervals(found)


@njit(cache=True)
def end_changes(ap, astart, aend, bp, bstart, bend):
    """How ends change from one list of intervals to another: payload, start, old end, new end; where they differ."""
    n = len(ap) + len(bp)
    p = np.empty(n, dtype=np.int64)
    vs = np.empty(n, dtype=np.int64)
    old = np.empty(n, dtype=np.int64)
    new = np.empty(n, dtype=np.int64)
    i = j = size = 0
    while i < len(ap) or j < len(bp):
        gone = j == len(bp) or (i < len(ap) and (ap[i] < bp[j] or (ap[i] == bp[j] and astart[i] < bstart[j])))
        came = i == len(ap) or (j < len(bp) and (bp[j] < ap[i] or (ap[i] == bp[j] and bstart[j] < astart[i])))
        if gone:
            p[size], vs[size], old[size], new[size] = ap[i], astart[i], aend[i], astart[i]
        elif came:
            p[size], vs[size], old[size], new[size] = bp[j], bstart[j], bstart[j], bend[j]
        else:
            p[size], vs[size], old[size], new[size] = ap[i], astart[i], aend[i], bend[j]
        i += not came
        j += not gone
        size += old[size] != new[size]
    return p[:size], vs[:size], old[:size], new[:size]
