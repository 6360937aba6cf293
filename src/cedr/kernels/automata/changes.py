"""How two answers of an automaton differ: runs that went, came, or have another end."""

import numpy as np
from numba import njit


@njit(cache=True)
def changes(words, count):
    """Of sorted rows, of which the last word is an end: row, end before, end after and how often.

    `count` is negative where a row was emitted before. Rows that agree in all but the end are one tuple whose end
    moved, as far as there are as many as before; an end of -1 means none: the tuple appears or disappears.
    """
    n, width = words.shape
    found = np.empty((n + 1, 4), dtype=np.int64)
    size = i = 0
    while i < n:
        last = i
        while last < n and agree(words, i, last, width - 1):
            last += 1
        a = b = i
        while True:
            while a < last and count[a] >= 0:
                a += 1
            while b < last and count[b] <= 0:
                b += 1
            if a == last and b == last:
                break
            times = max(-count[a], 0) if b == last else count[b] if a == last else min(-count[a], count[b])
            if size == len(found):
                larger = np.empty((2 * size, 4), dtype=np.int64)
                larger[:size] = found
                found = larger
            found[size, 0] = b if a == last else a
            found[size, 1] = -1 if a == last else a
            found[size, 2] = -1 if b == last else b
            found[size, 3] = times
            size += 1
            if a < last:
                count[a] += times
            if b < last:
                count[b] -= times
        i = last
    return found[:size]


@njit(cache=True)
def agree(words, i, j, width):
    for m in range(width):  # noqa: SIM110 compiled code has no generators
        if words[i, m] != words[j, m]:
            return False
    return True


@njit(cache=True)
def cancelled(words, count):
    """Sorted rows with equal ones added up; those that add up to nothing are gone."""
    n, width = words.shape
    keep = np.empty(n, dtype=np.int64)
    size = 0
    for i in range(n):
        if size > 0 and agree(words, keep[size - 1], i, width):
            count[keep[size - 1]] += count[i]
        else:
            keep[size] = i
            size += 1
    kept = keep[:size]
    return kept[count[kept] != 0]
