"""Lists sorted by (group, start): merging them, and finding places in them."""

import numpy as np
from numba import njit

from cedr.kernels.instances import expanded


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
def first_from(g, vs, group, time):
    """The first place that is not before (group, time)."""
    low, high = 0, len(g)
    while low < high:
        middle = (low + high) // 2
        if g[middle] < group or (g[middle] == group and vs[middle] < time):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def distinct(g, vs):
    """The groups and starts of a sorted list, each pair once."""
    first = np.ones(len(g), dtype=np.bool_)
    for i in range(1, len(g)):
        first[i] = g[i] != g[i - 1] or vs[i] != vs[i - 1]
    return g[first], vs[first]


@njit(cache=True)
def stretches(g, vs, groups, low, high):
    """The places of each group's entries in [low, high], group after group, and the number of the group."""
    begin = np.empty(len(groups), dtype=np.int64)
    end = np.empty(len(groups), dtype=np.int64)
    for k in range(len(groups)):
        x = first_from(g, vs, groups[k], low[k])
        begin[k] = x
        while x < len(g) and g[x] == groups[k] and vs[x] <= high[k]:
            x += 1
        end[k] = x
    number, places = expanded(begin, end)
    return places, number


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
