"""Sorted rows that change a little at a time, in blocks with a directory (see `cedr.kernels.blocks`).

For state that is large compared with the chunks that change it. Where chunks are as large as the state, sorted arrays
that are merged in one pass are faster.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cedr.columnar.increments import BlockIncrements
from cedr.columnar.mapped import MEMORY
from cedr.kernels import blocks as kernels
from cedr.kernels import by_time, files, forgetting
from cedr.kernels.increments import current_rows, keys_of_every, rows_from

Matrix = np.ndarray[Any, np.dtype[np.int64]]
"""Rows of whole numbers: `(rows, columns)`."""
Mask = np.ndarray[Any, np.dtype[np.bool_]]
Arrays = tuple[Matrix, Matrix, Matrix, Matrix]

BLOCK = 32
"""Rows in a block at most: a row that is added moves half of them. Tests set it to 4, so that short streams cross every
boundary."""
SEGMENT_BITS = 6
"""Entries in a segment of the directory at most: two to the power of this. Tests set it to 1."""
AT_ONCE = 4_096
"""Rows that are added at once: each may need a block, for which there must be room before."""
SEGMENTS_AT_ONCE = 1_024
"""Segments of a pass over all rows before memory is looked at."""


class SortedBlocks:
    """Rows sorted by their first `depth` columns, which identify a row; other columns are added up, and rows whose
    column `zero` becomes 0 are gone."""

    def __init__(self, width: int, depth: int, zero: int) -> None:
        self.width, self.depth, self.zero = width, depth, zero
        self.block, self.bits = BLOCK, SEGMENT_BITS
        self.increments = BlockIncrements(depth)
        """What is stored of the rows, and which were touched since."""
        self.replace(np.empty((0, width), dtype=np.int64))

    def replace(self, rows: Matrix) -> None:
        """Sorted rows, with different keys, become the content."""
        self.increments.forget()
        blocks = -(-len(rows) // kernels.rows_of_full(self.block))
        self.numbers = np.zeros(10, dtype=np.int64)
        self.numbers[kernels.BLOCK], self.numbers[kernels.BITS] = self.block, self.bits
        self.pool = self._pool(max(1, 2 * blocks))
        self.entries, self.segments = self._directory(2 * -(-blocks // kernels.rows_of_full(1 << self.bits)) + 1)
        kernels.fill(*self.arrays, np.ascontiguousarray(rows))

    def _pool(self, blocks: int) -> Matrix:
        """Room for blocks. The only place that allocates it."""
        return MEMORY.room((blocks * self.block, self.width))

    def _directory(self, segments: int) -> tuple[Matrix, Matrix]:
        """Room for segments and their entries."""
        columns = kernels.KEY + self.depth
        return MEMORY.room((segments << self.bits, columns)), MEMORY.room((segments, columns))

    def _reserve(self, blocks: int) -> None:
        """Make sure that this many blocks more fit into the pool, and their entries into the directory."""
        used = int(self.numbers[kernels.USED])
        if (used + blocks - int(self.numbers[kernels.FREE])) * self.block > len(self.pool):
            larger = max(2 * (len(self.pool) // self.block), used + blocks)
            self.pool = MEMORY.grown(self.pool, larger * self.block)
        MEMORY.trim()
        segments = kernels.new_blocks(blocks, int(self.numbers[kernels.SEGMENTS]), 1 << self.bits)
        used = int(self.numbers[kernels.USED_SEGMENTS])
        if used + segments - int(self.numbers[kernels.FREE_SEGMENTS]) > len(self.segments):
            larger = max(2 * len(self.segments), used + segments)
            self.entries = MEMORY.grown(self.entries, larger << self.bits)
            self.segments = MEMORY.grown(self.segments, larger)

    @property
    def arrays(self) -> Arrays:
        """The first arguments of kernels."""
        return self.pool, self.entries, self.segments, self.numbers

    @property
    def in_file(self) -> bool:
        """Whether the blocks are in a file."""
        return MEMORY.place_of(self.pool) is not None

    def arrays_between(self, lows: Matrix, highs: Matrix) -> Arrays:
        """The same for kernels that only read, of each pair of keys the rows from the low one up to the high one. Keys
        may be shorter than those of rows. If the blocks are in a file, those that are needed are read from it."""
        if not len(lows) or not self.in_file:
            return self.arrays
        return self._read(files.entries_between(*self.arrays, lows, highs))

    def arrays_from(self, key: Matrix, count: int) -> Arrays:
        """The same of some rows from a key on, and the row behind them."""
        if not self.in_file:
            return self.arrays
        return self._read(files.entries_from(*self.arrays, key, count))

    def _read(self, wanted: Matrix) -> Arrays:
        """Blocks that are in a file, of some entries."""
        place, few = MEMORY.place_of(self.pool), np.zeros_like(self.numbers)
        if not len(wanted) or place is None:
            return self.arrays
        pool, entries, segments, complete = files.read_blocks(place.number, self.width, *self.arrays[1:], wanted, few)
        if not complete:
            raise MEMORY.unreadable()
        return pool, entries, segments, few

    @property
    def rows(self) -> int:
        return int(self.numbers[kernels.ROWS])

    @property
    def nbytes(self) -> int:
        return int(self.pool.nbytes + self.entries.nbytes + self.segments.nbytes)

    def add(self, rows: Matrix) -> None:
        """Add sorted rows; their keys may repeat."""
        if not len(rows):
            return
        if not self.rows:
            self.replace(kernels.summed(rows, self.depth, self.zero))
            return
        rows = np.ascontiguousarray(rows)
        start = 0
        while start < len(rows):
            end = kernels.end_of_equal(rows, start + AT_ONCE, self.depth)
            some, start = rows[start:end], end
            self._reserve(kernels.new_blocks(len(some), int(self.numbers[kernels.USED]), self.block))
            if self.in_file:
                files.request_blocks(*self.arrays, some, 0)
            kernels.add(*self.arrays, self.zero, some)
        self.increments.touch(rows, self.rows)

    def change(self, old: Matrix, new: Matrix) -> None:
        """Put sorted rows in the place of others that are there."""
        self.add(forgetting.difference(old, new, self.depth))

    def remove(self, rows: Matrix) -> None:
        """Remove sorted rows that are there."""
        self.change(rows, rows[:0])

    def take_until(self, time: int) -> Matrix:
        """Remove the first rows, those whose first number is not after a time, and return them."""
        count = by_time.rows_until(*self.arrays, time) if self.rows else 0
        rows: Matrix = by_time.take_head(*self.arrays, count)
        if count:
            self.increments.touch(rows, self.rows)
        return rows

    def ended(self, key: Matrix, count: int, column: int, by: int) -> tuple[Matrix, bool]:
        """Of the next rows from a key on those whose number in a column is at most `by`. `key` moves behind all that
        were looked at; the second result is whether any are left."""
        found: tuple[Matrix, bool] = forgetting.ended_rows(*self.arrays_from(key, count), key, count, column, by)
        return found

    def mark(self, column: int, used: Mask) -> None:
        """Mark the numbers that a column has."""
        for begin, end in self._parts(used):
            forgetting.mark(*self.arrays, begin, end, column, used)

    def renumber(self, column: int, numbers: Matrix) -> None:
        """Give the numbers of a column new ones, in the same order. Negative ones are not numbers and stay."""
        for begin, end in self._parts(numbers):
            forgetting.renumber(*self.arrays, begin, end, column, numbers)
        self.increments.forget()

    def _parts(self, other: Any) -> Iterator[tuple[int, int]]:
        """All segments, so many at a time that memory has room for them and for another array, which they use."""
        soon = SEGMENTS_AT_ONCE * (self.block << self.bits) * self.width * 8 + other.nbytes
        last = int(self.numbers[kernels.SEGMENTS])
        for begin in range(0, last, SEGMENTS_AT_ONCE):
            MEMORY.trim(soon)
            yield begin, min(begin + SEGMENTS_AT_ONCE, last)
        MEMORY.trim()

    def flat(self) -> Matrix:
        """All rows, sorted."""
        return self.head(self.rows)

    def head(self, count: int) -> Matrix:
        """The first rows."""
        found: Matrix = kernels.head(*self.arrays, count)
        return found

    def between(self, low: Sequence[Matrix], high: Sequence[Matrix]) -> tuple[Matrix, Matrix]:
        """For each pair of keys the rows from the low key up to the high one, which is not included: the number of the
        pair and the row. Keys are given by column and may be shorter than those of rows; pairs are sorted by `low`."""
        lows, highs = np.column_stack(low), np.column_stack(high)
        which, rows = kernels.between(*self.arrays_between(lows, highs), lows, highs, lows.shape[1])
        return which, rows

    def of_keys(self, keys: Matrix) -> Matrix:
        """The rows of sorted keys; those of keys without a row have zeros."""
        found: Matrix = current_rows(*self.arrays, keys, self.depth)
        return found

    def every(self, count: int) -> Matrix:
        """The keys of the first row and of every so many rows after it."""
        found: Matrix = keys_of_every(*self.arrays, count)
        return found

    def run(self, key: Sequence[int], count: int) -> Matrix:
        """So many rows from a key on, or all that are left."""
        found: Matrix = rows_from(*self.arrays_from(np.array([key]), count), np.array([key]), count)
        return found

    def of_groups(self, groups: Matrix) -> Matrix:
        """The rows of sorted groups, which are the first column."""
        return self.between([groups], [groups + 1])[1]
