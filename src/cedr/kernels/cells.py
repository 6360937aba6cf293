"""Cells: rows of a chunk with the same group and lifetime, taken together before anything is sorted.

Windows on a grid give thousands of rows the same lifetime. Their weights can be added up first; of their values only
the best one matters for an extreme, as long as nothing is taken back.
"""

import numpy as np
from numba import njit


@njit(cache=True)
def cells(g, vs, new, ints, best, known, is_max):
    """The inserts of a chunk by (group, start, end): weights summed, best values kept; `known` is false for nulls."""
    n = len(g)
    capacity = 1 << max(int(np.ceil(np.log2(2 * n + 2))), 4)
    mask = np.uint64(capacity - 1)
    slots = np.full(capacity, -1, dtype=np.int64)
    cg = np.empty(n, dtype=np.int64)
    cvs = np.empty(n, dtype=np.int64)
    cnew = np.empty(n, dtype=np.int64)
    ci = np.empty((n, ints.shape[1]), dtype=np.int64)
    cb = np.empty((n, best.shape[1]), dtype=np.int64)
    ck = np.empty((n, best.shape[1]), dtype=np.bool_)
    size = 0
    for i in range(n):
        mixed = np.uint64(g[i]) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(vs[i]) * np.uint64(0xC2B2AE3D27D4EB4F)
        mixed = (mixed ^ (mixed >> np.uint64(29))) + np.uint64(new[i]) * np.uint64(0x165667B19E3779F9)
        slot = (mixed ^ (mixed >> np.uint64(32))) & mask
        while True:
            c = slots[slot]
            if c < 0 or (cg[c] == g[i] and cvs[c] == vs[i] and cnew[c] == new[i]):
                break
            slot = (slot + np.uint64(1)) & mask
        if c < 0:
            c = size
            size += 1
            slots[slot] = c
            cg[c], cvs[c], cnew[c] = g[i], vs[i], new[i]
            for m in range(ints.shape[1]):
                ci[c, m] = ints[i, m]
            for m in range(best.shape[1]):
                cb[c, m], ck[c, m] = best[i, m], known[i, m]
            continue
        for m in range(ints.shape[1]):
            ci[c, m] += ints[i, m]
        for m in range(best.shape[1]):
            if known[i, m] and (not ck[c, m] or (best[i, m] > cb[c, m]) == is_max[m]):
                cb[c, m], ck[c, m] = best[i, m], True
    return cg[:size], cvs[:size], cnew[:size], ci[:size], cb[:size], ck[:size]
