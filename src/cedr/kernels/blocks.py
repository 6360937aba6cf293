"""Sorted rows in blocks with a directory: a few changed rows touch a few blocks, however many rows there are.

A row is a line of whole numbers. The first `depth` numbers are its key, by which rows are sorted and which no two rows
share; the others are added up when a row with the same key is added. A row whose number in column `zero` is 0 is gone.

Blocks lie in `pool`, `numbers[BLOCK]` rows of room each, in any order. The directory has an entry per block, in the
order of the rows: a line of `entries` with the number of the block in the pool, how many rows it has, and its first
key. Entries lie in segments of `1 << numbers[BITS]` entries of room each. `segments` has a line for each, in the order
of the rows: its number, how many entries it has, and its first key. No block and no segment is empty. So a row that is
added moves the rows behind it in its block, a block that is split moves the entries behind it in its segment, and a
segment that is split moves the lines of other segments.

A position is `(b, i)`: row i of entry b. The number of an entry shows its order: the place of its segment, and its
place in the segment. Behind the last row is `(end(numbers), 0)`. A change of rows makes positions invalid.

Free blocks and segments are lists: the first number of each has the number of the next one.

Kernels get four arrays: a tuple of them costs more at each call than many of the calls do.
"""

import numpy as np
from numba import njit

from cedr.kernels.moving import move_rows
from cedr.kernels.prefetch import prefetch, prefetch_rows
from cedr.kernels.uncounted import uncounted
from cedr.temporal.time import MIN

BLOCK, BITS, ROWS, USED, FREE, FIRST_FREE, SEGMENTS, USED_SEGMENTS, FREE_SEGMENTS, FIRST_FREE_SEGMENT = range(10)
"""Positions in `numbers`: the rows of a block at most, and the logarithm of the entries of a segment; how many rows
there are; how many blocks were ever used, how many of them are free, and the first of those; how many segments are in
use, were ever used, and are free, and the first of those."""
PLACE, SIZE, KEY = range(3)
"""Columns of `entries` and `segments`: the number, how many rows or entries, and where the key begins."""


@uncounted
def compare(a, i, b, j, depth):
    """-1, 0 or 1: the order of two keys."""
    for m in range(depth):
        if a[i, m] != b[j, m]:
            return -1 if a[i, m] < b[j, m] else 1
    return 0


@uncounted
def order(lines, i, column, key, q, depth):
    """The order of the key of a line, which begins at a column, and another key."""
    for m in range(depth):
        if lines[i, column + m] != key[q, m]:
            return -1 if lines[i, column + m] < key[q, m] else 1
    return 0


@uncounted
def compare_line(lines, i, key, q, depth):
    """The order of the key of a line of the directory and another key."""
    return order(lines, i, KEY, key, q, depth)


# --- positions -------------------------------------------------------------------------------------------------------


@uncounted
def end(numbers):
    """The entry behind the last one."""
    return numbers[SEGMENTS] << numbers[BITS]


@uncounted
def slot(segments, numbers, b):
    """The line of an entry."""
    bits = numbers[BITS]
    return (segments[b >> bits, PLACE] << bits) + (b & ((1 << bits) - 1))


@uncounted
def row_at(entries, segments, numbers, b, i):
    """The row of the pool at a position."""
    return entries[slot(segments, numbers, b), PLACE] * numbers[BLOCK] + i


@uncounted
def next_entry(segments, numbers, b):
    j = b >> numbers[BITS]
    within = b - (j << numbers[BITS])
    return b + 1 if within + 1 < segments[j, SIZE] else (j + 1) << numbers[BITS]


@uncounted
def next_row(entries, segments, numbers, b, i):
    """The position of the next row."""
    if i + 1 < entries[slot(segments, numbers, b), SIZE]:
        return b, i + 1
    return next_entry(segments, numbers, b), 0


@uncounted
def previous_row(entries, segments, numbers, b, i):
    """The position of the row before; -1 as entry if there is none."""
    if i > 0:
        return b, i - 1
    j = b >> numbers[BITS]
    if b > j << numbers[BITS]:
        b -= 1
    elif j > 0:
        b = ((j - 1) << numbers[BITS]) + segments[j - 1, SIZE] - 1
    else:
        return -1, 0
    return b, entries[slot(segments, numbers, b), SIZE] - 1


@uncounted
def narrowed(lines, low, n, column, key, q, depth, few):
    """Of `n` sorted lines from `low` on, whose keys begin at a column: at most `few` of them, among which is the first
    whose key is not before a key, or behind which it is. Only the first two numbers of keys are compared.

    Which half is next is computed. A branch would be predicted wrong half of the time, which costs more than the rest
    of a step; and the processor works on several searches at once if it need not guess.
    """
    a, second = key[q, 0], column + (depth > 1)
    b = key[q, 1] if depth > 1 else MIN
    while n > few:
        half = (n + 1) >> 1
        x, y = lines[low + half - 1, column], lines[low + half - 1, second]
        low += half * ((x < a) | ((x == a) & (y < b)))
        n -= half
    return low, n


@uncounted
def behind_ties(lines, low, high, column, key, q, depth, limit):
    """The first of sorted lines in [low, high) whose key is not before a key (limit 0) or after it (1), if those before
    `low` are, and the first two numbers of that at `low` are not before those of the key."""
    step = 1
    while low < high and order(lines, low, column, key, q, depth) < limit:
        low += 1
        while low + step < high and order(lines, low + step, column, key, q, depth) < limit:
            low += step + 1
            step *= 2
        step = max(1, step // 2)
    return low


@uncounted
def last_before(lines, low, high, key, q, depth, limit):
    """The last line of the directory in [low, high) with a key before a key (limit 0) or not after it (1); `low` if
    none."""
    found, _ = narrowed(lines, low + 1, high - low - 1, KEY, key, q, depth, 0)
    return behind_ties(lines, found, high, KEY, key, q, depth, limit) - 1


@uncounted
def entry(entries, segments, numbers, key, q, depth, limit, low):
    """The last entry whose first key is before a key (limit 0) or not after it (1), or the first one; `low`: an entry
    that is not behind it. With short keys several blocks may begin alike, and the first row that is not before the key
    may be in the block before them."""
    bits = numbers[BITS]
    j = last_before(segments, low >> bits, numbers[SEGMENTS], key, q, depth, limit)
    start = segments[j, PLACE] << bits
    return (j << bits) + last_before(entries, start, start + segments[j, SIZE], key, q, depth, limit) - start


@uncounted
def place_in(pool, start, size, key, q, depth):
    """The first row of a block whose key is not before a key."""
    found, _ = narrowed(pool, start, size, 0, key, q, depth, 0)
    return behind_ties(pool, found, start + size, 0, key, q, depth, 0) - start


@uncounted
def seek(pool, entries, segments, numbers, key, q, depth, low):
    """The position of the first row whose key is not before a key; `low`: an entry that is not behind it. A key may be
    shorter than those of rows: `depth` numbers."""
    if numbers[SEGMENTS] == 0:
        return 0, 0
    b = entry(entries, segments, numbers, key, q, depth, 0, low)
    s = slot(segments, numbers, b)
    i = place_in(pool, entries[s, PLACE] * numbers[BLOCK], entries[s, SIZE], key, q, depth)
    if i < entries[s, SIZE]:
        return b, i
    return next_entry(segments, numbers, b), 0


@uncounted
def near(numbers, b):
    """An entry before or at one that was found: where to begin the search for a key that is not before it."""
    return max(0, (b >> numbers[BITS]) - 1) << numbers[BITS]


# --- many searches ---------------------------------------------------------------------------------------------------

AHEAD = 32
"""Searches that are made together: memory is requested for all of them before the first needs it."""
FEW_LINES = 3
"""Lines of a range that are requested together at the end of a search; before, those that its next two steps may read.
"""


@uncounted
def request_two_steps(lines, low, n, column):
    """Request the lines that the next two steps of `narrowed` may read."""
    one = (n + 1) >> 1
    two = (n - one + 1) >> 1
    for x in (one, two, one + two):
        prefetch(lines, low + x - 1, 8 * column)


@uncounted
def narrow_ahead(lines, column, keys, first, last, depth, found):
    """Narrow the searches of keys `first` to `last` down to a few lines, which are requested, two steps at a time.
    The lines of each search, from which one on and how many, are in columns 2 and 3 of `found`."""
    more = True
    while more:
        more = False
        for q in range(last - first):
            if found[q, 3] > FEW_LINES:
                request_two_steps(lines, found[q, 2], found[q, 3], column)
                more = True
        for q in range(last - first):
            few = max(found[q, 3] >> 2, FEW_LINES)
            found[q, 2], found[q, 3] = narrowed(lines, found[q, 2], found[q, 3], column, keys, first + q, depth, few)
    for q in range(last - first):
        prefetch_rows(lines, found[q, 2] - 1, found[q, 3] + 2)


@uncounted
def entries_ahead(entries, segments, numbers, keys, first, last, depth, limit, found):
    """`found`: for keys `first` to `last`, at most `AHEAD`, the entry as `entry` finds it, and its line."""
    bits = numbers[BITS]
    for q in range(first, last):
        j = last_before(segments, 0, numbers[SEGMENTS], keys, q, depth, limit)
        found[q - first, 0] = j
        found[q - first, 2], found[q - first, 3] = (segments[j, PLACE] << bits) + 1, segments[j, SIZE] - 1
    narrow_ahead(entries, KEY, keys, first, last, depth, found)
    for q in range(first, last):
        j = found[q - first, 0]
        start = segments[j, PLACE] << bits
        low, _ = narrowed(entries, found[q - first, 2], found[q - first, 3], KEY, keys, q, depth, 0)
        s = behind_ties(entries, low, start + segments[j, SIZE], KEY, keys, q, depth, limit) - 1
        found[q - first, 0], found[q - first, 1] = (j << bits) + s - start, s


@uncounted
def places_ahead(pool, entries, numbers, keys, first, last, depth, found):
    """For keys `first` to `last` the place in the block of the entry that `entries_ahead` has found, as `place_in`
    finds it, in column 2 of `found`."""
    for q in range(last - first):
        s = found[q, 1]
        found[q, 2], found[q, 3] = entries[s, PLACE] * numbers[BLOCK], entries[s, SIZE]
    narrow_ahead(pool, 0, keys, first, last, depth, found)
    for q in range(last - first):
        s = found[q, 1]
        start = entries[s, PLACE] * numbers[BLOCK]
        low, _ = narrowed(pool, found[q, 2], found[q, 3], 0, keys, first + q, depth, 0)
        found[q, 2] = behind_ties(pool, low, start + entries[s, SIZE], 0, keys, first + q, depth, 0) - start


@uncounted
def request_moved(pool, entries, numbers, rows, found):
    """Request the rows that move when some rows are added at their places."""
    for q in range(rows):
        s, i = found[q, 1], found[q, 2]
        prefetch_rows(pool, entries[s, PLACE] * numbers[BLOCK] + i, entries[s, SIZE] - i + 1)


@uncounted
def seek_ahead(pool, entries, segments, numbers, keys, first, depth, found):
    """`found`: the positions of key `first` and those after it, at most `AHEAD`, as `seek` finds them."""
    if numbers[SEGMENTS] == 0:
        found[:] = 0
        return
    last = min(len(keys), first + AHEAD)
    entries_ahead(entries, segments, numbers, keys, first, last, depth, 0, found)
    places_ahead(pool, entries, numbers, keys, first, last, depth, found)
    for q in range(last - first):
        b, i = found[q, 0], found[q, 2]
        if i == entries[found[q, 1], SIZE]:
            b, i = next_entry(segments, numbers, b), 0
        found[q, 0], found[q, 1] = b, i


@uncounted
def is_place(pool, start, size, i, row, depth):
    """Whether `place_in` would find this place for a row."""
    if i > size or (i > 0 and compare(pool, start + i - 1, row, 0, depth) >= 0):
        return False
    return i == size or compare(pool, start + i, row, 0, depth) >= 0


@njit(cache=True)
def room_ahead():
    """Where `seek_ahead` puts what it finds."""
    return np.empty((AHEAD, 4), dtype=np.int64)


@uncounted
def still(entries, segments, numbers, b, rows, r, depth):
    """Whether a row belongs into the block of an entry that was found for it before blocks have changed."""
    j = b >> numbers[BITS]
    if j >= numbers[SEGMENTS] or b - (j << numbers[BITS]) >= segments[j, SIZE]:
        return False
    if b > 0 and compare_line(entries, slot(segments, numbers, b), rows, r, depth) > 0:
        return False
    after = next_entry(segments, numbers, b)
    return after >= end(numbers) or compare_line(entries, slot(segments, numbers, after), rows, r, depth) > 0


# --- reading ---------------------------------------------------------------------------------------------------------


@njit(cache=True)
def between(pool, entries, segments, numbers, low_keys, high_keys, depth):
    """For each pair of keys the rows from the low one up to, but not including, the high one: which pair, and the row.
    Pairs are sorted by the low key."""
    width, block = pool.shape[1], numbers[BLOCK]
    which = np.empty(2 * len(low_keys) + 16, dtype=np.int64)
    rows = np.empty((len(which), width), dtype=np.int64)
    found, last, n = room_ahead(), end(numbers), 0
    for q in range(len(low_keys)):
        if q % AHEAD == 0:
            seek_ahead(pool, entries, segments, numbers, low_keys, q, depth, found)
        e, i = found[q % AHEAD, 0], found[q % AHEAD, 1]
        while e < last:
            s = slot(segments, numbers, e)
            start, size = entries[s, PLACE] * block, entries[s, SIZE]
            while i < size and compare(pool, start + i, high_keys, q, depth) < 0:
                if n == len(which):
                    which, rows = twice(which, rows)
                which[n] = q
                for m in range(width):
                    rows[n, m] = pool[start + i, m]
                n += 1
                i += 1
            if i < size:
                break
            e, i = next_entry(segments, numbers, e), 0
    return which[:n], rows[:n]


@njit(cache=True)
def twice(which, rows):
    """The same with twice the room."""
    n = len(which)
    more_which = np.empty(2 * n, dtype=np.int64)
    more_rows = np.empty((2 * n, rows.shape[1]), dtype=np.int64)
    more_which[:n] = which
    more_rows[:n] = rows
    return more_which, more_rows


@njit(cache=True)
def head(pool, entries, segments, numbers, count):
    """The first rows, at most as many as there are."""
    rows = np.empty((min(count, numbers[ROWS]), pool.shape[1]), dtype=np.int64)
    n = b = 0
    while n < len(rows):
        s = slot(segments, numbers, b)
        start = entries[s, PLACE] * numbers[BLOCK]
        for i in range(min(entries[s, SIZE], len(rows) - n)):
            for m in range(rows.shape[1]):
                rows[n, m] = pool[start + i, m]
            n += 1
        b = next_entry(segments, numbers, b)
    return rows


# --- changing --------------------------------------------------------------------------------------------------------


@uncounted
def rows_of_full(block):
    """Rows that a block gets at first, and entries of a segment."""
    return max(1, block * 3 // 4)


@uncounted
def new_blocks(rows, blocks, block):
    """How many new blocks adding some rows to some blocks may need: a row may split a block, and a block that was split
    takes half a block of rows before it is split again. The same for entries and segments."""
    return min(rows, blocks) + rows // max(1, block // 2) + 1


@uncounted
def fill(pool, entries, segments, numbers, rows):
    """Fill empty blocks with sorted rows, with some room in each block and segment. The pool has room for them."""
    depth, block, bits = entries.shape[1] - KEY, numbers[BLOCK], numbers[BITS]
    each, in_segment = rows_of_full(block), rows_of_full(1 << bits)
    blocks = -(-len(rows) // each)
    for b in range(blocks):
        j = b // in_segment
        s = (j << bits) + b % in_segment
        entries[s, PLACE], entries[s, SIZE] = b, min(each, len(rows) - b * each)
        for i in range(entries[s, SIZE]):
            for m in range(rows.shape[1]):
                pool[b * block + i, m] = rows[b * each + i, m]
        if b % in_segment == 0:
            segments[j, PLACE], segments[j, SIZE] = j, 0
            for m in range(depth):
                segments[j, KEY + m] = rows[b * each, m]
        for m in range(depth):
            entries[s, KEY + m] = rows[b * each, m]
        segments[j, SIZE] += 1
    numbers[ROWS], numbers[USED], numbers[FREE] = len(rows), blocks, 0
    numbers[SEGMENTS] = numbers[USED_SEGMENTS] = -(-blocks // in_segment)
    numbers[FREE_SEGMENTS] = 0


@njit(cache=True)
def summed(rows, depth, zero):
    """Sorted rows with those of equal keys added up, without those that are gone."""
    out = np.empty(rows.shape, dtype=np.int64)
    n = -1
    for r in range(len(rows)):
        if n >= 0 and compare(out, n, rows, r, depth) == 0:
            for m in range(depth, rows.shape[1]):
                out[n, m] += rows[r, m]
            continue
        if n < 0 or out[n, zero] != 0:
            n += 1
        for m in range(rows.shape[1]):
            out[n, m] = rows[r, m]
    return out[: n + 1] if n >= 0 and out[n, zero] != 0 else out[: max(n, 0)]


@uncounted
def end_of_equal(rows, n, depth):
    """The first of sorted rows, from n on, whose key is not that of the row before."""
    while 0 < n < len(rows) and compare(rows, n - 1, rows, n, depth) == 0:
        n += 1
    return min(n, len(rows))


FEW = 4
"""Fewer rows than this for one block are inserted one by one; more are merged with those of the block."""


@njit(cache=True)
def add(pool, entries, segments, numbers, zero, rows):
    """Add sorted rows, whose keys may repeat. There is room for `new_blocks` more blocks, and their segments."""
    depth, block = entries.shape[1] - KEY, numbers[BLOCK]
    room = np.empty((4 * block, pool.shape[1]), dtype=np.int64)
    row = np.empty((1, pool.shape[1]), dtype=np.int64)
    found = room_ahead()
    r = b = since = ahead = 0
    while r < len(rows):
        if numbers[SEGMENTS] == 0:
            fill(pool, entries, segments, numbers, summed(rows[r:], depth, zero))
            return
        if r >= ahead:
            since, ahead = r, min(len(rows), r + AHEAD)
            entries_ahead(entries, segments, numbers, rows, since, ahead, depth, 1, found)
            places_ahead(pool, entries, numbers, rows, since, ahead, depth, found)
            request_moved(pool, entries, numbers, ahead - since, found)
        guess = found[r - since, 2]
        if still(entries, segments, numbers, found[r - since, 0], rows, r, depth):
            b = found[r - since, 0]
        else:
            b = entry(entries, segments, numbers, rows, r, depth, 1, near(numbers, b))
        last = end_of_run(entries, segments, numbers, b, rows, r, depth)
        if last - r < FEW:
            r = insert_few(pool, entries, segments, numbers, zero, b, guess, rows, r, last, row)
            continue
        if last - r > len(room) - block:
            room = np.empty((block + 2 * (last - r), pool.shape[1]), dtype=np.int64)
        merge_run(pool, entries, segments, numbers, zero, b, rows, r, last, room)
        r = last


@uncounted
def end_of_run(entries, segments, numbers, b, rows, r, depth):
    """The first of sorted rows behind row r that does not belong into the block of an entry."""
    after = next_entry(segments, numbers, b)
    if after >= end(numbers):
        return len(rows)
    s = slot(segments, numbers, after)
    r += 1
    while r < len(rows) and compare_line(entries, s, rows, r, depth) > 0:
        r += 1
    return r


@uncounted
def insert_few(pool, entries, segments, numbers, zero, b, guess, rows, r, last, row):
    """Add rows to a block, one by one; the first belongs to place `guess` unless rows have changed since it was found.
    Returns the first row that is not added: the block was split, or moved together.

    Rows that are gone stay with a 0 until there is no more to do, so that the block is moved together once.
    """
    depth, width, block = entries.shape[1] - KEY, pool.shape[1], numbers[BLOCK]
    s = slot(segments, numbers, b)
    start, size = entries[s, PLACE] * block, entries[s, SIZE]
    gone = 0
    while r < last:
        next_r = r + 1
        for m in range(width):
            row[0, m] = rows[r, m]
        while next_r < last and compare(rows, next_r, row, 0, depth) == 0:
            for m in range(depth, width):
                row[0, m] += rows[next_r, m]
            next_r += 1
        i = guess
        if not is_place(pool, start, size, i, row, depth):
            i = place_in(pool, start, size, row, 0, depth)
        guess = i + 1
        if i < size and compare(pool, start + i, row, 0, depth) == 0:
            for m in range(depth, width):
                pool[start + i, m] += row[0, m]
            gone += pool[start + i, zero] == 0
        elif row[0, zero] != 0:
            if gone:
                break
            numbers[ROWS] += 1
            if size == block:
                insert_and_split(pool, entries, segments, numbers, b, i, row)
                return next_r
            insert(pool, start, size, i, row)
            size += 1
            entries[s, SIZE] = size
            if i == 0:
                set_first(pool, entries, segments, numbers, b)
        r = next_r
    if gone:
        remove_gone(pool, entries, segments, numbers, b, zero)
    return r


@uncounted
def merge_run(pool, entries, segments, numbers, zero, b, rows, r, last, room):
    """Add rows to a block, all at once; it becomes as many as are needed."""
    depth, width = entries.shape[1] - KEY, pool.shape[1]
    s = slot(segments, numbers, b)
    start, size = entries[s, PLACE] * numbers[BLOCK], entries[s, SIZE]
    in_order = compare(pool, start + size - 1, rows, r, depth) < 0
    n = i = 0
    while i < size or r < last:
        if r == last or (i < size and compare(pool, start + i, rows, r, depth) <= 0):
            for m in range(width):
                room[n, m] = pool[start + i, m]
            i += 1
        else:
            for m in range(width):
                room[n, m] = rows[r, m]
            r += 1
        while r < last and compare(room, n, rows, r, depth) == 0:
            for m in range(depth, width):
                room[n, m] += rows[r, m]
            r += 1
        n += room[n, zero] != 0
    numbers[ROWS] += n - size
    if n == 0:
        remove_entry(pool, entries, segments, numbers, b)
        return
    write_run(pool, entries, segments, numbers, b, room, n, in_order)


@uncounted
def write_run(pool, entries, segments, numbers, b, room, n, in_order):
    """Put rows into a block in the place of its own; further blocks follow. Rows that come in order fill them."""
    block = numbers[BLOCK]
    each = block if in_order or n <= block else rows_of_full(block)
    parts = -(-n // each)
    start = 0
    for part in range(parts):
        count = min(block, n - start) if in_order else n * (part + 1) // parts - start
        at = new_block(pool, numbers) if part else entries[slot(segments, numbers, b), PLACE]
        for x in range(count):
            for m in range(pool.shape[1]):
                pool[at * block + x, m] = room[start + x, m]
        if part:
            b = insert_entry(pool, entries, segments, numbers, b, at, count)
        else:
            entries[slot(segments, numbers, b), SIZE] = count
            set_first(pool, entries, segments, numbers, b)
        start += count
    if parts == 1 and n <= block // 4:
        unite(pool, entries, segments, numbers, b)


@uncounted
def insert(pool, start, size, i, row):
    """Insert a row into a block that has room."""
    move_rows(pool, start + i + 1, start + i, size - i)
    for m in range(row.shape[1]):
        pool[start + i, m] = row[0, m]


@uncounted
def insert_and_split(pool, entries, segments, numbers, b, i, row):
    """Insert a row into a full block, which becomes two."""
    s, block = slot(segments, numbers, b), numbers[BLOCK]
    start, size = entries[s, PLACE] * block, entries[s, SIZE]
    kept = size if i == size else size // 2  # rows that come in order fill their blocks
    at = new_block(pool, numbers)
    move_rows(pool, at * block, start + kept, size - kept)
    moved = size - kept
    if i > kept or moved == 0:
        insert(pool, at * block, moved, i - kept, row)
        moved += 1
    else:
        insert(pool, start, kept, i, row)
        kept += 1
        if i == 0:
            set_first(pool, entries, segments, numbers, b)
    entries[s, SIZE] = kept
    insert_entry(pool, entries, segments, numbers, b, at, moved)


@uncounted
def remove_gone(pool, entries, segments, numbers, b, zero):
    """Remove the rows of a block that are gone."""
    s = slot(segments, numbers, b)
    start, n = entries[s, PLACE] * numbers[BLOCK], 0
    for x in range(start, start + entries[s, SIZE]):
        if pool[x, zero] != 0:
            if x != start + n:
                for m in range(pool.shape[1]):
                    pool[start + n, m] = pool[x, m]
            n += 1
    numbers[ROWS] -= entries[s, SIZE] - n
    entries[s, SIZE] = n
    if n == 0:
        remove_entry(pool, entries, segments, numbers, b)
        return
    set_first(pool, entries, segments, numbers, b)
    if n <= numbers[BLOCK] // 4:
        unite(pool, entries, segments, numbers, b)


@uncounted
def unite(pool, entries, segments, numbers, b):
    """Make one block of a small one and the next one of its segment, if that is small, too."""
    s, block = slot(segments, numbers, b), numbers[BLOCK]
    n = entries[s, SIZE]
    j = b >> numbers[BITS]
    is_last = b - (j << numbers[BITS]) + 1 == segments[j, SIZE]
    if is_last or n + entries[s + 1, SIZE] > block // 2:
        return
    start, other = entries[s, PLACE] * block, entries[s + 1, PLACE] * block
    move_rows(pool, start + n, other, entries[s + 1, SIZE])
    entries[s, SIZE] += entries[s + 1, SIZE]
    remove_entry(pool, entries, segments, numbers, b + 1)


@uncounted
def set_first(pool, entries, segments, numbers, b):
    """The first row of a block has changed."""
    s, j = slot(segments, numbers, b), b >> numbers[BITS]
    x = entries[s, PLACE] * numbers[BLOCK]
    for m in range(entries.shape[1] - KEY):
        entries[s, KEY + m] = pool[x, m]
        if b == j << numbers[BITS]:
            segments[j, KEY + m] = pool[x, m]


@uncounted
def new_block(pool, numbers):
    if numbers[FREE]:
        at = numbers[FIRST_FREE]
        numbers[FREE] -= 1
        numbers[FIRST_FREE] = pool[at * numbers[BLOCK], 0]
        return at
    numbers[USED] += 1
    return numbers[USED] - 1


@uncounted
def new_segment(entries, numbers):
    if numbers[FREE_SEGMENTS]:
        at = numbers[FIRST_FREE_SEGMENT]
        numbers[FREE_SEGMENTS] -= 1
        numbers[FIRST_FREE_SEGMENT] = entries[at << numbers[BITS], PLACE]
        return at
    numbers[USED_SEGMENTS] += 1
    return numbers[USED_SEGMENTS] - 1


@uncounted
def insert_entry(pool, entries, segments, numbers, b, at, size):
    """Insert a block of the pool behind an entry; returns its own entry."""
    bits = numbers[BITS]
    j = b >> bits
    i = b - (j << bits) + 1
    if segments[j, SIZE] == 1 << bits:
        kept = split_segment(entries, segments, numbers, j, i)
        if i > kept or kept == 1 << bits:
            j, i = j + 1, i - kept
    start = segments[j, PLACE] << bits
    move_rows(entries, start + i + 1, start + i, segments[j, SIZE] - i)
    entries[start + i, PLACE], entries[start + i, SIZE] = at, size
    segments[j, SIZE] += 1
    set_first(pool, entries, segments, numbers, (j << bits) + i)
    return (j << bits) + i


@uncounted
def split_segment(entries, segments, numbers, j, i):
    """Make room for an entry at place i of a full segment; returns how many entries the segment keeps."""
    bits = numbers[BITS]
    n = 1 << bits
    kept = n if i == n else n // 2  # blocks that come in order fill their segments
    old, new = segments[j, PLACE] << bits, new_segment(entries, numbers)
    move_rows(entries, new << bits, old + kept, n - kept)
    move_rows(segments, j + 2, j + 1, numbers[SEGMENTS] - j - 1)
    segments[j, SIZE] = kept
    segments[j + 1, PLACE], segments[j + 1, SIZE] = new, n - kept
    for m in range(KEY, entries.shape[1]):
        segments[j + 1, m] = entries[new << bits, m]
    numbers[SEGMENTS] += 1
    return kept


@uncounted
def remove_entry(pool, entries, segments, numbers, b):
    """Remove an entry; its block is free."""
    bits = numbers[BITS]
    j, s = b >> bits, slot(segments, numbers, b)
    start = segments[j, PLACE] << bits
    pool[entries[s, PLACE] * numbers[BLOCK], 0] = numbers[FIRST_FREE]
    numbers[FIRST_FREE] = entries[s, PLACE]
    numbers[FREE] += 1
    move_rows(entries, s, s + 1, start + segments[j, SIZE] - s - 1)
    segments[j, SIZE] -= 1
    if segments[j, SIZE]:
        for m in range(KEY, entries.shape[1]):
            segments[j, m] = entries[start, m]
        return
    entries[start, PLACE] = numbers[FIRST_FREE_SEGMENT]
    numbers[FIRST_FREE_SEGMENT] = segments[j, PLACE]
    numbers[FREE_SEGMENTS] += 1
    move_rows(segments, j, j + 1, numbers[SEGMENTS] - j - 1)
    numbers[SEGMENTS] -= 1
