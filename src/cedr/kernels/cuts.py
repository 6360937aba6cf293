"""Two lists of ranges cut at each other's ends."""

import numpy as np
from numba import njit

INF = 2**63 - 1
MIN = -(2**63)


@njit(cache=True)
def cut_up(low, last, other_low, other_last):
    """Where one of two lists of ranges may change, and which range of each holds from there on, -1 for none.

    Ranges are in order and apart, both ends included; the first cut is the first number.
    """
    n, m = len(low), len(other_low)
    cuts = np.empty(2 * (n + m) + 1, dtype=np.int64)
    mine = np.empty(len(cuts), dtype=np.int64)
    theirs = np.empty(len(cuts), dtype=np.int64)
    size, i, j, at = 0, 0, 0, MIN
    while True:
        inside = i < n and low[i] <= at
        other_inside = j < m and other_low[j] <= at
        cuts[size] = at
        mine[size] = i if inside else -1
        theirs[size] = j if other_inside else -1
        size += 1
        end = (last[i] if inside else low[i] - 1) if i < n else INF
        other_end = (other_last[j] if other_inside else other_low[j] - 1) if j < m else INF
        if min(end, other_end) == INF:
            return cuts[:size], mine[:size], theirs[:size]
        at = min(end, other_end) + 1
        if inside and last[i] < at:
            i += 1
        if other_inside and other_last[j] < at:
            j += 1
