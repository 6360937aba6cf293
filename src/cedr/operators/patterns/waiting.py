"""Matches that are known but not sure yet, so that they wait to be emitted.

They are arrays in no order, or, while a chunk changes few of them, rows in blocks in two orders: by start, to find
those that are due, and by group and start, to find those of a region. Blocks require that all groups are equally far,
and that a match is sure by its start.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cedr.columnar.blocks import Matrix, SortedBlocks
from cedr.columnar.chunk import Times
from cedr.columnar.state.kinds import ColumnsKind
from cedr.operators import layout
from cedr.operators.patterns.instances import Mask
from cedr.operators.patterns.levels import NO_KEY
from cedr.temporal.time import INF, MIN

Numbers = Callable[[Times], Times]


class Region(NamedTuple):
    """For some groups, in order, the stretch of starts in which matches are evaluated again."""

    g: Times
    low: Times
    high: Times

    def holds(self, g: Times, vs: Times) -> Mask:
        if not len(self.g):
            return np.zeros(len(g), dtype=np.bool_)
        place = np.minimum(np.searchsorted(self.g, g), len(self.g) - 1)
        return (self.g[place] == g) & (self.low[place] <= vs) & (vs <= self.high[place])


class WaitingMatches(NamedTuple):
    """Matches that are not emitted yet."""

    g: Times
    vs: Times
    ve: Times

    def where(self, keep: Mask) -> "WaitingMatches":
        return WaitingMatches(*(a[keep] for a in self))

    def plus(self, more: "WaitingMatches") -> "WaitingMatches":
        return WaitingMatches(*(np.concatenate(both) for both in zip(self, more, strict=True)))


NOTHING = np.empty(0, dtype=np.int64)
NONE_WAITING = WaitingMatches(NOTHING, NOTHING, NOTHING)

KEYLESS, START, GROUP = range(3)
"""Columns of the order by start, before end and copies; matches without a key are last."""


class WaitingStore:
    def __init__(self, matches: WaitingMatches = NONE_WAITING) -> None:
        self._matches = matches
        self._by_start: SortedBlocks | None = None
        self._by_group: SortedBlocks | None = None
        self._changed = self._small = 0
        """Matches that this chunk added or dropped, and small chunks in a row."""

    def __len__(self) -> int:
        """How many there are; in blocks equal ones count once."""
        return len(self._matches.g) if self._by_group is None else self._by_group.rows

    @property
    def nbytes(self) -> int:
        blocks = [b.nbytes for b in (self._by_start, self._by_group) if b is not None]
        return sum([a.nbytes for a in self._matches]) + sum(blocks)

    @property
    def in_blocks(self) -> bool:
        return self._by_group is not None

    def flat(self) -> WaitingMatches:
        """All matches as arrays, in which they are from now on."""
        if self._by_group is not None:
            rows = self._by_group.flat()
            rows = np.repeat(rows, rows[:, 3], axis=0)
            self._matches = WaitingMatches(*(np.ascontiguousarray(rows[:, c]) for c in range(3)))
            self._by_start = self._by_group = None
        return self._matches

    def firsts(self) -> WaitingMatches:
        """All matches, or in blocks the first with and the first without a key: enough for what is earliest."""
        if self._by_start is None:
            return self._matches
        found = [self._by_start.run((flag, MIN), 1) for flag in (0, 1)]
        rows = np.concatenate([row[row[:, KEYLESS] == flag] for flag, row in enumerate(found)])
        return WaitingMatches(rows[:, GROUP], rows[:, START], rows[:, 3])

    def due(self, until: int) -> tuple[Times, Times]:
        """In blocks, the groups and starts of matches that start by a time."""
        assert self._by_start is not None
        flags, low = np.arange(2), np.full(2, MIN)
        _, rows = self._by_start.between([flags, low], end_of(flags, np.full(2, until)))
        return rows[:, GROUP], rows[:, START]

    def drop(self, region: Region) -> None:
        if self._by_group is None or self._by_start is None:
            before = len(self._matches.g)
            if before:
                self._matches = self._matches.where(~region.holds(self._matches.g, self._matches.vs))
            self._changed += before - len(self._matches.g)
            return
        _, rows = self._by_group.between([region.g, region.low], end_of(region.g, region.high))
        if len(rows):
            self._by_group.remove(rows)
            self._by_start.remove(ordered(by_start(rows), 4))
            self._changed += len(rows)

    def add(self, more: WaitingMatches) -> None:
        self._changed += len(more.g)
        if not len(more.g):
            return
        if self._by_group is None or self._by_start is None:
            self._matches = self._matches.plus(more)
            return
        rows = ordered(np.column_stack((*more, np.ones_like(more.g))), 3)
        self._by_group.add(rows)
        self._by_start.add(ordered(by_start(rows), 4))

    def choose_layout(self, possible: bool) -> None:
        """At the end of a chunk. `possible`: whether matches may be in blocks."""
        changed, self._changed = self._changed, 0
        if self.in_blocks:
            if not possible or layout.is_large(changed, len(self)):
                self.flat()
            return
        self._small = self._small + 1 if possible and layout.is_small(changed, len(self)) else 0
        if self._small >= layout.PATIENCE and len(self):
            self._small = 0
            rows = ordered(np.column_stack((*self._matches, np.ones_like(self._matches.g))), 3)
            self._by_group, self._by_start = SortedBlocks(4, 3, 3), SortedBlocks(5, 4, 4)
            self._by_group.add(rows)
            self._by_start.add(ordered(by_start(rows), 4))
            self._matches = NONE_WAITING


def end_of(groups: Times, last: Times) -> list[Times]:
    """The keys behind all that start by a time."""
    never = last == INF
    return [np.where(never, groups + 1, groups), np.where(never, MIN, np.where(never, 0, last) + 1)]


def by_start(rows: Matrix) -> Matrix:
    """Rows `(group, start, end, copies)` for the order by start."""
    return np.column_stack((rows[:, 0] == NO_KEY, rows[:, 1], rows[:, 0], rows[:, 2:]))


def ordered(rows: Matrix, depth: int) -> Matrix:
    return rows[np.lexsort(rows[:, :depth].T[::-1])]


class WaitingKind(ColumnsKind):
    """Saved as plain columns."""

    def __init__(self) -> None:
        super().__init__(WaitingMatches)

    def save(self, value: Any, owner: Any) -> Any:
        return super().save(value.flat(), owner)

    def load(self, value: Any, saved: Any) -> Any:
        return WaitingStore(super().load(None, saved))

    def nbytes(self, value: Any) -> int:
        return int(value.nbytes)

    def rows(self, value: Any) -> int:
        return len(value)
