"""An open-addressing hash table from 64-bit hashes to small numbers, as two arrays."""

from typing import Any

import numpy as np
from numba import njit

Table = tuple[np.ndarray[Any, np.dtype[np.uint64]], np.ndarray[Any, np.dtype[np.int64]]]

EMPTY = -1


def new_table(capacity: int) -> Table:
    size = 1 << max(int(capacity - 1).bit_length(), 6)
    return np.zeros(size, dtype=np.uint64), np.full(size, EMPTY, dtype=np.int64)


def grow(table: Table, capacity: int) -> Table:
    bigger = new_table(capacity)
    _reinsert(*table, *bigger)
    return bigger


@njit(cache=True)
def _slot(hash_, mask):
    mixed = hash_ * np.uint64(0x9E3779B97F4A7C15)
    return (mixed ^ (mixed >> np.uint64(32))) & mask


@njit(cache=True)
def _reinsert(old_hashes, old_ids, hashes, ids):
    mask = np.uint64(len(hashes) - 1)
    for i in range(len(old_hashes)):
        if old_ids[i] >= 0:
            slot = _slot(old_hashes[i], mask)
            while ids[slot] >= 0:
                slot = (slot + np.uint64(1)) & mask
            hashes[slot] = old_hashes[i]
            ids[slot] = old_ids[i]


@njit(cache=True)
def lookup(hashes, ids, requested, size, add):
    """The number of each requested hash; with `add`, unknown ones get numbers from `size` on.

    Returns the numbers, the positions of the first row of each new number, and the new size.
    """
    mask = np.uint64(len(hashes) - 1)
    result = np.empty(len(requested), dtype=np.int64)
    fresh = np.empty(len(requested) if add else 0, dtype=np.int64)
    added = 0
    for i in range(len(requested)):
        slot = _slot(requested[i], mask)
        while ids[slot] >= 0 and hashes[slot] != requested[i]:
            slot = (slot + np.uint64(1)) & mask
        if ids[slot] < 0:
            if not add:
                result[i] = -1
                continue
            hashes[slot] = requested[i]
            ids[slot] = size + added
            fresh[added] = i
            added += 1
        result[i] = ids[slot]
    return result, fresh[:added], size + added


@njit(cache=True)
def fill(hashes, ids, requested):
    """Give each hash the number of its place; returns the places whose hash was taken already."""
    mask = np.uint64(len(hashes) - 1)
    collided = np.empty(len(requested), dtype=np.int64)
    size = 0
    for i in range(len(requested)):
        slot = _slot(requested[i], mask)
        while ids[slot] >= 0 and hashes[slot] != requested[i]:
            slot = (slot + np.uint64(1)) & mask
        if ids[slot] >= 0:
            collided[size] = i
            size += 1
            continue
        hashes[slot] = requested[i]
        ids[slot] = i
    return collided[:size]


@njit(cache=True)
def hash_words(columns):
    """A hash of each row; the words of a row are a column."""
    result = np.zeros(columns.shape[1], dtype=np.uint64)
    for column in columns:
        for i in range(len(result)):
            h = (result[i] ^ np.uint64(column[i])) * np.uint64(0x9E3779B97F4A7C15)
            result[i] = h ^ (h >> np.uint64(32))
    return result


@njit(cache=True)
def same_words(one, i, two, j):
    for m in range(len(one)):  # noqa: SIM110 compiled code has no generators
        if one[m, i] != two[m, j]:
            return False
    return True


@njit(cache=True)
def lookup_words(hashes, ids, stored, requested, requested_hashes, size, add):
    """As `lookup`, for rows of words that are compared themselves; those of number n are `stored[:, n]`."""
    mask = np.uint64(len(hashes) - 1)
    n = len(requested_hashes)
    result = np.empty(n, dtype=np.int64)
    fresh = np.empty(n if add else 0, dtype=np.int64)
    added = 0
    for i in range(n):
        slot = _slot(requested_hashes[i], mask)
        while ids[slot] >= 0:
            number = ids[slot]
            if hashes[slot] == requested_hashes[i]:
                if number < size and same_words(stored, number, requested, i):
                    break
                if number >= size and same_words(requested, fresh[number - size], requested, i):
                    break
            slot = (slot + np.uint64(1)) & mask
        if ids[slot] < 0:
            if not add:
                result[i] = -1
                continue
            hashes[slot] = requested_hashes[i]
            ids[slot] = size + added
            fresh[added] = i
            added += 1
        result[i] = ids[slot]
    return result, fresh[:added], size + added
