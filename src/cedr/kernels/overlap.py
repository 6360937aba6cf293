"""Which tuples of the other side overlap each row, and how the ends of the overlaps change."""

import numpy as np
from numba import njit

from cedr.kernels.blocks import AHEAD, end, next_row, room_ahead, row_at, seek, seek_ahead
from cedr.kernels.uncounted import uncounted
from cedr.temporal.time import INF, MIN


@njit(cache=True)
def longest(g, vs, ve, groups):
    """Where each group's tuples begin in the sorted list, and its longest lifetime."""
    first = np.zeros(groups + 1, dtype=np.int64)
    length = np.zeros(groups, dtype=np.int64)
    for i in range(len(g)):
        first[g[i] + 1] += 1
        lives = ve[i] - vs[i]
        length[g[i]] = max(length[g[i]], INF if ve[i] == INF or lives < 0 else lives)  # < 0: it leaves 64 bits
    for k in range(groups):
        first[k + 1] += first[k]
    return first, length


@njit(cache=True)
def from_start(vs, low, high, time):
    """The first of the sorted starts in [low, high) that is not before `time`."""
    while low < high:
        middle = (low + high) // 2
        if vs[middle] < time:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def near(vs, low, high, time, guess):
    """As `from_start`, in steps that grow away from a guess, for questions that come almost in order."""
    guess = min(max(guess, low), high)
    step = 1
    if guess < high and vs[guess] < time:
        low = bound = guess + 1
        while bound < high and vs[bound] < time:
            low = bound + 1
            bound += step
            step *= 2
        high = min(high, bound)
    else:
        high = bound = guess
        while bound > low and vs[bound - 1] >= time:
            high = bound - 1
            bound -= step
            step *= 2
        low = max(low, bound)
    return from_start(vs, low, high, time)


@njit(cache=True)
def overlaps(g, vs, old, new, first, length, tvs, tve, copies):
    """Rows `(row, tuple, start, end before, end after)` of the pairs whose common lifetime changes.

    A row changes a tuple's end from `old` to `new`; an insert changes it from nothing. Its overlap with another tuple
    starts at the later start and ends, before and after, at the smaller end.
    """
    capacity = 2 * len(g) + 16
    row = np.empty(capacity, dtype=np.int64)
    other = np.empty(capacity, dtype=np.int64)
    start = np.empty(capacity, dtype=np.int64)
    before = np.empty(capacity, dtype=np.int64)
    after = np.empty(capacity, dtype=np.int64)
    size = 0
    for i in range(len(g)):
        if g[i] < 0 or g[i] + 1 >= len(first):
            continue
        low, high = first[g[i]], first[g[i] + 1]
        reach = max(old[i], new[i])
        if length[g[i]] != INF and vs[i] >= MIN + length[g[i]]:
            low = from_start(tvs, low, high, vs[i] - length[g[i]])
        for x in range(low, high):
            if tvs[x] >= reach:
                break
            s = max(vs[i], tvs[x])
            was = max(s, min(old[i], tve[x]))
            now = max(s, min(new[i], tve[x]))
            if was == now:
                continue
            for _ in range(copies[x]):
                if size == capacity:
                    capacity *= 2
                    row = enlarge(row, capacity)
                    other = enlarge(other, capacity)
                    start = enlarge(start, capacity)
                    before = enlarge(before, capacity)
                    after = enlarge(after, capacity)
                row[size], other[size], start[size], before[size], after[size] = i, x, s, was, now
                size += 1
    return row[:size], other[:size], start[:size], before[:size], after[:size]


@njit(cache=True)
def raise_longest(length, g, vs, ve):
    """Take new tuples into the longest lifetime of each group."""
    for i in range(len(g)):
        lives = ve[i] - vs[i]
        length[g[i]] = max(length[g[i]], INF if ve[i] == INF or lives < 0 else lives)


@njit(cache=True)
def raise_longest_in_blocks(pool, entries, segments, numbers, key, count, by, length):
    """The same with the next `count` tuples from a key on of blocks, of those that end after `by`."""
    b, i = seek(pool, entries, segments, numbers, key, 0, key.shape[1], 0)
    while b < end(numbers) and count > 0:
        x = row_at(entries, segments, numbers, b, i)
        if pool[x, 2] > by:
            lives = pool[x, 2] - pool[x, 1]
            lives = INF if pool[x, 2] == INF or lives < 0 else lives
            length[pool[x, 0]] = max(length[pool[x, 0]], lives)
        count -= 1
        b, i = next_row(entries, segments, numbers, b, i)


@uncounted
def earliest_partners(g, vs, length, which, keys):
    """The rows whose key has tuples; for each its key, and the earliest start that a tuple may have that lives when the
    row starts. Returns how many there are."""
    n = 0
    for i in range(len(g)):
        life = length[g[i]] if 0 <= g[i] < len(length) else 0
        which[n], keys[n, 0] = i, g[i]
        keys[n, 1] = vs[i] - life if life != INF and vs[i] >= MIN + life else MIN
        n += life != 0
    return n


@njit(cache=True)
def keys_of_partners(g, vs, length):
    """The rows whose key has tuples, and from which key on tuples may overlap each."""
    which = np.empty(len(g), dtype=np.int64)
    keys = np.empty((len(g), 2), dtype=np.int64)
    n = earliest_partners(g, vs, length, which, keys)
    return which[:n], keys[:n]


@njit(cache=True)
def overlaps_in_blocks(g, vs, old, new, length, pool, entries, segments, numbers):
    """As `overlaps`, for tuples `(g, vs, ve, value, copies)` in blocks: the value of the tuple takes the place of its
    number."""
    which, keys = keys_of_partners(g, vs, length)
    n = len(which)
    out = np.empty((5, 2 * len(g) + 16), dtype=np.int64)
    ahead, found, q = room_ahead(), 0, 0
    while True:
        q, found = pairs(which, keys, q, vs, old, new, pool, entries, segments, numbers, ahead, out, found)
        if q == n:
            break
        more = np.empty((5, 2 * out.shape[1]), dtype=np.int64)
        more[:, :found] = out[:, :found]
        out = more
    return out[0, :found], out[1, :found], out[2, :found], out[3, :found], out[4, :found]


@uncounted
def pairs(which, keys, q, vs, old, new, pool, entries, segments, numbers, ahead, out, found):
    """Find the overlaps of the rows from number q of `which` on. Returns the first of these that is not done, because
    there was no room for its overlaps, and how many overlaps were found."""
    row, other, start, before, after = out
    capacity = len(row)
    while q < len(keys):
        if q % AHEAD == 0:
            seek_ahead(pool, entries, segments, numbers, keys, q, 2, ahead)
        i, done = which[q], found
        reach = max(old[i], new[i])
        b, j = ahead[q % AHEAD, 0], ahead[q % AHEAD, 1]
        while b < end(numbers):
            x = row_at(entries, segments, numbers, b, j)
            if pool[x, 0] != keys[q, 0] or pool[x, 1] >= reach:
                break
            s = max(vs[i], pool[x, 1])
            was = max(s, min(old[i], pool[x, 2]))
            now = max(s, min(new[i], pool[x, 2]))
            copies = pool[x, 4] if was != now else 0
            if found + copies > capacity:
                return q, done
            for _ in range(copies):
                row[found], other[found], start[found], before[found], after[found] = i, pool[x, 3], s, was, now
                found += 1
            b, j = next_row(entries, segments, numbers, b, j)
        q += 1
    return q, found


@njit(cache=True)
def enlarge(array, capacity):
    bigger = np.empty(capacity, dtype=np.int64)
    bigger[: len(array)] = array
    return bigger
