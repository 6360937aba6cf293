"""Reading state that is in files without mapping it, and making pages ready that are about to be written.

A page that is read through a mapping costs a fault, and the kernel maps the pages around it, too; all of them count as
memory of this process and have to be given back. Where it is known what is needed, reading it from the file is several
times faster, and leaves nothing resident. A page that is read first and then written faults twice; one that is
requested for writing faults once.
"""

import numpy as np
from numba import njit, types

from cedr.kernels.blocks import (
    AHEAD,
    BITS,
    BLOCK,
    KEY,
    PLACE,
    ROWS,
    SEGMENTS,
    SIZE,
    compare_line,
    end,
    entries_ahead,
    next_entry,
    room_ahead,
    slot,
)
from cedr.kernels.hash_table import HALF, tag_of

pread = types.ExternalFunction("pread", types.int64(types.int32, types.intp, types.uint64, types.int64))


@njit(cache=True)
def gather(files, begins, offsets, ids, out):
    """Rows of bytes with some numbers: file i has those from `begins[i]` up to `begins[i + 1]`, one after the other
    from an offset on; rows that are in none stay as they are. Returns whether all could be read."""
    width, last = out.shape[1], begins[-1]
    for i in range(len(ids)):
        if ids[i] < last:
            f = np.searchsorted(begins, ids[i], side="right") - 1
            at = offsets[f] + (ids[i] - begins[f]) * width
            if pread(files[f], out.ctypes.data + i * width, width, at) != width:
                return False
    return True


@njit(cache=True)
def entries_between(pool, entries, segments, numbers, lows, highs):
    """The entries of all blocks that may have rows from a low key up to, but not including, its high key; sorted."""
    depth, found, n = lows.shape[1], room_ahead(), 0
    wanted = np.empty(2 * len(lows) + 16, dtype=np.int64)
    if numbers[SEGMENTS] == 0:
        return wanted[:0]
    for q in range(len(lows)):
        if q % AHEAD == 0:
            entries_ahead(entries, segments, numbers, lows, q, min(len(lows), q + AHEAD), depth, 0, found)
        b = found[q % AHEAD, 0]
        while True:
            if n == len(wanted):
                wanted = np.concatenate((wanted, np.empty(n, dtype=np.int64)))
            wanted[n] = b
            n += 1
            b = next_entry(segments, numbers, b)
            if b >= end(numbers) or compare_line(entries, slot(segments, numbers, b), highs, q, depth) >= 0:
                break
    wanted = np.sort(wanted[:n])
    different = np.ones(n, dtype=np.bool_)
    different[1:] = wanted[1:] != wanted[:-1]
    return wanted[different]


@njit(cache=True)
def entries_from(pool, entries, segments, numbers, key, count):
    """The entries of all blocks that have one of the next `count` rows from a key on, or the row behind them."""
    wanted = np.empty(16, dtype=np.int64)
    if numbers[SEGMENTS] == 0:
        return wanted[:0]
    found, n, rows = room_ahead(), 0, -numbers[BLOCK]  # in the first block as many may be before the key
    entries_ahead(entries, segments, numbers, key, 0, 1, key.shape[1], 0, found)
    b = found[0, 0]
    while b < end(numbers):
        if n == len(wanted):
            wanted = np.concatenate((wanted, np.empty(n, dtype=np.int64)))
        wanted[n] = b
        n += 1
        if rows > count:
            break
        rows += entries[slot(segments, numbers, b), SIZE]
        b = next_entry(segments, numbers, b)
    return wanted[:n]


@njit(cache=True)
def read_blocks(file, width, entries, segments, numbers, wanted, few):
    """Sorted entries with their blocks, read from the file of the pool, as blocks of their own: a pool, a directory and
    its numbers, which are `few`. None of them may be empty. The last result is whether all could be read."""
    block, bits, depth = numbers[BLOCK], numbers[BITS], entries.shape[1] - KEY
    pool = np.empty((len(wanted) * block, width), dtype=np.int64)
    lines = np.empty((len(wanted), entries.shape[1]), dtype=np.int64)
    heads = np.empty((((len(wanted) - 1) >> bits) + 1, segments.shape[1]), dtype=np.int64)
    few[BLOCK], few[BITS], few[SEGMENTS], few[ROWS] = block, bits, len(heads), 0
    for n in range(len(wanted)):
        s = slot(segments, numbers, wanted[n])
        size = entries[s, SIZE] * width * 8
        at = entries[s, PLACE] * block * width * 8
        if pread(file, pool.ctypes.data + n * block * width * 8, size, at) != size:
            return pool, lines, heads, False
        lines[n, PLACE], lines[n, SIZE] = n, entries[s, SIZE]
        few[ROWS] += entries[s, SIZE]
        j = n >> bits
        for m in range(KEY, KEY + depth):
            lines[n, m] = entries[s, m]
            if n == j << bits:
                heads[j, m] = entries[s, m]
        heads[j, PLACE], heads[j, SIZE] = j, n + 1 - (j << bits)
    return pool, lines, heads, True


@njit(cache=True)
def request_blocks(pool, entries, segments, numbers, rows, nothing):
    """Request the blocks that sorted rows are going to be added to for writing. `nothing` is 0, which the compiler must
    not know: adding it is one instruction that needs the page for writing."""
    depth, block, last_column = entries.shape[1] - KEY, numbers[BLOCK], pool.shape[1] - 1
    if numbers[SEGMENTS] == 0:
        return
    found, before = room_ahead(), -1
    for r in range(len(rows)):
        if r % AHEAD == 0:
            last = min(len(rows), r + AHEAD)
            entries_ahead(entries, segments, numbers, rows, r, last, depth, 1, found)
        s = found[r % AHEAD, 1]
        if s != before:
            start = entries[s, PLACE] * block
            pool[start, 0] += nothing
            pool[start + block - 1, last_column] += nothing
        before = s


@njit(cache=True)
def request_slots(slots, hashes, nothing):
    """Request the slots of a hash table that some new hashes are going to take for writing."""
    last = np.uint64(len(slots))
    for i in range(len(hashes)):
        slots[(tag_of(hashes[i]) * last) >> HALF] += np.uint64(nothing)
