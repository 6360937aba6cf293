"""Identity of payloads and keys: equal rows get the same small number, unequal rows never do.

A retraction must find its tuple. Rows are looked up by a 64-bit hash, and every hit is compared value by value
(missing equals missing, NaN equals NaN), so a collision costs time but never correctness. Numbers are dense and stay
valid until `compact`, which drops rows that are no longer in use.

Rows of several columns of at most 64 bits each are also stored and compared as 64-bit words.
"""

from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.picked import picked
from cedr.columnar.pieces import joined, pieces_of, stored_of
from cedr.columnar.stored import FrameIncrements, SavedFrame, is_incremental
from cedr.columnar.verified import verify_frame
from cedr.kernels.hash_table import fill, grow, hash_words, lookup, lookup_words, new_table

Ids = np.ndarray[Any, np.dtype[np.int64]]

SINGLE_WORD = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.Boolean, pl.Date)
"""Types whose value itself serves as the hash; without missing values a hit needs no comparison."""

NULL_WORD = 2**62 + 12345
"""The hash of a missing value among such types; it may collide with a number, like any hash."""


WORTH_COMPACTING = 4096
"""Minimum number of rows for `compact`. Tests of operators set it to 1, so that short streams compact, too."""


class RowIndex:
    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = dict(schema)
        self._wordy = len(self.schema) > 1 and all(kind in SINGLE_WORD for kind in self.schema.values())
        self._clear()

    def _clear(self) -> None:
        self._table = new_table(64)
        self._pieces: list[pl.DataFrame] = [pl.DataFrame(schema=self.schema)]
        self._size = 0
        self.nbytes = 0
        """Bytes of the rows."""
        self._has_null = False
        self._collided: dict[int, list[int]] = {}
        """By hash, the numbers of rows whose slot is taken by another row with the same hash."""
        self._words = np.empty((len(self.schema) + 1, 0), dtype=np.int64)
        """For each number the row as words; the last word is the bit mask of missing values."""
        self._increments = FrameIncrements()

    def __len__(self) -> int:
        return self._size

    @property
    def rows(self) -> pl.DataFrame:
        """All rows by number."""
        return pl.concat(self._pieces, rechunk=False) if len(self._pieces) > 1 else self._pieces[0]

    def _append(self, piece: pl.DataFrame) -> None:
        """Merge small pieces into larger ones, so that there are few of them and a row is copied only a few times."""
        self._pieces.append(piece)
        self.nbytes += int(piece.estimated_size())
        while len(self._pieces) > 1 and self._pieces[-2].height <= 2 * self._pieces[-1].height:
            self._pieces[-2:] = [pl.concat(self._pieces[-2:], rechunk=True)]

    def ids(self, rows: pl.DataFrame, *, add: bool = True) -> Ids:
        """The number of each row; new rows get the next ones, or -1 when `add` is off."""
        if not self.schema:
            self._size = max(self._size, 1)
            return np.zeros(rows.height, dtype=np.int64)
        if not rows.height:
            return np.empty(0, dtype=np.int64)
        if self._wordy:
            return self._ids_of_words(rows, add)
        hashes, exact = self.hashes(rows)
        if add and (self._size + rows.height) * 2 > len(self._table[0]):
            self._table = grow(self._table, (self._size + rows.height) * 4)
        ids, fresh, self._size = lookup(*self._table, hashes, self._size, add)
        if len(fresh):
            self._append(picked(rows, self.schema)[fresh])
        return ids if exact else self._settle_collisions(rows, hashes, ids, fresh, add)

    def _ids_of_words(self, rows: pl.DataFrame, add: bool) -> Ids:
        words = self._as_words(rows)
        if add and (self._size + rows.height) * 2 > len(self._table[0]):
            self._table = grow(self._table, (self._size + rows.height) * 4)
        ids, fresh, size = lookup_words(*self._table, self._words, words, hash_words(words), self._size, add)
        if len(fresh):
            if size > self._words.shape[1]:
                room = np.empty((len(words), 2 * size), dtype=np.int64)
                room[:, : self._size] = self._words[:, : self._size]
                self._words = room
            np.take(words, fresh, axis=1, out=self._words[:, self._size : size])
            self._append(picked(rows, self.schema)[fresh])
            self._size = size
        return ids

    def _as_words(self, rows: pl.DataFrame) -> Ids:
        words = np.empty((len(self.schema) + 1, rows.height), dtype=np.int64)
        words[-1] = 0
        for i, name in enumerate(self.schema):
            column = rows.get_column(name)
            if column.null_count():
                words[-1] |= column.is_null().to_numpy().astype(np.int64) << i
                column = column.cast(pl.Int64).fill_null(0)
            words[i] = column.cast(pl.Int64).to_numpy()
        return words

    def hashes(self, rows: pl.DataFrame) -> tuple[np.ndarray[Any, np.dtype[np.uint64]], bool]:
        """A 64-bit hash of each row, and whether different rows always have different hashes."""
        if len(self.schema) == 1:
            ((name, kind),) = self.schema.items()
            if kind in SINGLE_WORD:
                column = rows.get_column(name).cast(pl.Int64)
                if column.null_count():
                    self._has_null = True
                    column = column.fill_null(NULL_WORD)
                return column.to_numpy().view(np.uint64), not self._has_null
        return picked(rows, self.schema).hash_rows().to_numpy(), False

    def _settle_collisions(
        self, rows: pl.DataFrame, hashes: np.ndarray[Any, np.dtype[np.uint64]], ids: Ids, fresh: Ids, add: bool
    ) -> Ids:
        """Give a new number to rows whose hash is that of a different row; `fresh` rows have no such collision."""
        met = ids >= 0
        met[fresh] = False
        found = np.flatnonzero(met)
        if not len(found):
            return ids
        stored = self.rows[ids[found]]
        same = rows[found].select(
            pl.all_horizontal(pl.col(name).eq_missing(stored[name]) for name in self.schema).alias("same")
        )["same"]
        if same.all():
            return ids
        wrong = found[~same.to_numpy()]
        for i in wrong:
            ids[i] = self._collided_id(rows[int(i)].select(list(self.schema)), int(hashes[i]), add)
        return ids

    def _collided_id(self, row: pl.DataFrame, hash_: int, add: bool) -> int:
        for id in self._collided.get(hash_, ()):
            if self.rows[id].equals(row):
                return id
        if not add:
            return -1
        self._collided.setdefault(hash_, []).append(self._size)
        self._append(row)
        self._size += 1
        return self._size - 1

    def take(self, ids: Ids) -> pl.DataFrame:
        if self._wordy and not self._words[-1][ids].any():
            columns = zip(self.schema.items(), self._words, strict=False)
            return pl.DataFrame([pl.Series(name, words[ids]).cast(kind) for (name, kind), words in columns])
        return self.rows[ids]

    def may_compact(self) -> bool:
        """Whether there are enough rows for `compact`."""
        return bool(self.schema) and self._size >= WORTH_COMPACTING

    def compact(self, used: Ids) -> Ids | None:
        """Drop the rows that are not in `used` if they are at least half; returns the new number of each old one."""
        if not self.may_compact():
            return None
        keep = np.zeros(self._size, dtype=np.bool_)
        keep[used] = True
        kept = int(keep.sum())
        if kept * 2 > self._size:
            return None
        rows = self.rows.filter(pl.Series(keep))
        renumbered = np.where(keep, np.cumsum(keep) - 1, -1)
        self.restore(rows)
        return renumbered

    # --- state: the rows, each at the position of its number -------------------------------------------------------

    def snapshot(self) -> pl.DataFrame | SavedFrame:
        if is_incremental() and self.schema:
            return self._increments.save(self._size, self._between)
        return joined(self._pieces)

    def _between(self, begin: int, end: int) -> pl.DataFrame:
        """The rows with these numbers, in one piece."""
        return self.rows[begin:end].rechunk()

    def verify(self, rows: Any) -> None:
        verify_frame(rows, self.schema, "an index of rows")

    def restore(self, rows: pl.DataFrame) -> None:
        """Load a snapshot: the number of each row is its position."""
        self._clear()
        self._size = rows.height if self.schema else 1
        if rows.height and self.schema:
            self._pieces = list(pieces_of(rows))
            self._increments = FrameIncrements(stored_of(rows))
            self.nbytes = int(rows.estimated_size())
            if self._wordy:
                self._words, self._table = self._as_words(rows), new_table(rows.height * 4)
                lookup_words(*self._table, self._words, self._words, hash_words(self._words), 0, True)
                return
            hashes, _ = self.hashes(rows)
            self._table = new_table(rows.height * 4)
            for i in fill(*self._table, hashes):
                self._collided.setdefault(int(hashes[i]), []).append(int(i))
