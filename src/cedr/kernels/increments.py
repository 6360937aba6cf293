"""What has changed in sorted blocks, and sorted rows with the changes applied (`cedr.columnar.increments`)."""

import numpy as np
from numba import njit

from cedr.kernels.blocks import (
    AHEAD,
    KEY,
    ROWS,
    SIZE,
    compare,
    end,
    next_entry,
    next_row,
    place_in,
    room_ahead,
    row_at,
    seek,
    seek_ahead,
    slot,
)


@njit(cache=True)
def current_rows(pool, entries, segments, numbers, keys, depth):
    """The row of each of some sorted keys; zeros behind the key where there is none."""
    rows = np.zeros((len(keys), pool.shape[1]), dtype=np.int64)
    ahead = room_ahead()
    for q in range(len(keys)):
        if q % AHEAD == 0:
            seek_ahead(pool, entries, segments, numbers, keys, q, depth, ahead)
        rows[q, :depth] = keys[q]
        b, i = ahead[q % AHEAD, 0], ahead[q % AHEAD, 1]
        if b < end(numbers):
            x = row_at(entries, segments, numbers, b, i)
            if compare(pool, x, keys, q, depth) == 0:
                rows[q] = pool[x]
    return rows


@njit(cache=True)
def keys_of_every(pool, entries, segments, numbers, each):
    """The keys of the first row and of every `each` rows after it."""
    depth = entries.shape[1] - KEY
    keys = np.empty((-(-numbers[ROWS] // each), depth), dtype=np.int64)
    n = skipped = b = 0
    while b < end(numbers):
        size = entries[slot(segments, numbers, b), SIZE]
        while n < len(keys) and n * each < skipped + size:
            keys[n] = pool[row_at(entries, segments, numbers, b, n * each - skipped), :depth]
            n += 1
        skipped += size
        b = next_entry(segments, numbers, b)
    return keys


@njit(cache=True)
def rows_from(pool, entries, segments, numbers, key, count):
    """Up to `count` rows from a key on."""
    rows = np.empty((count, pool.shape[1]), dtype=np.int64)
    b, i = seek(pool, entries, segments, numbers, key, 0, entries.shape[1] - KEY, 0)
    n = 0
    while n < count and b < end(numbers):
        rows[n] = pool[row_at(entries, segments, numbers, b, i)]
        n += 1
        b, i = next_row(entries, segments, numbers, b, i)
    return rows[:n]


@njit(cache=True)
def each_last(rows, depth):
    """Of sorted rows the last with each key."""
    kept = np.empty(len(rows), dtype=np.bool_)
    for i in range(len(rows)):
        kept[i] = i + 1 == len(rows) or compare(rows, i, rows, i + 1, depth) != 0
    return kept


@njit(cache=True)
def overlaid(rows, changed, depth, zero):
    """Sorted rows, with changed ones, sorted too, in the place of those with the same keys; without those whose column
    `zero` is 0."""
    out = np.empty((len(rows) + len(changed), rows.shape[1]), dtype=np.int64)
    n = i = j = 0
    while i < len(rows) or j < len(changed):
        order = -1 if j == len(changed) else 1 if i == len(rows) else compare(rows, i, changed, j, depth)
        if order < 0:
            out[n] = rows[i]
        else:
            out[n] = changed[j]
        n += out[n, zero] != 0
        i += order <= 0
        j += order >= 0
    return out[:n]


@njit(cache=True)
def position(rows, keys, depth):
    """The first of sorted rows that is not before the first of some keys."""
    return place_in(rows, 0, len(rows), keys, 0, depth)


@njit(cache=True)
def is_sorted(rows, depth):
    """Whether rows are sorted, and no two have the same key."""
    i = 0
    while i + 1 < len(rows) and compare(rows, i, rows, i + 1, depth) < 0:
        i += 1
    return i + 1 >= len(rows)
