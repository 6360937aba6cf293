"""Sorted rows that change a little at a time, in blocks with a directory (see `cedr.kernels.blocks`).

For state that is large compared with the chunks that change it. Where chunks are as large as the state, sorted arrays
that are merged in one pass are faster.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cedr.columnar.increments import BlockIncrements
from cedr.columnar.mapped import MEMORY
from cedr.kernels import blocks as kernels
from cedr.kernels.increments import current_rows, differing_keys, keys_of_every, rows_from

Matrix = np.ndarray[Any, np.dtype[np.int64]]
"""Rows of whole numbers: `(rows, columns)`."""

BLOCK = 64
"""Rows in a block at most. Tests set it to 4, so that short streams cross every boundary."""


class SortedBlocks:
    """Rows sorted by their first `depth` columns, which identify a row; other columns are added up, and rows whose
    column `zero` becomes 0 are gone."""

    def __init__(self, width: int, depth: int, zero: int, block: int | None = None) -> None:
        self.width, self.depth, self.zero = width, depth, zero
        self.room = block or BLOCK
        self.increments = BlockIncrements(depth)
        """What is stored of the rows, and which were touched since."""
        self.replace(np.empty((0, width), dtype=np.int64))

    def replace(self, rows: Matrix) -> None:
        """Sorted rows, with different keys, become the content."""
        self.increments.forget()
        self.block = self.room
        blocks = -(-len(rows) // kernels.rows_of_full(self.block))
        self.pool = self._pool(max(1, 2 * blocks))
        self.place, self.size, self.first = kernels.fill_pool(self.pool, rows, self.block, self.depth)
        self.used, self.free = blocks, np.empty(0, dtype=np.int64)
        self.rows = len(rows)

    def _pool(self, blocks: int) -> Matrix:
        """Room for blocks. The only place that allocates it."""
        return MEMORY.room((blocks * self.block, self.width))

    def _reserve(self, blocks: int) -> None:
        """Make sure that this many blocks more fit into the pool."""
        if (self.used + blocks) * self.block > len(self.pool):
            larger = max(2 * (len(self.pool) // self.block), self.used + blocks)
            self.pool = MEMORY.grown(self.pool, larger * self.block)
        MEMORY.trim()

    @property
    def directory(self) -> tuple[Matrix, int, Matrix, Matrix, Matrix]:
        """The first arguments of kernels that read."""
        return self.pool, self.block, self.place, self.size, self.first

    @property
    def nbytes(self) -> int:
        return int(self.pool.nbytes + self.place.nbytes + self.size.nbytes + self.first.nbytes)

    def add(self, rows: Matrix) -> None:
        """Add sorted rows; their keys may repeat."""
        if not len(rows):
            return
        if not len(self.place):
            nothing, out = np.empty((0, self.width), dtype=np.int64), np.empty_like(rows)
            n = kernels.merged(out, nothing, 0, 0, rows, 0, len(rows), self.depth, self.zero)
            self.replace(out[:n])
            return
        self._reserve(kernels.new_blocks(len(rows), len(self.place), self.block) - len(self.free))
        self.used, self.free, self.place, self.size, self.first = kernels.add(
            self.pool,
            self.used,
            self.free,
            self.block,
            self.place,
            self.size,
            self.first,
            self.depth,
            self.zero,
            np.ascontiguousarray(rows),
        )
        self.rows = int(self.size.sum())
        self.increments.touch(rows, self.rows)

    def flat(self) -> Matrix:
        """All rows, sorted."""
        found: Matrix = kernels.flat(self.pool, self.block, self.place, self.size)
        return found

    def between(self, low: Sequence[Matrix], high: Sequence[Matrix]) -> tuple[Matrix, Matrix]:
        """For each pair of keys the rows from the low key up to the high one, which is not included: the number of the
        pair and the row. Keys are given by column and may be shorter than those of rows; pairs are sorted by `low`."""
        lows, highs = np.column_stack(low), np.column_stack(high)
        which, rows = kernels.between(*self.directory, lows, highs, lows.shape[1])
        return which, rows

    def of_keys(self, keys: Matrix) -> Matrix:
        """The rows of sorted keys; those of keys without a row have zeros."""
        found: Matrix = current_rows(*self.directory, keys, self.depth)
        return found

    def every(self, count: int) -> Matrix:
        """The keys of the first row and of every so many rows after it."""
        found: Matrix = keys_of_every(*self.directory, count)
        return found

    def run(self, key: Sequence[int], count: int) -> Matrix:
        """So many rows from a key on, or all that are left."""
        found: Matrix = rows_from(*self.directory, np.array([key]), count)
        return found

    def save_as_changes_of(self, other: "SortedBlocks") -> None:
        """The content is much like that of other blocks, which are not used any more: save only what differs."""
        if other.increments.noted is not None:
            self.increments = other.increments
            self.increments.touch(differing_keys(other.flat(), self.flat(), self.depth), self.rows)
