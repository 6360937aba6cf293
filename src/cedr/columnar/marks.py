"""Which of many small numbers are marked: marking and reading cost what is marked, not how many numbers there are."""

from typing import Any

import numpy as np

Numbers = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]

PASS = 8
"""A pass over all numbers is faster than sorting the marked ones if one in this many is marked."""


class Marks:
    def __init__(self, size: int = 0, *, marked: bool = False) -> None:
        self.size = size
        self._mask: Mask = np.full(size, marked)
        self._added: list[Numbers] = [np.arange(size)] if marked and size else []
        """What was marked since the marks were cleared; a number may be there several times."""

    def __bool__(self) -> bool:
        return bool(self._added)

    def grow(self, size: int) -> None:
        """Have marks for numbers up to this size."""
        if size > len(self._mask):
            room = np.zeros(max(size, 2 * len(self._mask)) - len(self._mask), dtype=np.bool_)
            self._mask = np.concatenate((self._mask, room))
        self.size = size

    def add(self, numbers: Numbers) -> None:
        if len(numbers):
            self._mask[numbers] = True
            self._added.append(numbers)

    def numbers(self) -> Numbers:
        """The marked numbers in order."""
        if not self._added:
            return np.empty(0, dtype=np.int64)
        if PASS * sum(map(len, self._added)) > self.size:
            return np.flatnonzero(self._mask[: self.size])
        return np.unique(np.concatenate(self._added))

    def clear(self) -> None:
        for numbers in self._added:
            self._mask[numbers] = False
        self._added = []

    def renumbered(self, numbers: Numbers, size: int) -> "Marks":
        """The same marks after the numbers have changed; -1 for those that are gone."""
        marks, kept = Marks(size), numbers[self.numbers()]
        marks.add(kept[kept >= 0])
        return marks
