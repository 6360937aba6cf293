"""Counting for a merge of inputs that send the same events in different order."""

import numpy as np
from numba import njit


@njit(cache=True)
def more_often(numbers, counts, port):
    """Which events `port` has now sent more often than the output, whose count is in the last column."""
    out = counts.shape[1] - 1
    new = np.zeros(len(numbers), dtype=np.bool_)
    for i in range(len(numbers)):
        n = numbers[i]
        counts[n, port] += 1
        if counts[n, port] > counts[n, out]:
            counts[n, out] += 1
            new[i] = True
    return new
