"""End points and emitted snapshots in blocks, for chunks that are small compared with the state.

`SnapshotOperator` merges each chunk into sorted arrays and computes all snapshots from them: one pass over the state.
Here a chunk costs what it changes. What it can affect is read from the blocks as small sorted arrays, which the same
kernels work on, and the difference is added to the blocks.

In every group the emitted snapshots are a prefix (see `kernels.frontiers`). A chunk affects a group from the entry
before its first change on, up to the group's frontier; a change behind the frontier affects nothing that is emitted.
Progress affects the groups whose first snapshot that is not emitted is over now. They are found in the order of their
starts, which is the order in which a `perfect` operator emits.

Only for operators whose answers follow from running sums, with at most one result per snapshot, whose groups are all
equally far, and whose latency is perfect or eager.
"""

import numpy as np

from cedr.columnar.blocks import SortedBlocks
from cedr.columnar.chunk import Times
from cedr.columnar.compacting import compact
from cedr.columnar.increments import BlockColumns
from cedr.columnar.index import RowIndex
from cedr.columnar.mapped import MEMORY
from cedr.kernels import endpoints as ep
from cedr.kernels import frontiers as fr
from cedr.operators.lap import Lap
from cedr.operators.synopsis import synopsis_columns
from cedr.operators.two_layouts import BlockView, Views
from cedr.operators.values import Words
from cedr.temporal.time import INF, MIN

EndPoints = tuple[Times, Times, Times, Words]
Emitted = tuple[Times, Times, Times, Words]
WORDS = 4
"""The first column of emitted rows with words; those before are group, start, 1 and end."""


class LocalSnapshots:
    """`until`, `released`, `promised`: the limits by which the emitted snapshots were chosen (`EmissionPolicy`).
    `goes_on`: end points in the future are elsewhere (`FutureEndPoints`)."""

    def __init__(
        self,
        endpoints: EndPoints,
        emitted: Emitted,
        eager: bool,
        goes_on: bool,
        until: int,
        released: int,
        promised: int,
    ) -> None:
        g, t, k, ints = endpoints
        self.eager, self.goes_on = eager, goes_on
        self.endpoints = SortedBlocks(fr.HEAD + ints.shape[1], 2, 2)
        self.endpoints.replace(np.column_stack((g, t, k, ints)))
        eg, start, end, words = emitted
        self.emitted = SortedBlocks(WORDS + words.shape[1], 2, 2)
        self.emitted.replace(np.column_stack((eg, start, np.ones(len(eg), dtype=np.int64), end, words)))
        self.waiting = SortedBlocks(4, 3, 3)
        self.start, self.end = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self.base = np.empty((0, ints.shape[1]), dtype=np.int64)
        self.lap = Lap()
        groups = np.unique(g)
        self._make_room(int(groups.max(initial=-1)))
        if not eager:
            sums = np.zeros((len(groups), ints.shape[1]), dtype=np.int64)
            frontiers = (self.start, self.end, self.base)
            fr.frontiers(g, t, ints, groups, sums, until, released, promised, goes_on, *frontiers)
            self._wait(groups, 1)

    @property
    def nbytes(self) -> int:
        blocks = self.endpoints.nbytes + self.emitted.nbytes + self.waiting.nbytes
        return blocks + int(self.start.nbytes + self.end.nbytes + self.base.nbytes)

    @property
    def width(self) -> int:
        return self.base.shape[1]

    def flat(self) -> tuple[EndPoints, Emitted]:
        """All of it as sorted arrays."""
        return self.flat_endpoints(), emitted_of(self.emitted.flat())

    def flat_endpoints(self) -> EndPoints:
        return endpoints_of(self.endpoints.flat())

    def views(self) -> Views:
        """The fields of a snapshot, in blocks."""
        return {"endpoints": view_of_endpoints(self.endpoints), "emitted": view_of_emitted(self.emitted, 3, WORDS)}

    # --- a chunk -----------------------------------------------------------------------------------------------------

    def take(self, changes: EndPoints) -> tuple[Times, Times, Times]:
        """Add the changes of a chunk; returns the groups that must be looked at: number, first and last change."""
        g, t, k, ints = changes
        if not len(g):
            return g, g, g
        self.endpoints.add(np.column_stack((g, t, k, ints)))
        self.lap.add(len(g))
        self._make_room(int(g[-1]))
        before = (t < self.start[g]) | (self.start[g] == INF)
        np.add.at(self.base, g[before], ints[before])
        heads = np.flatnonzero(np.append(True, g[1:] != g[:-1]))
        groups, since, last = g[heads], t[heads], t[np.append(heads[1:], len(g)) - 1]
        near = since <= self.end[groups]
        return groups[near], since[near], last[near]

    def windows(
        self, touched: tuple[Times, Times, Times], until: int, released: int, promised: int
    ) -> tuple[Times, Times, Words, int]:
        """The groups to compute again: number, from when on, and the sums before; and the earliest open start.

        The groups are sorted; those of the chunk and those that progress makes due.
        """
        groups, since, _ = touched
        begin, sums = fr.rewind(*self.endpoints.arrays, groups, since, self.start, self.base)
        if self.eager:
            return groups, begin, sums, INF
        self._wait(groups, -1)
        best = fr.earliest_of(*self.endpoints.arrays, groups, begin, sums, until, promised)
        limits = (until, released, promised, best)
        more, best = fr.due(*self.endpoints.arrays, *self.waiting.arrays, self.base, *limits)
        if len(more):
            self._wait(more, -1)
            groups, begin = np.concatenate((groups, more)), np.concatenate((begin, self.start[more]))
            sums = np.concatenate((sums, self.base[more]))
            order = np.argsort(groups)
            groups, begin, sums = groups[order], begin[order], sums[order]
        return groups, begin, sums, int(best)

    def read(self, groups: Times, begin: Times, until: Times) -> tuple[Times, Times, Words]:
        """The entries of groups from a time on, and as many after `until` as the frontier needs."""
        more = 1 if self.eager else 3
        found: tuple[Times, Times, Words] = fr.gather(*self.endpoints.arrays, groups, begin, until, self.width, more)
        return found

    def emitted_from(self, groups: Times, begin: Times, until: Times) -> Emitted:
        """What was emitted of groups and starts in these times."""
        high = np.minimum(until, INF - 1) + 1
        _, rows = self.emitted.between((groups, begin), (groups, high))
        return emitted_of(rows)

    def change(self, g: Times, words: Words, start: Times, before: Times, after: Times) -> None:
        """Emitted snapshots change, as `net_change` describes it."""
        if not len(g):
            return
        was, now = before > start, after > start
        count = now.astype(np.int64) - was
        end = np.where(now, after, 0) - np.where(was, before, 0)
        self.emitted.add(np.column_stack((g, start, count, end, words * count[:, None])))
        self.lap.add(len(g))

    def move_frontiers(self, entries: tuple[Times, Times, Words], groups: Times, sums: Words, *limits: int) -> None:
        """The frontiers of groups, after their entries have been read with the sums before."""
        if not self.eager:
            fr.frontiers(*entries, groups, sums, *limits, self.goes_on, self.start, self.end, self.base)
            self._wait(groups, 1)

    def held(self) -> Times:
        """The start of the first snapshot that is not emitted."""
        first = self.waiting.head(1)
        return first[0, :1] if len(first) else np.array([INF], dtype=np.int64)

    # --- forgetting --------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        return self.endpoints.rows + self.emitted.rows

    def forget(self, groups: Times, settled: int) -> None:
        """Fold what lies before a settled time, of some groups. End points and emitted snapshots go together: arrays
        must not show one without the other."""
        low, high = np.full(len(groups), MIN), np.full(len(groups), settled)
        _, rows = self.endpoints.between((groups, low), (groups, high))
        self.endpoints.change(rows, np.column_stack(ep.fold(*endpoints_of(rows), np.array([settled]))))
        _, rows = self.emitted.between((groups, low), (groups, high))
        self.emitted.remove(rows[rows[:, 3] < settled])

    def compact(self, groups: RowIndex, *others: tuple[SortedBlocks, int]) -> Times | None:
        """Drop groups of which nothing is left, here or in a column of other blocks; returns the new number of each."""
        numbers = compact(groups, (self.endpoints, 0), (self.emitted, 0), *others)
        if numbers is not None:
            self._renumber(numbers)
        return numbers

    def _renumber(self, numbers: Times) -> None:
        self.waiting.renumber(2, numbers)
        kept = np.flatnonzero(numbers[: len(self.start)] >= 0)
        start, end, base = self.start, self.end, self.base
        self.start, self.end, self.base = start[:0], end[:0], base[:0]
        self._make_room(len(kept) - 1)
        n = len(kept)
        self.start[:n], self.end[:n], self.base[:n] = start[kept], end[kept], base[kept]

    # --- rows of the parts -------------------------------------------------------------------------------------------

    def _wait(self, groups: Times, sign: int) -> None:
        """Add or remove the frontiers of groups."""
        groups = groups[self.start[groups] < INF]
        rows = np.column_stack(
            (self.start[groups], self.end[groups], groups, np.full(len(groups), sign, dtype=np.int64))
        )
        self.waiting.add(rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))])

    def _make_room(self, group: int) -> None:
        if group >= len(self.start):
            known, n = len(self.start), 2 * group + 16
            self.start, self.end = MEMORY.grown(self.start, n), MEMORY.grown(self.end, n)
            self.base = MEMORY.grown(self.base, n)
            self.start[known:] = self.end[known:] = INF
            self.base[known:] = 0


def view_of_endpoints(blocks: SortedBlocks) -> BlockView:
    """End points as their arrays."""
    return BlockView(blocks, BlockColumns((0, 1, 2, (fr.HEAD, blocks.width))))


def view_of_emitted(blocks: SortedBlocks, end: int, words: int, repeat: int | None = None) -> BlockView:
    """What was emitted, as a synopsis; `end`, `words`, `repeat`: the columns with these values."""
    columns = (0, 1, end, (words, blocks.width))
    return BlockView(blocks, synopsis_columns(columns, repeat=repeat))


def columns_of(rows: Words, column: int) -> Times:
    return np.ascontiguousarray(rows[:, column])


def endpoints_of(rows: Words) -> EndPoints:
    """Rows of blocks as end points."""
    return columns_of(rows, 0), columns_of(rows, 1), columns_of(rows, 2), np.ascontiguousarray(rows[:, fr.HEAD :])


def emitted_of(rows: Words) -> Emitted:
    return columns_of(rows, 0), columns_of(rows, 1), columns_of(rows, 3), np.ascontiguousarray(rows[:, WORDS:])
