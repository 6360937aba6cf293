"""The hash that picks shards, and the sort that follows it.

State stays in the shard a key was sent to, so these numbers must never change: not with a version of a library, not
between machines. That is why they are not borrowed from anywhere, and why nothing else uses them. A hash starts at
`SEED` and takes in one column after the other.
"""

import numpy as np
from numba import njit

SEED = np.uint64(0x9E3779B97F4A7C15)
MISSING = np.uint64(0xD1B54A32D192ED03)
"""Represents a missing value of any type."""


@njit(cache=True, inline="always")
def scramble(h):
    """Every bit of the result depends on every bit of h (the last step of splitmix64)."""
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@njit(cache=True)
def absorb_words(hashes, words, missing):
    """Add a column of 64-bit words; `missing` is empty when no value is."""
    some_missing = len(missing) > 0
    for i in range(len(hashes)):
        word = MISSING if some_missing and missing[i] else words[i]
        hashes[i] = scramble(hashes[i] + (word ^ SEED))


@njit(cache=True)
def absorb_bytes(hashes, data, offsets, missing):
    """Take in a column of byte strings, eight bytes at a time, and then their lengths."""
    some_missing = len(missing) > 0
    for i in range(len(hashes)):
        if some_missing and missing[i]:
            hashes[i] = scramble(hashes[i] + (MISSING ^ SEED))
            continue
        h, at, end = hashes[i], offsets[i], offsets[i + 1]
        while end - at >= 8:
            word = np.uint64(0)
            for j in range(8):
                word |= np.uint64(data[at + j]) << np.uint64(8 * j)
            h = scramble(h + (word ^ SEED))
            at += 8
        word = np.uint64(0)
        for j in range(end - at):
            word |= np.uint64(data[at + j]) << np.uint64(8 * j)
        h = scramble(h + (word ^ SEED))
        hashes[i] = scramble(h + np.uint64(end - offsets[i]))


@njit(cache=True)
def pick(hashes, shards):
    """A shard for each hash: the upper half of it as a share of the shards."""
    picked = np.empty(len(hashes), dtype=np.int32)
    for i in range(len(hashes)):
        picked[i] = ((hashes[i] >> np.uint64(32)) * np.uint64(shards)) >> np.uint64(32)
    return picked


@njit(cache=True)
def by_shard(ids, shards):
    """The rows of shard 0 in their order, then those of shard 1, and so on; and where each shard begins."""
    bounds = np.zeros(shards + 1, dtype=np.int64)
    for i in range(len(ids)):
        bounds[ids[i] + 1] += 1
    for s in range(shards):
        bounds[s + 1] += bounds[s]
    next_place = bounds[:-1].copy()
    order = np.empty(len(ids), dtype=np.uint32)
    for i in range(len(ids)):
        order[next_place[ids[i]]] = i
        next_place[ids[i]] += 1
    return order, bounds
