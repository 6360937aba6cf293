"""Tables that are written once and referred to later, and when a snapshot refers to them.

A snapshot that is written to a checkpoint every few micro-batches should cost what has changed since the last. So its
tree has a `StoredTable` in the place of a table that stays: it holds the table until it is written, and then only knows
where it is. Inside `incremental()`, `snapshot()` returns such a tree; elsewhere it returns plain arrays and frames.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import polars as pl

MERGED = 8
"""Tables of a similar size that are merged into one."""
MANY_TABLES = 256
"""A table with at least this part of all rows is not merged any more, unless it has `FEW_ROWS`."""
FEW_ROWS = 512

_mode: ContextVar[str] = ContextVar("increments", default="")
INCREMENT, AFRESH = "increment", "afresh"


@contextmanager
def incremental(afresh: bool = False) -> Iterator[None]:
    """Snapshots refer to what is stored; `afresh`: they have everything, because what was stored is gone."""
    token = _mode.set(AFRESH if afresh else INCREMENT)
    try:
        yield
    finally:
        _mode.reset(token)


def is_incremental() -> bool:
    return bool(_mode.get())


def is_afresh() -> bool:
    return _mode.get() == AFRESH


class LostTableError(Exception):
    """A table is neither in memory nor where it was stored."""


class StoredTable:
    """A table that never changes. Until it is stored, `make` returns it, as long as `valid` returns True."""

    def __init__(
        self,
        rows: int,
        width: int | None,
        nbytes: int,
        make: Callable[[], Any],
        valid: Callable[[], bool] = lambda: True,
    ) -> None:
        self.rows, self.width, self.nbytes = rows, width, nbytes
        """The width is that of an array of whole numbers; None is a frame."""
        self._make: Callable[[], Any] | None = make
        self._valid = valid
        self.place: Any = None
        """Where it is stored; the store decides what that means."""

    @staticmethod
    def of(table: Any) -> "StoredTable":
        """A table in memory: rows of whole numbers or a frame."""
        if isinstance(table, pl.DataFrame):
            return StoredTable(table.height, None, int(table.estimated_size()), lambda: table)
        return StoredTable(len(table), table.shape[1], int(table.nbytes), lambda: table)

    @staticmethod
    def at(table: Any, place: Any) -> "StoredTable":
        """A table that was read from a place; it is not kept."""
        found = StoredTable.of(table)
        found.store(place)
        return found

    @property
    def in_memory(self) -> bool:
        return self._make is not None and self._valid()

    @property
    def is_there(self) -> bool:
        return self.place is not None or self.in_memory

    def table(self) -> Any:
        if self._make is None or not self._valid():
            raise LostTableError
        return self._make()

    def keep(self) -> None:
        """It is so small that it is written each time, and must stay in memory."""
        content = self.table()
        self._make, self._valid = lambda: content, lambda: True

    def store(self, place: Any) -> None:
        """It is stored now, and need not be kept."""
        self.place, self._make = place, None


def merge_from(sizes: list[int], most: int) -> int:
    """From which of several tables on they should be merged into one, so that there are few and a row is rarely written
    again: `MERGED` in a row that are about as large as the last, or larger ones that are made of such. Tables of more
    than `most` rows stay."""
    start, size = len(sizes) - 1, sizes[-1]
    while True:
        begin = start
        while begin and sizes[begin - 1] <= min(2 * size, most):
            begin -= 1
        if start - begin < MERGED - 1:
            return start
        start, size = begin, sum(sizes[begin:])


class SavedFrame(NamedTuple):
    """A frame in several tables, one below the other."""

    tables: tuple[StoredTable, ...]


class FrameIncrements:
    """What is stored of rows that are only appended."""

    def __init__(self, tables: tuple[StoredTable, ...] = ()) -> None:
        self.tables = list(tables)

    def save(self, rows: int, between: Callable[[int, int], Any]) -> SavedFrame:
        """The first `rows` rows; `between` returns those from one number up to another."""
        if is_afresh() or not rows or not all(table.is_there for table in self.tables):
            self.tables = []
        sizes = [table.rows for table in self.tables]
        if (new := rows - sum(sizes)) or not rows:
            start = merge_from([*sizes, new], max(rows // MANY_TABLES, FEW_ROWS))
            self.tables[start:] = [StoredTable.of(between(sum(sizes[:start]), rows))]
        return SavedFrame(tuple(self.tables))
