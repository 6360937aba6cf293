"""An open-addressing hash table from rows of 64-bit words to small numbers, as one array.

A slot is 0 if it is empty; otherwise its upper half is the tag, 32 bits of the mixed hash, and its lower half the
number plus 1. The rows themselves are in another array, by number: `stored[number]`. A tag that matches is confirmed
there.

The tag also says where the search begins: the part of the table that it is of all tags. So a table that grows is read
and written from front to back, and slots need no hash.
"""

import numpy as np
from numba import njit

from cedr.kernels.prefetch import prefetch
from cedr.kernels.uncounted import uncounted

FULL = 0.5
"""The part of the slots that is used at most. With 0.7 a row that is not there takes twice as long to look up."""
MOST_NUMBERS = 2**32 - 2
EMPTY, ONE = np.uint64(0), np.uint64(1)
HALF, LOWER = np.uint64(32), np.uint64(2**32 - 1)


def slots_for(rows: int) -> int:
    """Slots of a table with room for some rows."""
    return max(64, int(rows / FULL) + 1)


@njit(cache=True)
def tag_of(hash_):
    mixed = (hash_ ^ (hash_ >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)) >> np.uint64(32)


@njit(cache=True)
def reinsert(old, new, begin, end):
    """Copy the used slots of a part of a table to a larger table."""
    last = np.uint64(len(new))
    for i in range(begin, end):
        if old[i] != EMPTY:
            slot = ((old[i] >> HALF) * last) >> HALF
            while new[slot] != EMPTY:
                slot += ONE
                if slot == last:
                    slot = EMPTY
            new[slot] = old[i]


AHEAD = 32
"""Searches that are made together: memory is requested for all of them before the first needs it."""
IN_CACHE = 1 << 13
"""Up to this number of rows what is read of a table is in a cache anyway, and searches one after the other take half of
the time."""


def lookup(slots, stored, rows, hashes, size, add, skip=False):
    """See `look_up`."""
    return look_up(slots, stored, rows, hashes, size, add, skip, size > IN_CACHE)


@njit(cache=True)
def look_up(slots, stored, rows, hashes, size, add, skip, requests):
    """The number of each row; with `add`, unknown ones get numbers from `size` on, and `stored` has room for them.
    With `skip` known rows also use up a number, so that a new one is at its own place.

    Returns the numbers, the positions of the first row of each new number, and the new size.
    """
    result = np.empty(len(rows), dtype=np.int64)
    fresh = np.empty(len(rows) if add else 0, dtype=np.int64)
    at = np.empty(AHEAD, dtype=np.uint64)
    added = 0
    step = AHEAD if requests else max(1, len(rows))
    for first in range(0, len(rows), step):
        last = min(first + step, len(rows))
        if requests:
            request(slots, stored, hashes, first, last, at)
        added = numbers_of(
            slots, stored, rows, hashes, first, last, at, requests, size, add, skip, result, fresh, added
        )
    return result, fresh[:added], size + (len(rows) if skip else added)


@uncounted
def request(slots, stored, hashes, first, last, at):
    """`at`: the slot in which the search for each row from `first` to `last` ends, if it is in the table. What is
    compared with the row is requested."""
    end = np.uint64(len(slots))
    for i in range(first, last):
        at[i - first] = (tag_of(hashes[i]) * end) >> HALF
        prefetch(slots, np.int64(at[i - first]), 0)
    for i in range(first, last):
        tag, slot = tag_of(hashes[i]), at[i - first]
        entry = slots[slot]
        while entry != EMPTY and entry >> HALF != tag:
            slot += ONE
            if slot == end:
                slot = EMPTY
            entry = slots[slot]
        at[i - first] = slot
        prefetch(stored, np.int64((entry & LOWER) - ONE), 0)


@uncounted
def numbers_of(slots, stored, rows, hashes, first, last, at, requests, size, add, skip, result, fresh, added):
    """Look up the rows from `first` to `last`; with `requests`, slots before those in `at` have others. Returns how
    many are new."""
    end, width = np.uint64(len(slots)), rows.shape[1]
    for i in range(first, last):
        tag = tag_of(hashes[i])
        slot = at[i - first] if requests else (tag * end) >> HALF
        found = np.int64(-1)
        while True:
            entry = slots[slot]
            if entry == EMPTY:
                break
            if entry >> HALF == tag:
                number = (entry & LOWER) - ONE
                m = 0
                while m < width and stored[number, m] == rows[i, m]:
                    m += 1
                if m == width:
                    found = np.int64(number)
                    break
            slot += ONE
            if slot == end:
                slot = EMPTY
        if found < 0 and add:
            found = size + (i if skip else added)
            for m in range(width):
                stored[found, m] = rows[i, m]
            fresh[added] = i
            added += 1
            slots[slot] = (tag << HALF) | np.uint64(found + 1)
        result[i] = found
    return added


@njit(cache=True)
def hash_words(rows):
    """A hash of each row of words."""
    result = np.zeros(len(rows), dtype=np.uint64)
    for i in range(len(rows)):
        h = np.uint64(0)
        for m in range(rows.shape[1]):
            h = (h ^ np.uint64(rows[i, m])) * np.uint64(0x9E3779B97F4A7C15)
            h ^= h >> np.uint64(32)
        result[i] = h
    return result


@njit(cache=True)
def number_kept(keep, numbers, begin, end, n):
    """The new numbers of the rows from `begin` to `end`, in the same order from n on; -1 for those that are not kept.
    Returns the next number."""
    for i in range(begin, end):
        numbers[i] = n if keep[i] else -1
        n += keep[i]
    return n
