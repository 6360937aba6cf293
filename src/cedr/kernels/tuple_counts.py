"""The tuples a stream has emitted and may still adjust: the number of each (start, payload number, end).

An open-addressing hash table as four arrays. A count of -1 marks a free slot, 0 a tuple that is gone; such slots, and
those of tuples that can no longer be adjusted, are freed when the table is full and rebuilt. So the cost of a
chunk does not depend on how much is stored.
"""

from typing import Any

import numpy as np
from numba import njit

from cedr.kernels.mixing import mix

FREE = -1
SMALLEST = 1024

Words = np.ndarray[Any, np.dtype[np.int64]]


class TupleCounts:
    def __init__(self) -> None:
        self._allocate(0)

    def _allocate(self, rows: int) -> None:
        size = max(SMALLEST, 1 << int(4 * rows).bit_length())
        self.vs, self.pid, self.end = (np.empty(size, dtype=np.int64) for _ in range(3))
        self.count = np.full(size, FREE, dtype=np.int64)
        self.used = 0

    def __len__(self) -> int:
        return self.used

    @property
    def nbytes(self) -> int:
        return 4 * self.count.nbytes

    def has_room(self, rows: int) -> bool:
        return (self.used + rows) * 2 <= len(self.count)

    def live(self, since: int) -> tuple[Words, Words, Words, Words]:
        """Start, payload number, end and count of the tuples that end at `since` or later."""
        found = np.flatnonzero((self.count > 0) & (self.end >= since))
        return self.vs[found], self.pid[found], self.end[found], self.count[found]

    def refill(self, tuples: tuple[Words, Words, Words, Words], room: int) -> None:
        """Replace the content by these tuples, with room for this number of rows more."""
        self._allocate(len(tuples[0]) + room)
        self.used = fill(self.vs, self.pid, self.end, self.count, *tuples)

    def work_in(self, vs: Words, pid: Words, old: Words, new: Words, waiting: int = 0) -> Words:
        """Work rows in, in order; the first `waiting` are adjusts whose tuple was not there.

        Returns the rows that found their tuple, in an order in which each finds it. The others change nothing.
        """
        applied: Words
        applied, self.used = work_in(self.vs, self.pid, self.end, self.count, self.used, vs, pid, old, new, waiting)
        return applied

    def take_back(self, applied: Words, vs: Words, pid: Words, old: Words, new: Words) -> None:
        """Undo `work_in`: every edge backwards, the last one first."""
        back = applied[::-1]
        self.work_in(vs[back], pid[back], new[back], old[back])


@njit(cache=True)
def slot_of(t_vs, t_pid, t_end, t_count, vs, pid, end):
    """Where this tuple is, or where it belongs."""
    mask = np.uint64(len(t_count) - 1)
    slot = mix(vs, pid, end) & mask
    while t_count[slot] != FREE and not (t_end[slot] == end and t_vs[slot] == vs and t_pid[slot] == pid):
        slot = (slot + np.uint64(1)) & mask
    return slot


@njit(cache=True)
def put(t_vs, t_pid, t_end, t_count, vs, pid, end, number):
    """Add tuples; returns 1 if that took a free slot."""
    slot = slot_of(t_vs, t_pid, t_end, t_count, vs, pid, end)
    if t_count[slot] != FREE:
        t_count[slot] += number
        return 0
    t_vs[slot], t_pid[slot], t_end[slot], t_count[slot] = vs, pid, end, number
    return 1


@njit(cache=True)
def fill(t_vs, t_pid, t_end, t_count, vs, pid, end, number):
    used = 0
    for i in range(len(vs)):
        used += put(t_vs, t_pid, t_end, t_count, vs[i], pid[i], end[i], number[i])
    return used


@njit(cache=True)
def hold(heads, following, vs, pid, old, row):
    bucket = mix(vs[row], pid[row], old[row]) & np.uint64(len(heads) - 1)
    following[row] = heads[bucket]
    heads[bucket] = row


@njit(cache=True)
def release(heads, following, vs, pid, old, row, end):
    """Take out a held adjust of the tuple that starts as `row` does and ends at `end`; -1 when there is none."""
    bucket = mix(vs[row], pid[row], end) & np.uint64(len(heads) - 1)
    before, held = -1, heads[bucket]
    while held >= 0 and not (old[held] == end and vs[held] == vs[row] and pid[held] == pid[row]):
        before, held = held, following[held]
    if held >= 0:
        if before < 0:
            heads[bucket] = following[held]
        else:
            following[before] = following[held]
    return held


@njit(cache=True)
def work_in(t_vs, t_pid, t_end, t_count, used, vs, pid, old, new, waiting):
    n = len(vs)
    adjusts = 0
    for i in range(n):
        adjusts += old[i] != vs[i]
    buckets = 16
    while buckets < 2 * adjusts:
        buckets *= 2
    heads = np.full(buckets, np.int64(-1))
    following = np.empty(n if adjusts else 0, dtype=np.int64)
    for i in range(waiting):
        hold(heads, following, vs, pid, old, i)
    held = waiting
    applied = np.empty(n, dtype=np.int64)
    found = 0
    for i in range(waiting, n):
        if old[i] != vs[i]:
            slot = slot_of(t_vs, t_pid, t_end, t_count, vs[i], pid[i], old[i])
            if t_count[slot] <= 0:
                hold(heads, following, vs, pid, old, i)
                held += 1
                continue
            t_count[slot] -= 1
        row = i
        while row >= 0:  # the tuple moves on as far as adjusts wait for it
            applied[found] = row
            found += 1
            end = new[row]
            if end == vs[i]:
                break
            row = release(heads, following, vs, pid, old, i, end) if held else -1
            if row >= 0:
                held -= 1
            else:
                used += put(t_vs, t_pid, t_end, t_count, vs[i], pid[i], end, 1)
    return applied[:found], used
