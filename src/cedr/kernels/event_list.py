"""Lists sorted by (group, start): merging them, and what they contain."""

import numpy as np
from numba import njit


@njit(cache=True)
def merge_order(ag, avs, bg, bvs):
    """The order in which two sorted lists, one after the other, are sorted; equal ones of the first come first."""
    n, m = len(ag), len(bg)
    order = np.empty(n + m, dtype=np.int64)
    i = j = 0
    for k in range(n + m):
        if j == m or (i < n and (ag[i] < bg[j] or (ag[i] == bg[j] and avs[i] <= bvs[j]))):
            order[k] = i
            i += 1
        else:
            order[k] = n + j
            j += 1
    return order


@njit(cache=True)
def merged_column(a, b, order):
    """A column of two lists in the order of `merge_order`."""
    merged = np.empty(len(order), dtype=np.int64)
    for k in range(len(order)):
        merged[k] = a[order[k]] if order[k] < len(a) else b[order[k] - len(a)]
    return merged


@njit(cache=True)
def distinct(g, vs):
    """The groups and starts of a sorted list, each pair once."""
    first = np.ones(len(g), dtype=np.bool_)
    for i in range(1, len(g)):
        first[i] = g[i] != g[i - 1] or vs[i] != vs[i - 1]
    return g[first], vs[first]


@njit(cache=True)
def widen(g, low, high):
    """Ranges by group, in the order of groups, as one range for each."""
    groups = np.empty(len(g), dtype=np.int64)
    lows = np.empty(len(g), dtype=np.int64)
    highs = np.empty(len(g), dtype=np.int64)
    size = 0
    for i in range(len(g)):
        if size and groups[size - 1] == g[i]:
            lows[size - 1] = min(lows[size - 1], low[i])
            highs[size - 1] = max(highs[size - 1], high[i])
        else:
            groups[size], lows[size], highs[size] = g[i], low[i], high[i]
            size += 1
    return groups[:size].copy(), lows[:size].copy(), highs[:size].copy()
