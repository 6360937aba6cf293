"""Changes of numbers that are known before their time: taken out when it has come, whatever else waits."""

import numpy as np

from cedr.columnar.blocks import Matrix, SortedBlocks
from cedr.columnar.chunk import Times
from cedr.temporal.time import MIN

Changes = tuple[Times, Times, Times]
"""Numbers, times, and by how much each changes then; sorted."""


class DueChanges:
    """Rows `(time, number, change)` in blocks, by port."""

    def __init__(self, ports: int) -> None:
        self._blocks = [SortedBlocks(3, 2, 2) for _ in range(ports)]

    @property
    def nbytes(self) -> int:
        return sum([blocks.nbytes for blocks in self._blocks])

    @property
    def rows(self) -> int:
        return sum([blocks.rows for blocks in self._blocks])

    def add(self, port: int, changes: Changes) -> None:
        number, time, by = changes
        rows = np.column_stack((time, number, by))
        self._blocks[port].add(rows[np.lexsort((number, time))])

    def take(self, port: int, before: int) -> Matrix:
        """Take out what changes before a time, in the order of time."""
        return self._blocks[port].take_until(max(before, MIN + 1) - 1)

    def all(self, port: int) -> Changes:
        rows = self._blocks[port].flat()
        time, number, by = rows[np.lexsort((rows[:, 0], rows[:, 1]))].T.copy()
        return number, time, by

    def replace(self, port: int, changes: Changes) -> None:
        number, time, by = changes
        rows = np.column_stack((time, number, by))
        self._blocks[port].replace(rows[np.lexsort((number, time))])
