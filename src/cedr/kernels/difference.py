"""The net change between two answers: what to put out so that consumers of the old one have the new one.

An answer is a list of events sorted by (group, start): group, start, end, and the output values as 64-bit words. Events
with the same group, start and values are one event whose end may have changed; others are removed and inserted. Of
several events with the same group and start, equal ones are matched first.
"""

import numpy as np
from numba import njit


@njit(cache=True)
def same_values(a, i, b, j):
    for m in range(a.shape[1]):  # noqa: SIM110 compiled code has no generators
        if a[i, m] != b[j, m]:
            return False
    return True


@njit(cache=True)
def net_change(og, os, oe, ov, ng, ns, ne, nv):
    """Rows `(source, start, end before, end after)`; source i >= 0 is new event i, source < 0 is old event -1 - i."""
    capacity = len(og) + len(ng)
    source = np.empty(capacity, dtype=np.int64)
    start = np.empty(capacity, dtype=np.int64)
    before = np.empty(capacity, dtype=np.int64)
    after = np.empty(capacity, dtype=np.int64)
    taken = np.zeros(len(ng), dtype=np.bool_)
    size = i = j = 0
    while i < len(og) or j < len(ng):
        if j == len(ng) or (i < len(og) and (og[i] < ng[j] or (og[i] == ng[j] and os[i] < ns[j]))):
            source[size], start[size], before[size], after[size] = -1 - i, os[i], oe[i], os[i]
            i += 1
            size += 1
            continue
        if i == len(og) or ng[j] < og[i] or ns[j] < os[i]:
            source[size], start[size], before[size], after[size] = j, ns[j], ns[j], ne[j]
            j += 1
            size += 1
            continue
        group, at = og[i], os[i]
        last_i, last_j = i, j
        while last_i < len(og) and og[last_i] == group and os[last_i] == at:
            last_i += 1
        while last_j < len(ng) and ng[last_j] == group and ns[last_j] == at:
            last_j += 1
        if last_i - i == 1 and last_j - j == 1:  # the common case
            if same_values(ov, i, nv, j):
                if oe[i] != ne[j]:
                    source[size], start[size], before[size], after[size] = j, at, oe[i], ne[j]
                    size += 1
            else:
                source[size], start[size], before[size], after[size] = -1 - i, at, oe[i], at
                source[size + 1], start[size + 1], before[size + 1], after[size + 1] = j, at, at, ne[j]
                size += 2
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
                        if not exact:
                            source[size], start[size], before[size], after[size] = y, at, oe[x], ne[y]
                            size += 1
                        break
        for x in range(i, last_i):
            if not matched[x - i]:
                source[size], start[size], before[size], after[size] = -1 - x, at, oe[x], at
                size += 1
        for y in range(j, last_j):
            if not taken[y]:
                source[size], start[size], before[size], after[size] = y, at, at, ne[y]
                size += 1
        i, j = last_i, last_j
    return source[:size], start[:size], before[:size], after[:size]
