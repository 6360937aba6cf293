"""The state of a semi or anti join in blocks, for chunks that touch few keys.

Tuples, emitted pieces and pieces that wait are read by key. Progress may also change keys that a chunk does not touch;
these are found by time: pieces that wait are kept by start as well, and emitted ends that wait to be brought up to date
by the time when they may be.
"""

from typing import NamedTuple

import numpy as np

from cedr.columnar.blocks import SortedBlocks
from cedr.columnar.chunk import Times
from cedr.kernels.pending import due_keys, earliest_open
from cedr.operators.lap import Lap
from cedr.operators.synopsis import synopsis_columns
from cedr.operators.tuple_store import COPIES, END, KEY, START, VALUE, TupleBlocks, TupleStore, sorted_rows
from cedr.operators.two_layouts import BlockView, Views
from cedr.temporal.time import INF, MIN


class KeyState(NamedTuple):
    """What is stored of some keys; the number of a key is its place among them."""

    keys: Times
    left: TupleStore
    right: TupleStore
    emitted: TupleStore
    """Pieces with their payload numbers."""
    waiting: TupleStore
    """Pieces, without payload numbers."""

    def in_all(self, tuples: TupleStore) -> TupleStore:
        """The tuples with their key numbers among all keys."""
        return tuples._replace(key=self.keys[tuples.key])


class Pieces(NamedTuple):
    """Pieces of left tuples: key among all keys, payload number, copies, start and end."""

    key: Times
    number: Times
    copies: Times
    start: Times
    end: Times

    def plus(self, others: "Pieces") -> "Pieces":
        return Pieces(*(np.concatenate(both) for both in zip(self, others, strict=True)))


class SemiAntiBlocks:
    """What ends before `settled` need not be stored."""

    def __init__(self, left: TupleStore, right: TupleStore, emitted: TupleStore, settled: int) -> None:
        self.left, self.right, self.emitted = TupleBlocks(left), TupleBlocks(right), TupleBlocks(emitted)
        self.waiting = TupleBlocks(TupleStore.empty())
        self._by_start = SortedBlocks(4, 3, 3)
        self._outdated = SortedBlocks(3, 2, 2)
        """Keys with an emitted end to bring up to date, by the time from which this is possible."""
        self.unread: Times | None = np.union1d(left.key, emitted.key)
        """The keys of which nothing is known yet about pieces that wait."""
        self.settled = settled
        self.left_done = False
        """Whether no left tuple could arrive any more when that was settled."""
        self.lap = Lap()

    @property
    def rows(self) -> int:
        return self.left.rows + self.right.rows

    @property
    def nbytes(self) -> int:
        tuples = self.left.nbytes + self.right.nbytes + self.emitted.nbytes + self.waiting.nbytes
        return tuples + self._by_start.nbytes + self._outdated.nbytes

    def add(self, side: TupleBlocks, changes: TupleStore) -> None:
        """Add changes to the tuples of one side."""
        side.add(changes)
        self.lap.add(changes.rows)

    @property
    def key_places(self) -> list[tuple[SortedBlocks, int]]:
        """The columns with the numbers of keys."""
        stores = (self.left, self.right, self.emitted, self.waiting)
        return [*((store.blocks, KEY) for store in stores), (self._by_start, 2), (self._outdated, 1)]

    @property
    def payload_places(self) -> list[list[tuple[SortedBlocks, int]]]:
        """The columns with the numbers of payloads, by side."""
        return [[(self.left.blocks, VALUE), (self.emitted.blocks, VALUE)], [(self.right.blocks, VALUE)]]

    def views(self) -> Views:
        """The fields of a snapshot. Partners that are settled have no effect on pieces that are not."""
        ended = max(self.settled - 1, MIN)
        emitted = synopsis_columns(
            (VALUE, START, END, (COPIES, COPIES)), repeat=COPIES, above=(END, ended), order=(VALUE, START, END)
        )
        return {
            "tuples": [self.left.view(ended), self.right.view()],
            "emitted": BlockView(self.emitted.blocks, emitted),
        }

    def read(self, keys: Times) -> KeyState:
        stores = (self.left, self.right, self.emitted, self.waiting)
        return KeyState(keys, *(store.of_keys(keys) for store in stores))

    def write(self, old: KeyState, new: KeyState) -> None:
        """Replace what is stored of some keys."""
        for name, store in (("left", self.left), ("right", self.right), ("emitted", self.emitted)):
            before, after = getattr(old, name), getattr(new, name)
            if before is not after:
                store.blocks.change(old.in_all(before).matrix(), old.in_all(after).matrix())

    # --- pieces that wait --------------------------------------------------------------------------------------------

    def wait_no_more(self, state: KeyState) -> None:
        self._change_waiting(state.in_all(state.waiting).negated())

    def wait_again(self, state: KeyState) -> None:
        """What waited of some keys when they were read does so still."""
        self._change_waiting(state.in_all(state.waiting))

    def wait(self, key: Times, start: Times, end: Times) -> None:
        self._change_waiting(TupleStore.changes(key, start, start, end, np.zeros(len(key), dtype=np.int64)))

    def _change_waiting(self, changes: TupleStore) -> None:
        if changes.rows:
            self.waiting.add(changes)
            key, start, end, _, copies = changes
            self._by_start.add(sorted_rows(np.column_stack((start, end, key, copies)), 3))

    def first_waiting(self) -> int:
        """The earliest start of a piece that waits."""
        first = self._by_start.head(1)
        return int(first[0, 0]) if len(first) else INF

    def earliest_open(self, until: Times, over: Times, promised: Times) -> int:
        return int(earliest_open(*self._by_start.arrays, until[0], over[0], promised[0]))

    # --- keys that progress changes ----------------------------------------------------------------------------------

    def outdated(self, key: Times, time: Times) -> None:
        """Emitted ends of these keys may be brought up to date from a time on."""
        if len(key):
            rows = np.column_stack((time, key, np.ones(len(key), dtype=np.int64)))
            self._outdated.add(sorted_rows(rows, 2))

    def due(self, end_by: Times, start_by: Times, promised: Times, reached: Times) -> Times:
        """The keys whose output changes at these limits, although nothing about them arrived."""
        found = due_keys(*self._by_start.arrays, end_by[0], start_by[0], promised[0])
        if not self._outdated.rows:
            return np.unique(found)
        _, rows = self._outdated.between([np.array([MIN])], [reached + 1])
        self._outdated.add(rows * np.array([1, 1, -1]))
        return np.union1d(found, rows[:, 1])
