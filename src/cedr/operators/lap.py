"""Forgetting in blocks: what is settled is dropped in laps over the state, a part of which comes with each chunk.

A lap begins when a quarter as many rows were added as there are. So what could be dropped is never much of the state,
no chunk has to wait for a pass over all of it, and a row that is added pays for a few that are looked at.
"""

import numpy as np

from cedr.columnar.blocks import Matrix, SortedBlocks
from cedr.columnar.chunk import Times
from cedr.temporal.time import INF, MIN

AT_ONCE = 2_048
"""Rows that a chunk looks at to forget, at least. Tests set it to 1."""
PER_ROW = 16
"""And for each of its own rows: a lap ends long before as many rows have come as there were. Tests set it to 1."""


class Lap:
    """What is settled is forgotten by laps over all groups, a few of them with each chunk."""

    def __init__(self) -> None:
        self.next = 0
        """The first group of this lap that has not been looked at."""
        self.under_way = False
        self.added = 0
        """Rows since the last lap began."""

    def budget(self, arrived: int) -> int:
        """Rows to look at, when a chunk of `arrived` rows pays for it."""
        return max(AT_ONCE, PER_ROW * arrived)

    def begins(self, rows: int) -> bool:
        """Whether a lap is under way or begins, as enough rows were added that what is settled may be a good part."""
        if not self.under_way and 4 * self.added >= rows:
            self.under_way, self.next, self.added = True, 0, 0
        return self.under_way

    def groups(self, rows: int, groups: int, arrived: int) -> Times:
        """The next groups, of a state with some rows and groups, when a chunk of `arrived` rows pays for them."""
        end = min(groups, self.next + max(1, self.budget(arrived) * groups // max(rows, 1)))
        some = np.arange(self.next, end)
        self.next, self.under_way = end, end < groups
        return some


class RowLap(Lap):
    """The same for rows of blocks that are forgotten one by one: by their order, whatever groups they belong to."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.key = np.empty((1, depth), dtype=np.int64)

    def begins(self, rows: int) -> bool:
        new = not self.under_way
        if super().begins(rows) and new:
            self.key[:] = MIN
        return self.under_way

    def ended(self, blocks: SortedBlocks, arrived: int, column: int, by: int) -> Matrix:
        """Of the next rows those whose time in a column is not after another."""
        found, self.under_way = blocks.ended(self.key, self.budget(arrived), column, by)
        return found

    def next_rows(self, blocks: SortedBlocks, arrived: int) -> Matrix:
        """All of the next rows."""
        return self.ended(blocks, arrived, 0, INF)
