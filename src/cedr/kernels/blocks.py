"""Sorted rows in blocks with a directory: a few changed rows touch a few blocks, however many rows there are.

A row is a line of whole numbers. The first `depth` numbers are its key, by which rows are sorted and which no two rows
share; the others are added up when a row with the same key is added. A row whose number in column `zero` is 0 is gone.

Blocks lie in `pool`, `block` rows of room each, in any order. The directory has an entry per block, in the order of the
rows: `place`, the number of the block in the pool; `size`, how many rows it has; and `first`, its first key. No block
is empty. Adding rows changes blocks in place and makes a new directory only if blocks were split or are gone.

A position is `(b, i)`: row i of entry b of the directory. Behind the last row is `(len(place), 0)`.
"""

import numpy as np
from numba import njit


@njit(cache=True)
def compare(a, i, b, j, depth):
    """-1, 0 or 1: the order of two keys."""
    for m in range(depth):
        if a[i, m] != b[j, m]:
            return -1 if a[i, m] < b[j, m] else 1
    return 0


@njit(cache=True)
def entry_of(first, keys, q, depth, low):
    """The last entry, from `low` on, whose first key is not after a key; `low` itself if there is none."""
    high = len(first)
    step = 1
    while low + step < high and compare(first, low + step, keys, q, depth) <= 0:
        low += step
        step *= 2
    high = min(high, low + step)
    while high - low > 1:
        middle = (low + high) // 2
        if compare(first, middle, keys, q, depth) <= 0:
            low = middle
        else:
            high = middle
    return low


@njit(cache=True)
def place_in(pool, start, size, keys, q, depth):
    """The first row of a block whose key is not before a key."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if compare(pool, start + middle, keys, q, depth) < 0:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def seek(pool, block, place, size, first, keys, q, depth, low):
    """The position of the first row whose key is not before a key; `low`: an entry that is not behind it. A key may be
    shorter than `depth` numbers where that is given as a smaller depth."""
    if len(place) == 0:
        return 0, 0
    b = entry_before(first, keys, q, depth, low)
    i = place_in(pool, place[b] * block, size[b], keys, q, depth)
    return (b, i) if i < size[b] else (b + 1, 0)


@njit(cache=True)
def entry_before(first, keys, q, depth, low):
    """The last entry, from `low` on, whose first key is before a key: with short keys several blocks may begin alike,
    and the first row that is not before the key may be in the one before them."""
    high = len(first)
    step = 1
    while low + step < high and compare(first, low + step, keys, q, depth) < 0:
        low += step
        step *= 2
    high = min(high, low + step)
    while high - low > 1:
        middle = (low + high) // 2
        if compare(first, middle, keys, q, depth) < 0:
            low = middle
        else:
            high = middle
    return low


@njit(cache=True)
def between(pool, block, place, size, first, low_keys, high_keys, depth):
    """For each pair of keys the rows from the low one up to, but not including, the high one: which pair, and the row.
    Pairs are sorted."""
    begin = np.empty((len(low_keys), 2), dtype=np.int64)
    end = np.empty((len(low_keys), 2), dtype=np.int64)
    total = b = 0
    for q in range(len(low_keys)):
        b, i = seek(pool, block, place, size, first, low_keys, q, depth, min(b, max(0, len(place) - 1)))
        begin[q, 0], begin[q, 1] = b, i
        e, j = seek(pool, block, place, size, first, high_keys, q, depth, min(b, max(0, len(place) - 1)))
        end[q, 0], end[q, 1] = e, j
        if e > b or j > i:
            total += j - i
            for x in range(b, e):
                total += size[x]
        b = max(0, b - 1)
    which = np.empty(total, dtype=np.int64)
    rows = np.empty((total, pool.shape[1]), dtype=np.int64)
    n = 0
    for q in range(len(low_keys)):
        b, i = begin[q, 0], begin[q, 1]
        while b < end[q, 0] or (b == end[q, 0] and i < end[q, 1]):
            last = end[q, 1] if b == end[q, 0] else size[b]
            for x in range(i, last):
                which[n] = q
                for m in range(pool.shape[1]):
                    rows[n, m] = pool[place[b] * block + x, m]
                n += 1
            b, i = b + 1, 0
    return which, rows


@njit(cache=True)
def flat(pool, block, place, size):
    """All rows in order."""
    total = 0
    for b in range(len(place)):
        total += size[b]
    rows = np.empty((total, pool.shape[1]), dtype=np.int64)
    n = 0
    for b in range(len(place)):
        start = place[b] * block
        for i in range(size[b]):
            for m in range(pool.shape[1]):
                rows[n, m] = pool[start + i, m]
            n += 1
    return rows


@njit(cache=True)
def fill_pool(pool, rows, block, depth):
    """Fill the first blocks of a pool with sorted rows, with some room in each block; returns the directory."""
    fill = rows_of_full(block)
    blocks = -(-len(rows) // fill)
    place = np.arange(blocks)
    size = np.empty(blocks, dtype=np.int64)
    first = np.empty((blocks, depth), dtype=np.int64)
    for b in range(blocks):
        size[b] = min(fill, len(rows) - b * fill)
        first[b] = rows[b * fill, :depth]
        for i in range(size[b]):
            for m in range(rows.shape[1]):
                pool[b * block + i, m] = rows[b * fill + i, m]
    return place, size, first


@njit(cache=True)
def rows_of_full(block):
    """Rows that a new block gets at most."""
    return max(1, block * 3 // 4)


@njit(cache=True)
def new_blocks(rows, blocks, block):
    """How many new blocks adding some rows to some blocks may need. A block of at most 4/3 * rows_of_full that gets k
    rows is split into at most k / rows_of_full + 3 blocks, one of which is not new."""
    return 2 * min(rows, blocks) + rows // rows_of_full(block)


@njit(cache=True)
def merged(out, pool, start, size, rows, r, end, depth, zero):
    """Merge a block with new rows r to end, both sorted, into `out`; returns the number of rows that are left."""
    n, i = -1, 0
    while i < size or r < end:
        old = r == end or (i < size and compare(pool, start + i, rows, r, depth) <= 0)
        source, x = (pool, start + i) if old else (rows, r)
        if old:
            i += 1
        else:
            r += 1
        if n >= 0 and compare(out, n, source, x, depth) == 0:
            for m in range(depth, out.shape[1]):
                out[n, m] += source[x, m]
            continue
        if n < 0 or out[n, zero] != 0:
            n += 1
        for m in range(out.shape[1]):
            out[n, m] = source[x, m]
    return n + 1 if n >= 0 and out[n, zero] != 0 else max(n, 0)


@njit(cache=True)
def add(pool, used, free, block, place, size, first, depth, zero, rows):
    """Add sorted rows, whose keys may repeat, to at least one block. The pool has room for `new_blocks` more. Returns how
    many of its blocks were ever used, those of them that are free, and the directory."""
    fill = rows_of_full(block)
    fresh = np.empty((new_blocks(len(rows), len(place), block), 3), dtype=np.int64)  # block, entry before it, size
    splits = emptied = b = r = 0
    out = np.empty((block + 16, pool.shape[1]), dtype=np.int64)
    while r < len(rows):
        b = entry_of(first, rows, r, depth, b)
        end = r + 1
        while end < len(rows) and (b + 1 == len(place) or compare(rows, end, first, b + 1, depth) < 0):
            end += 1
        if len(out) < size[b] + end - r:
            out = np.empty((2 * (size[b] + end - r), pool.shape[1]), dtype=np.int64)
        n = merged(out, pool, place[b] * block, size[b], rows, r, end, depth, zero)
        pieces = 1 if n <= block else -(-n // fill)
        taken = 0
        for piece in range(pieces):
            count = (n - taken) // (pieces - piece)
            at = place[b]
            if piece:
                if len(free):
                    at, free = free[-1], free[:-1]
                else:
                    at, used = used, used + 1
                fresh[splits, 0], fresh[splits, 1], fresh[splits, 2] = at, b, count
                splits += 1
            else:
                size[b] = count
                emptied += count == 0
                for m in range(depth if count else 0):
                    first[b, m] = out[0, m]
            for x in range(count):
                for m in range(pool.shape[1]):
                    pool[at * block + x, m] = out[taken + x, m]
            taken += count
        r = end
    if splits or emptied:
        place, size, first, free = directory(pool, block, place, size, first, fresh[:splits], free)
    return used, free, place, size, first


@njit(cache=True)
def directory(pool, block, place, size, first, fresh, free):
    """The directory with new blocks and without empty ones."""
    n = len(place) + len(fresh)
    new_place = np.empty(n, dtype=np.int64)
    new_size = np.empty(n, dtype=np.int64)
    new_first = np.empty((n, first.shape[1]), dtype=np.int64)
    unused = np.empty(len(place), dtype=np.int64)
    gone = entries = f = 0
    for b in range(len(place)):
        if size[b] == 0:
            unused[gone] = place[b]
            gone += 1
        else:
            new_place[entries], new_size[entries] = place[b], size[b]
            for m in range(first.shape[1]):
                new_first[entries, m] = first[b, m]
            entries += 1
        while f < len(fresh) and fresh[f, 1] == b:
            new_place[entries], new_size[entries] = fresh[f, 0], fresh[f, 2]
            for m in range(first.shape[1]):
                new_first[entries, m] = pool[fresh[f, 0] * block, m]
            entries += 1
            f += 1
    return new_place[:entries], new_size[:entries], new_first[:entries], np.concatenate((free, unused[:gone]))
