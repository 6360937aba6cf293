"""Sessions of sorted starts."""

import numpy as np
from numba import njit


@njit(cache=True)
def sessions(g, vs, timeout):
    """The first start and the last start of the session of each tuple; tuples are sorted by group and start."""
    n = len(g)
    first = np.empty(n, dtype=np.int64)
    last = np.empty(n, dtype=np.int64)
    begin = 0
    for i in range(n):
        first[i] = vs[i] if i == begin else first[begin]
        ends = i + 1 == n or g[i + 1] != g[i]
        if not ends:
            distance = vs[i + 1] - vs[i]
            ends = distance >= timeout or distance < 0  # a distance that leaves 64 bits
        if ends:
            last[begin : i + 1] = vs[i]
            begin = i + 1
    return first, last
