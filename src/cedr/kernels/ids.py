"""Ids of events and of what is composed of them: 64-bit hashes that are the same whatever the order of arrival.

id of an event       hash of (type, content, number among equal events)
idgen(i1 .. in)      scramble of the sum of scrambled ids; order needs no care, as contributors come in the order of
                     time, and a sum over neighbours is a difference of running sums
"""

import numpy as np
from numba import njit

from cedr.kernels.hash_table import lookup, slots_for
from cedr.kernels.hashing import SEED, absorb_bytes, scramble


def leaf_ids(content, name):
    """The ids of events of a type, from the hash of the rest."""
    text = name.encode()
    word = np.full(1, SEED, dtype=np.uint64)
    absorb_bytes(word, np.frombuffer(text, dtype=np.uint8), np.array([0, len(text)]), np.empty(0, dtype=np.bool_))
    return mixed(content, word[0])


@njit(cache=True)
def mixed(words, other):
    result = np.empty(len(words), dtype=np.int64)
    for i in range(len(words)):
        result[i] = np.int64(scramble(np.uint64(words[i]) + other))
    return result


@njit(cache=True)
def event_ids(content, copy):
    """Content and number among equal events as one hash; or any other two words."""
    result = np.empty(len(content), dtype=np.int64)
    for i in range(len(content)):
        result[i] = np.int64(scramble(np.uint64(content[i]) + np.uint64(copy[i]) * SEED))
    return result


@njit(cache=True)
def summands(ids):
    result = np.empty(len(ids), dtype=np.uint64)
    for i in range(len(ids)):
        result[i] = scramble(np.uint64(ids[i]) ^ SEED)
    return result


@njit(cache=True)
def idgen_of(totals):
    result = np.empty(len(totals), dtype=np.int64)
    for i in range(len(totals)):
        result[i] = np.int64(scramble(totals[i] + SEED))
    return result


def running_sums(words):
    """Sums of the words before each place, and of all."""
    return np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum(words, dtype=np.uint64)))


def numbers_of(words):
    """Equal words get equal small numbers, in the order in which they first come; and how many there are."""
    rows = words.view(np.int64).reshape(-1, 1)
    slots = np.zeros(slots_for(len(words)), dtype=np.uint64)
    numbers, _, size = lookup(slots, np.empty_like(rows), rows, words.view(np.uint64), 0, True)
    return numbers, size


@njit(cache=True)
def counted_before(numbers, size):
    """The number of equal numbers before each."""
    seen = np.zeros(size, dtype=np.int64)
    result = np.empty(len(numbers), dtype=np.int64)
    for i in range(len(numbers)):
        result[i] = seen[numbers[i]]
        seen[numbers[i]] += 1
    return result


@njit(cache=True)
def last_of_each(numbers, size, stored):
    """Each number after the first `stored` ones takes the last of those equal to it that is not taken yet, or -1."""
    last = np.full(size, -1, dtype=np.int64)
    before = np.empty(stored, dtype=np.int64)
    for i in range(stored):
        before[i] = last[numbers[i]]
        last[numbers[i]] = i
    taken = np.empty(len(numbers) - stored, dtype=np.int64)
    for j in range(len(taken)):
        at = last[numbers[stored + j]]
        taken[j] = at
        if at >= 0:
            last[numbers[stored + j]] = before[at]
    return taken
