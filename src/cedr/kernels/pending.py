"""Results that wait to be emitted, `(start, end, key, number of them)` in blocks, in the order of their starts."""

import numpy as np
from numba import njit

from cedr.kernels.blocks import end, next_row, row_at
from cedr.temporal.time import INF


@njit(cache=True)
def earliest_open(pool, entries, segments, numbers, watermark, over, promised):
    """As `levels.earliest_open`, for one group. Results before the one that is found are over, so most of them are
    emitted now and not read again."""
    b, i, last = 0, 0, end(numbers)
    while b < last:
        x = row_at(entries, segments, numbers, b, i)
        if pool[x, 0] > watermark:
            return INF
        if pool[x, 0] >= promised and pool[x, 1] > over:
            return pool[x, 0]
        b, i = next_row(entries, segments, numbers, b, i)
    return INF


@njit(cache=True)
def due_keys(pool, entries, segments, numbers, end_by, start_by, promised):
    """The keys of results that may be emitted, see `levels.emitted`; a key may occur several times."""
    keys = np.empty(16, dtype=np.int64)
    n, b, i, last = 0, 0, 0, end(numbers)
    while b < last:
        x = row_at(entries, segments, numbers, b, i)
        start = pool[x, 0]
        if start > start_by and start >= promised:
            break
        if (pool[x, 1] <= end_by and start <= start_by) or start < promised:
            if n == len(keys):
                more = np.empty(2 * n, dtype=np.int64)
                more[:n] = keys
                keys = more
            keys[n] = pool[x, 2]
            n += 1
        b, i = next_row(entries, segments, numbers, b, i)
    return keys[:n]
