"""Identity of payloads and keys: equal rows get the same small number, unequal rows never do.

A retraction must find its tuple. Rows are looked up by a 64-bit hash, and every hit is compared value by value
(missing equals missing, NaN equals NaN), so a collision costs time but never correctness. Numbers are dense and stay
valid until `compact`, which drops rows that are no longer in use.

Rows of several columns of at most 64 bits each are also stored and compared as 64-bit words.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar import mapped
from cedr.columnar.gathered import FrameFiles
from cedr.columnar.mapped import MEMORY
from cedr.columnar.picked import picked
from cedr.columnar.pieces import joined, pieces_of, stored_of
from cedr.columnar.stored import FrameIncrements, SavedFrame, is_incremental, merge_from
from cedr.columnar.verified import verify_frame
from cedr.kernels.files import request_slots
from cedr.kernels.hash_table import MOST_NUMBERS, hash_words, lookup, number_kept, reinsert, slots_for
from cedr.temporal.errors import QueryError

Ids = np.ndarray[Any, np.dtype[np.int64]]
Slots = np.ndarray[Any, np.dtype[np.uint64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]

SINGLE_WORD = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.Boolean, pl.Date)
"""Types whose value itself serves as the hash; without missing values a hit needs no comparison."""

NULL_WORD = 2**62 + 12345
"""The hash of a missing value among such types; it may collide with a number, like any hash."""


WORTH_COMPACTING = 4096
"""Minimum number of rows for `compact`. Tests of operators set it to 1, so that short streams compact, too."""


MANY_ROWS = 1 << 18
"""Up to this number reading texts from few pieces saves more than copying rows more often costs."""
PART = 4_096
"""Rows that are looked up at once where tables are in files."""
SLOTS_AT_ONCE = NUMBERS_AT_ONCE = 1 << 22
"""Of a pass over all of them before memory is looked at."""


class RowIndex:
    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = dict(schema)
        self._wordy = len(self.schema) > 1 and all(kind in SINGLE_WORD for kind in self.schema.values())
        self._clear()

    def _clear(self) -> None:
        self._slots: Slots = np.zeros(slots_for(0), dtype=np.uint64)
        """The hash table."""
        self._words: Ids = np.empty((0, len(self.schema) + 1 if self._wordy else 1), dtype=np.int64)
        """For each number the row as words, the last of which is the bit mask of missing values; or its hash."""
        self._pieces: list[pl.DataFrame] = [pl.DataFrame(schema=self.schema)]
        self._stored = 0
        """How many of the first pieces are in files."""
        self._files: FrameFiles | None = None
        self._size = 0
        self.nbytes = 0
        """Bytes of the rows."""
        self._mostly_new = False
        """Whether most of the rows that were looked up last were not there."""
        self._has_null = False
        self._collided: dict[int, list[int]] = {}
        """By hash, the numbers of rows whose slot is taken by another row with the same hash."""
        self._increments = FrameIncrements()

    def __len__(self) -> int:
        return self._size

    @property
    def rows(self) -> pl.DataFrame:
        """All rows by number."""
        return pl.concat(self._pieces, rechunk=False) if len(self._pieces) > 1 else self._pieces[0]

    def _append(self, piece: pl.DataFrame) -> None:
        """Merge small pieces into larger ones, so that there are few of them and a row is copied only a few times:
        several at once if there are many rows. Large ones are put into files if memory is short, and stay so."""
        if not self._pieces[-1].height:
            self._pieces.pop()
        self._pieces.append(piece)
        self.nbytes += int(piece.estimated_size())
        start = self._stored + self._merged_from([piece.height for piece in self._pieces[self._stored :]])
        if start + 1 < len(self._pieces):
            self._pieces[start:] = [pl.concat(self._pieces[start:], rechunk=True)]
        if self.nbytes >= mapped.FRAME and MEMORY.is_short:
            self._store_pieces(max(mapped.FRAME, self.nbytes // 16))

    def _merged_from(self, sizes: list[int]) -> int:
        """From which piece on they become one."""
        if self._size > MANY_ROWS:
            return merge_from(sizes, MOST_NUMBERS)
        start, size = len(sizes) - 1, sizes[-1]
        while start and sizes[start - 1] <= 2 * size:
            start -= 1
            size += sizes[start]
        return start

    def _store_pieces(self, enough: int) -> None:
        """Put pieces of enough bytes into files; the largest come first."""
        if self._files is None:
            self._files = FrameFiles(self.schema)
        while self._stored < len(self._pieces) and self._pieces[self._stored].estimated_size() >= enough:
            self._pieces[self._stored] = MEMORY.stored(self._pieces[self._stored])
            self._files.add(self._pieces[self._stored])
            self._stored += 1

    def ids(self, rows: pl.DataFrame, *, add: bool = True) -> Ids:
        """The number of each row; new rows get the next ones, or -1 when `add` is off."""
        if not self.schema:
            self._size = max(self._size, 1)
            return np.zeros(rows.height, dtype=np.int64)
        if rows.height > PART and MEMORY.files:  # each part touches pages, and may have to give them back
            parts = [self.ids(rows[a : a + PART], add=add) for a in range(0, rows.height, PART)]
            return np.concatenate(parts)
        if not rows.height:
            return np.empty(0, dtype=np.int64)
        words, hashes, exact = self._keys(rows)
        if add:
            self._reserve(self._size + rows.height)
        if add and self._mostly_new:
            self._request(hashes)
        ids, fresh, self._size = lookup(self._slots, self._words, words, hashes, self._size, add)
        self._mostly_new = 2 * len(fresh) > len(ids)
        if len(fresh):
            self._append(picked(rows, self.schema)[fresh])
        MEMORY.trim()
        return ids if exact else self._settle_collisions(rows, hashes, ids, fresh, add)

    def _keys(self, rows: pl.DataFrame) -> tuple[Ids, Slots, bool]:
        """The words by which rows are compared, their hashes, and whether rows with the same words are the same."""
        if self._wordy:
            words = self._as_words(rows)
            return words, hash_words(words), True
        hashes, exact = self.hashes(rows)
        return hashes.view(np.int64).reshape(-1, 1), hashes, exact

    def _reserve(self, rows: int) -> None:
        """Make sure that words and slots have room for this number of rows."""
        if rows > len(self._words):
            self._words = MEMORY.grown(self._words, 2 * rows)
        if slots_for(rows) <= len(self._slots):
            return
        if rows > MOST_NUMBERS:
            raise QueryError(f"a shard has {rows:,} different rows or keys, and the maximum is {MOST_NUMBERS:,}")
        old, self._slots = self._slots, MEMORY.zeros(slots_for(2 * rows), np.uint64)
        for begin in range(0, len(old), SLOTS_AT_ONCE):
            reinsert(old, self._slots, begin, min(begin + SLOTS_AT_ONCE, len(old)))
            MEMORY.trim()

    def _as_words(self, rows: pl.DataFrame) -> Ids:
        words = np.empty((rows.height, len(self.schema) + 1), dtype=np.int64)
        words[:, -1] = 0
        for i, name in enumerate(self.schema):
            column = rows.get_column(name)
            if column.null_count():
                words[:, -1] |= column.is_null().to_numpy().astype(np.int64) << i
                column = column.cast(pl.Int64).fill_null(0)
            words[:, i] = column.cast(pl.Int64).to_numpy()
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
        stored = self.take(ids[found])
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
        self._reserve(self._size + 1)
        self._append(row)
        self._size += 1
        return self._size - 1

    def take(self, ids: Ids, names: Sequence[str] | None = None) -> pl.DataFrame:
        """The rows with some numbers, or some columns of them."""
        schema = self.schema if names is None else {name: self.schema[name] for name in names}
        if self._files is not None and schema:
            return self._files.take(self._pieces, ids, schema)
        if self._wordy and not self._words[:, -1][ids].any():
            columns = {name: self._words[:, list(self.schema).index(name)] for name in schema}
            return pl.DataFrame([pl.Series(name, columns[name][ids]).cast(kind) for name, kind in schema.items()])
        return picked(self.rows, schema)[ids]

    def may_compact(self) -> bool:
        """Whether there are enough rows for `compact`."""
        return bool(self.schema) and self._size >= WORTH_COMPACTING

    def compact(self, used: Ids | Mask) -> Ids | None:
        """Drop the rows that are not in `used`, numbers or a mask, if they are at least half; returns the new number of
        each old one."""
        if not self.may_compact():
            return None
        is_mask = used.dtype == np.bool_
        keep = used.view(np.bool_) if is_mask else np.zeros(self._size, dtype=np.bool_)
        if not is_mask:
            keep[used] = True
        kept = int(np.count_nonzero(keep))
        if kept * 2 > self._size:
            return None
        renumbered, number = MEMORY.room((self._size,)), 0
        for begin in range(0, self._size, NUMBERS_AT_ONCE):
            end = min(begin + NUMBERS_AT_ONCE, self._size)
            number = number_kept(keep, renumbered, begin, end, number)
            MEMORY.trim()
        self._load(kept_of(self._pieces, keep), kept)
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
        self._load(pieces_of(rows))
        if rows.height:
            self._increments = FrameIncrements(stored_of(rows))

    def _load(self, pieces: Iterable[pl.DataFrame], rows: int = 0) -> None:
        """Load pieces, which have some rows together if that is known."""
        self._clear()
        self._size = 0 if self.schema else 1
        self._reserve(rows)
        for piece in pieces:
            if piece.height and self.schema:
                self._load_piece(piece)

    def _load_piece(self, piece: pl.DataFrame) -> None:
        words, hashes, _ = self._keys(piece)
        self._reserve(self._size + piece.height)
        part = PART if MEMORY.files else max(1, piece.height)
        for a in range(0, piece.height, part):
            self._load_part(words[a : a + part], hashes[a : a + part])
        self._append(piece)

    def _load_part(self, words: Ids, hashes: Slots) -> None:
        """The number of each row is its position; rows with the hash of another one are noted."""
        begin = self._size
        self._request(hashes)
        ids, _, self._size = lookup(self._slots, self._words, words, hashes, begin, True, True)
        for i in np.flatnonzero(ids != np.arange(begin, self._size)):
            self._collided.setdefault(int(hashes[i]), []).append(begin + int(i))
        MEMORY.trim()

    def _request(self, hashes: Slots) -> None:
        """Hashes are going to be added: request their slots if they are in a file."""
        if MEMORY.place_of(self._slots):
            request_slots(self._slots, hashes, 0)


def kept_of(pieces: list[pl.DataFrame], keep: Mask) -> Iterator[pl.DataFrame]:
    """The rows that are kept, piece by piece; no more than one piece is needed at a time."""
    at = 0
    pieces.reverse()
    while pieces:
        piece = pieces.pop()
        yield piece.filter(pl.Series(keep[at : at + piece.height]))
        at += piece.height
