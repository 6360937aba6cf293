"""One hash of three words, for tables over (start, payload number, end)."""

import numpy as np
from numba import njit


@njit(cache=True, inline="always")
def mix(a, b, c):
    h = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(29)) ^ np.uint64(b)) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(32)) ^ np.uint64(c)) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))
