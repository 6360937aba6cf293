"""Ragged pairs: pairs of numbers by key, each key's pairs side by side, in an order of their own.

A key is a small number. Its pairs are replaced as a whole, so that a change costs what the keys it concerns hold, and
not what all do. The new ones are put at the end, and what they replace is waste, until there is more waste than use.

    first[k], size[k]   where the pairs of k are in the arrays `one` and `two`
"""

import numpy as np
from numba import njit

from cedr.contracts import DEBUG, sorted_by

SPARE = 1024


class RaggedPairs:
    def __init__(self) -> None:
        self.first = np.zeros(0, dtype=np.int64)
        self.size = np.zeros(0, dtype=np.int64)
        self.one = np.empty(0, dtype=np.int64)
        self.two = np.empty(0, dtype=np.int64)
        self.used = self.live = 0

    def __len__(self) -> int:
        """How many pairs there are."""
        return self.live

    @property
    def nbytes(self) -> int:
        return self.first.nbytes + self.size.nbytes + self.one.nbytes + self.two.nbytes

    def grow(self, keys):
        """Reserve room for this number of keys."""
        if len(self.first) < keys:
            more = np.zeros(max(keys, 2 * len(self.first)) - len(self.first), dtype=np.int64)
            self.first, self.size = np.concatenate((self.first, more)), np.concatenate((self.size, more))

    def of(self, keys):
        """Key, one and two of all pairs of these keys, in their order."""
        return gathered(self.first, self.size, self.one, self.two, keys)

    def all(self):
        return self.of(np.arange(len(self.first)))

    def put(self, keys, key, one, two):
        """Replace the pairs of these keys, which are sorted; so is `key`, and all of it is among them."""
        assert not DEBUG or (sorted_by(keys) and sorted_by(key) and np.isin(key, keys).all()), "keys are not sorted"
        if self.used + len(key) > len(self.one):
            self._make_room(len(key))
        before = put(self.first, self.size, self.one, self.two, self.used, keys, key, one, two)
        self.used += len(key)
        self.live += len(key) - before

    def _make_room(self, more):
        """Waste goes, and the arrays become large enough that this is rare."""
        key, one, two = self.all()
        room = np.empty(SPARE + 2 * len(key) + 2 * more, dtype=np.int64)
        self.one, self.two = room, room.copy()
        put(self.first, self.size, self.one, self.two, 0, np.arange(len(self.first)), key, one, two)
        self.used = len(key)

    def fill(self, keys, key, one, two):
        """Hold exactly these pairs, of this number of keys."""
        self.first, self.size = np.zeros(keys, dtype=np.int64), np.zeros(keys, dtype=np.int64)
        self.used = self.live = 0
        self.put(np.arange(keys), key, one, two)


@njit(cache=True)
def gathered(first, size, one, two, keys):
    n = 0
    for k in keys:
        n += size[k]
    key = np.empty(n, dtype=np.int64)
    a = np.empty(n, dtype=np.int64)
    b = np.empty(n, dtype=np.int64)
    at = 0
    for k in keys:
        for i in range(first[k], first[k] + size[k]):
            key[at], a[at], b[at] = k, one[i], two[i]
            at += 1
    return key, a, b


@njit(cache=True)
def put(first, size, one, two, at, keys, key, new_one, new_two):
    """Write pairs from a place on; returns how many these keys had."""
    before = i = 0
    for k in keys:
        before += size[k]
        first[k] = at + i
        begin = i
        while i < len(key) and key[i] == k:
            one[at + i], two[at + i] = new_one[i], new_two[i]
            i += 1
        size[k] = i - begin
    return before
