"""What is written of sorted blocks for a snapshot: the rows that have changed since the last.

Rows with random keys are in nearly every block, so writing the blocks that changed would write everything. Instead the
saved form is

    pieces   rows with keys in disjoint ranges, together all keys, each as of the number of a snapshot
    changes  the rows whose keys were touched by the snapshot of a number, as they were then: whole rows, so that
             applying them twice does no harm. A row that is gone has 0 in its column `zero`

and the content of a piece is that of its table with the changes that are newer, in their order. Each snapshot writes
its changes, and writes a few pieces again, in turn, so that changes older than all pieces need not be kept: the bytes
are at most `1 + REWRITTEN` times those of the changes at every snapshot, not only on average, and changes hold fewer
rows than the pieces. Small changes are merged, so that there are not many tables.

Only keys are noted between two snapshots; rows are read when one is made. Nothing is noted before the first.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cedr.columnar.stored import StoredTable, is_afresh, merge_from
from cedr.kernels import increments as kernels

if TYPE_CHECKING:
    from cedr.columnar.blocks import SortedBlocks

Matrix = np.ndarray[Any, np.dtype[np.int64]]
Key = tuple[int, ...]
LOWEST = (-(2**63),)

SMALL = 64 << 10
"""Bytes of content that are always written whole. Tests set it to 0."""
REWRITTEN = 1.5
"""Rows of pieces written again for each changed row."""
PIECES = 128
"""Pieces have at least this part of all rows when they are written again."""
MANY_CHANGES = 1 / 3
"""When a larger part of the rows has changed, all of them are written."""
FEW_BYTES = 16 << 10
"""Pieces are not smaller, and changes of up to this size are merged, or of up to half of a piece. Tests set it to 0."""
NOTED = 4096
"""Keys that are noted before those that repeat are dropped."""


class SavedPiece(NamedTuple):
    """Rows with keys from `low` on, up to the next piece; None is the lowest key."""

    low: Key | None
    number: int
    table: StoredTable


class SavedChanges(NamedTuple):
    """Rows whose keys were touched, as of a snapshot."""

    number: int
    table: StoredTable


class SavedBlocks(NamedTuple):
    """The saved form of sorted blocks, which never changes."""

    width: int
    depth: int
    zero: int
    pieces: tuple[SavedPiece, ...]
    changes: tuple[SavedChanges, ...]


class NotedKeys:
    """Sorted keys that were touched, each once; or too many of them."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self._sorted: Matrix = np.empty((0, depth), dtype=np.int64)
        self._more: list[Matrix] = []
        self._rows = 0

    def add(self, rows: Matrix) -> None:
        self._more.append(rows[:, : self.depth].copy())
        self._rows += len(rows)

    @property
    def should_sort(self) -> bool:
        """Whether many have been added since they were sorted."""
        return self._rows > max(NOTED, len(self._sorted)) or len(self._more) > NOTED

    def sorted(self) -> Matrix:
        if self._more:
            keys = np.concatenate((self._sorted, *self._more))
            keys = keys[np.lexsort(keys.T[::-1])]
            self._sorted, self._more, self._rows = keys[kernels.each_last(keys, self.depth)], [], 0
        return self._sorted


class BlockIncrements:
    """What is stored of sorted blocks, and what was touched since."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.version = 0
        """Goes up with every change of the blocks."""
        self.forget()

    def forget(self) -> None:
        """Nothing is stored: the next snapshot has everything."""
        self.version += 1
        self.pieces: list[SavedPiece] = []
        self.changes: list[SavedChanges] = []
        self.number, self.credit = 0, 0.0
        self.cursor: Key | None = None
        self.noted: NotedKeys | None = None
        self._keys: dict[int, Matrix] = {}
        """By number, the keys of changes that are small enough to be merged."""

    def touch(self, rows: Matrix, held: int) -> None:
        """Rows were added; `held` is the number of rows now."""
        self.version += 1
        if self.noted is not None:
            self.noted.add(rows)
            if self.noted.should_sort and len(self.noted.sorted()) > max(NOTED, MANY_CHANGES * held):
                self.forget()

    # --- writing -----------------------------------------------------------------------------------------------------

    def save(self, blocks: "SortedBlocks") -> SavedBlocks:
        """The content now; what is stored already is referred to."""
        if blocks.rows * blocks.width * 8 <= SMALL:
            self.forget()
            self.pieces = [SavedPiece(None, 0, StoredTable.of(blocks.flat()))]
        elif self.noted is None or is_afresh() or not self._is_there():
            self._save_all(blocks)
        else:
            keys = self.noted.sorted()
            if len(keys) > MANY_CHANGES * blocks.rows:
                self._save_all(blocks)
            elif len(keys):
                self._save_changes(blocks, keys)
        return SavedBlocks(blocks.width, blocks.depth, blocks.zero, tuple(self.pieces), tuple(self.changes))

    def _is_there(self) -> bool:
        """Whether all tables are stored or in memory: they may not be if writing them has failed."""
        return all(p.table.is_there for p in self.pieces) and all(c.table.is_there for c in self.changes)

    def _save_all(self, blocks: "SortedBlocks") -> None:
        """Tables are read from the blocks when they are written, one after the other."""
        self.forget()
        self.noted = NotedKeys(self.depth)
        version, each = self.version, max(-(-blocks.rows // PIECES), FEW_BYTES // (8 * blocks.width))

        def still() -> bool:
            return self.version == version

        lows = [tuple(key) for key in blocks.every(each).tolist()]
        for n, low in enumerate(lows):
            rows = min(each, blocks.rows - n * each)
            later = StoredTable(rows, blocks.width, rows * blocks.width * 8, partial(blocks.run, low, each), still)
            self.pieces.append(SavedPiece(low if n else None, 0, later))

    def _save_changes(self, blocks: "SortedBlocks", keys: Matrix) -> None:
        self.noted = NotedKeys(self.depth)
        self.number += 1
        self._add_changes(blocks, keys)
        self.credit += REWRITTEN * len(keys)
        if self.credit >= blocks.rows / PIECES:
            self._rewrite(blocks)
        oldest = min(piece.number for piece in self.pieces)
        self.changes = [changes for changes in self.changes if changes.number > oldest]
        self._keys = {c.number: self._keys[c.number] for c in self.changes if c.number in self._keys}

    def _add_changes(self, blocks: "SortedBlocks", keys: Matrix) -> None:
        """Together with the last changes, if these are many and small."""
        most = max(blocks.rows // (2 * PIECES), FEW_BYTES // (8 * blocks.width), 1)
        sizes = [c.table.rows if c.number in self._keys else most + 1 for c in self.changes]
        start = merge_from([*sizes, len(keys)], most)
        if merged := self.changes[start:]:
            noted = NotedKeys(self.depth)
            for some in (*(self._keys[c.number] for c in merged), keys):
                noted.add(some)
            keys = noted.sorted()
        if len(keys) <= most:
            self._keys[self.number] = keys
        self.changes[start:] = [SavedChanges(self.number, StoredTable.of(blocks.of_keys(keys)))]

    def _rewrite(self, blocks: "SortedBlocks") -> None:
        """The next blocks as a piece, with as many rows as there is credit for, or up to the end."""
        count = max(1, int(self.credit))
        rows = blocks.run(self.cursor or LOWEST * self.depth, count + 1)
        high = tuple(rows[count, : self.depth].tolist()) if len(rows) > count else None
        piece = SavedPiece(self.cursor, self.number, StoredTable.of(rows[:count].copy()))
        self.pieces = with_piece(self.pieces, piece, high)
        self.cursor, self.credit = high, 0.0

    # --- going on ----------------------------------------------------------------------------------------------------

    def adopt(self, saved: SavedBlocks) -> None:
        """The content is that of a saved form."""
        self.forget()
        self.pieces, self.changes = list(saved.pieces), list(saved.changes)
        self.number = max(*(piece.number for piece in self.pieces), *(some.number for some in self.changes), 0)
        self.noted = NotedKeys(self.depth)
        newest = [i for i, piece in enumerate(self.pieces) if piece.number == self.number]
        if newest and len(newest) < len(self.pieces):
            after = newest[-1] + 1
            self.cursor = self.pieces[after].low if after < len(self.pieces) else None


def with_piece(pieces: Sequence[SavedPiece], new: SavedPiece, high: Key | None) -> list[SavedPiece]:
    """Pieces with a new one for the keys from its `low` up to `high`; those it covers partly begin or end there."""
    before = [piece for piece in pieces if is_before(piece.low, new.low)]
    if high is None:
        return [*before, new]
    after = [piece for piece in pieces if piece.low is not None and piece.low >= high]
    if not after or after[0].low != high:
        (*_, cut) = [piece for piece in pieces if is_before(piece.low, high)]
        after.insert(0, cut._replace(low=high))
    return [*before, new, *after]


def is_before(low: Key | None, other: Key | None) -> bool:
    return other is not None and (low is None or low < other)


# --- reading ---------------------------------------------------------------------------------------------------------


def rows_of(saved: SavedBlocks, table_of: Any = StoredTable.table) -> Matrix:
    """The content of a saved form; `table_of` returns the rows of a table."""
    changes = [(some.number, table_of(some.table)) for some in saved.changes]
    found = []
    for n, piece in enumerate(saved.pieces):
        high = saved.pieces[n + 1].low if n + 1 < len(saved.pieces) else None
        rows = between(table_of(piece.table), piece.low, high, saved.depth)
        newer = [between(some, piece.low, high, saved.depth) for number, some in changes if number > piece.number]
        found.append(kernels.overlaid(rows, newest(newer, saved), saved.depth, saved.zero))
    return np.concatenate(found) if found else np.empty((0, saved.width), dtype=np.int64)


def between(rows: Matrix, low: Key | None, high: Key | None, depth: int) -> Matrix:
    begin = 0 if low is None else kernels.position(rows, np.array([low]), depth)
    end = len(rows) if high is None else kernels.position(rows, np.array([high]), depth)
    return rows[begin : max(begin, end)]


def newest(changes: Sequence[Matrix], saved: SavedBlocks) -> Matrix:
    """Of changed rows, given in the order of their snapshots, the last with each key."""
    rows = np.concatenate([np.empty((0, saved.width), dtype=np.int64), *changes])
    rows = rows[np.lexsort(rows[:, : saved.depth].T[::-1])]
    return rows[kernels.each_last(rows, saved.depth)]


# --- as columns ------------------------------------------------------------------------------------------------------

Span = int | tuple[int, int]
"""A column, or the columns from one up to another as a matrix."""


class BlockColumns(NamedTuple):
    """How the rows of blocks are the arrays of a snapshot: by position or by name.

    more     values that are the same for all rows
    repeat   the column with the number of copies, if each is a row of its own
    above    a column and a number: only rows whose value is larger count
    order    the columns by which the arrays are sorted, if not as the rows are
    """

    columns: tuple[Span, ...]
    names: tuple[str, ...] = ()
    more: dict[str, str] = {}  # noqa: RUF012  # never changed
    repeat: int | None = None
    above: tuple[int, int] | None = None
    order: tuple[int, ...] = ()


class SavedColumns(NamedTuple):
    """Blocks in the place of arrays of a snapshot."""

    blocks: SavedBlocks
    view: BlockColumns


class ColumnTuple(tuple[Any, ...]):
    """Arrays that were read from saved blocks, which are `source`; a changed copy is a plain tuple."""

    source: SavedColumns


class ColumnDict(dict[str, Any]):
    """The same by name."""

    source: SavedColumns


def as_columns(source: SavedColumns, rows: Matrix) -> ColumnTuple | ColumnDict:
    """The arrays that operators save when their state is not in blocks."""
    view = source.view
    if view.above is not None:
        rows = rows[rows[:, view.above[0]] > view.above[1]]
    if view.order:
        rows = rows[np.lexsort([rows[:, column] for column in reversed(view.order)])]
    if view.repeat is not None:
        rows = np.repeat(rows, rows[:, view.repeat], axis=0)
    arrays = [np.ascontiguousarray(rows[:, c] if isinstance(c, int) else rows[:, slice(*c)]) for c in view.columns]
    found = ColumnDict(view.more | dict(zip(view.names, arrays, strict=True))) if view.names else ColumnTuple(arrays)
    found.source = source
    return found


def source_of(saved: Any) -> SavedBlocks | None:
    """The saved blocks that arrays were read from."""
    return saved.source.blocks if isinstance(saved, ColumnTuple | ColumnDict) else None
