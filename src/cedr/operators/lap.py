"""Forgetting in blocks: what is settled is dropped in laps over the state, in steps that come with the chunks.

A lap begins when a quarter as many rows were added as there are. So what could be dropped is never much of the state,
no chunk has to wait for a pass over all of it, and a row that is added pays for a few that are looked at.
"""

import numpy as np

from cedr.columnar.blocks import Matrix, SortedBlocks
from cedr.columnar.chunk import Times
from cedr.temporal.time import INF, MIN

AT_ONCE = 2_048
"""Rows that a step of a lap looks at, at least. Tests set it to 1."""
PER_ROW = 16
"""And for each row that was added since the last step: so a lap is over long before as many rows were added as there
are, however they come."""


class Lap:
    """What is settled is forgotten by laps over all groups, a few of them in each step."""

    def __init__(self) -> None:
        self.next = 0
        """The first group of this lap that has not been looked at."""
        self.under_way = False
        self._added = 0
        """Rows since the last lap began."""
        self._paid = 0
        """Rows to look at, for those that were added since the last step."""

    def add(self, rows: int) -> None:
        """Rows were added."""
        self._added += rows
        self._paid += PER_ROW * rows

    def begins(self, rows: int) -> bool:
        """Whether a lap is under way or begins, as enough rows were added that what is settled may be a good part."""
        if not self.under_way and 4 * self._added >= rows:
            self.under_way, self.next, self._added, self._paid = True, 0, 0, 0
        return self.under_way

    def step(self) -> int:
        """Rows to look at now."""
        budget, self._paid = max(AT_ONCE, self._paid), 0
        return budget

    def groups(self, rows: int, groups: int) -> Times:
        """The next groups, of a state with some rows and groups."""
        end = min(groups, self.next + max(1, self.step() * groups // max(rows, 1)))
        some = np.arange(self.next, end)
        self.next, self.under_way = end, end < groups
        return some


class RowLap(Lap):
    """The same for rows of blocks that are forgotten one by one: by their order, whatever groups they belong to."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.key = np.empty((1, depth), dtype=np.int64)
        """Where the next step begins."""

    def begins(self, rows: int) -> bool:
        new = not self.under_way
        if super().begins(rows) and new:
            self.key[:] = MIN
        return self.under_way

    def renumber_groups(self, numbers: Times) -> None:
        """The first column has new numbers, in the same order; -1 for those that are gone."""
        group = int(self.key[0, 0])
        if self.under_way and group > MIN:
            self.key[0, 0] = np.count_nonzero(numbers[:group] >= 0)
            if numbers[group] < 0:
                self.key[0, 1:] = MIN

    def ended(self, blocks: SortedBlocks, count: int, column: int, by: int) -> Matrix:
        """Of the next rows those whose time in a column is not after another."""
        found, self.under_way = blocks.ended(self.key, count, column, by)
        return found

    def next_rows(self, blocks: SortedBlocks, count: int) -> Matrix:
        """All of the next rows."""
        return self.ended(blocks, count, 0, INF)
