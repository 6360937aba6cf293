"""The events of an automaton in sorted tables of growing size, so that a small chunk does not copy all of them.

As for patterns (`cedr.operators.patterns.levels`), new events are a level of their own, and a level that is not much
larger than the next newer one is merged with it. An event that is removed is a row with negative copies in a newer
level, until both are merged. All rows of one place have the same reach, in all levels.

Large chunks, and all chunks while there are few events, work on one table of all events.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cedr.columnar.chunk import Times
from cedr.kernels.automata import levels as lv
from cedr.kernels.automata.places import AT, WIDTH, G
from cedr.kernels.sorting import argsort_by_group_and_time
from cedr.temporal.time import INF, MIN

Rows = np.ndarray

FEW_EVENTS = 1024
"""Up to this number of events all are one table. Tests set it to 2, so that short streams have several levels, too."""
GROWTH = 4
"""A level is more than this many times as large as the next newer one."""
SHARE = 32
"""A chunk is small if there are more than this many times as many events."""
AHEAD = 8
"""Rows that are looked at first behind those that runs have reached so far; each time they do not suffice, more."""
CREDIT = 1024
"""Events that may be passed over for each chunk, however small it is."""


NOTHING = np.empty(0, dtype=np.int64)
NO_ROWS = np.empty((0, WIDTH), dtype=np.int64)


class EventTable(NamedTuple):
    rows: Rows
    reach: Times
    tree: Times = NOTHING
    offsets: Times = NOTHING
    """Empty as long as there is no tree."""

    def with_tree(self) -> "EventTable":
        return self if len(self.offsets) else EventTable(self.rows, self.reach, *lv.tree_of(self.reach))

    @property
    def nbytes(self) -> int:
        return int(self.rows.nbytes + self.reach.nbytes + self.tree.nbytes)


class Surroundings(NamedTuple):
    """What the runs near some changes look at, before the changes and after them."""

    places: Rows
    """Group, place, the first change that concerns it, and how far its runs reached; sorted."""
    number: Times
    """The stretch of each place."""
    stretches: Rows
    far: Times
    """Up to where the rows of each stretch are known; INF if all are."""
    before: Rows
    after: Rows

    def at_places(self, rows: Rows) -> tuple[Times, Times, Times]:
        """For the places that are among these rows the first row, the first change, and the number of the place."""
        first, which = lv.located(rows, self.places, self.number)
        return first, self.places[which, 2], which

    def rows_at_places(self, rows: Rows) -> int:
        return int(lv.rows_at(rows, self.at_places(rows)[0]))

    def suffices(self, which: Times, reach: Times) -> bool:
        """Whether runs that reach so far have seen everything."""
        return bool((reach <= self.far[self.number[which]]).all())

    def groups(self, numbers: Times) -> Times:
        return self.stretches[numbers, 0]


class RunLevels:
    """From the oldest level to the newest."""

    def __init__(self, rows: Rows | None = None, reach: Times | None = None) -> None:
        self.replace(NO_ROWS if rows is None else rows, reach)
        self.credit = 0
        """What may be spent on passes over all events: it grows with every chunk."""

    def replace(self, rows: Rows, reach: Times | None = None) -> None:
        """Sorted rows become the content."""
        self.levels = [EventTable(rows, np.full(len(rows), INF) if reach is None else reach)]
        self.rows = len(rows)

    @property
    def nbytes(self) -> int:
        return sum([level.nbytes for level in self.levels])

    def flat(self) -> tuple[Rows, Times]:
        """All rows, sorted, and the reach of each."""
        self._merge_while(lambda older, newer: True)
        return self.levels[0].rows, self.levels[0].reach

    def is_small(self, changes: Rows) -> bool:
        """Whether it is worth looking at what is near the changes only."""
        return self.rows > FEW_EVENTS and SHARE * len(changes) < self.rows

    def near(self, changes: Rows, known: Surroundings | None = None) -> Surroundings:
        """What runs near sorted changes look at; or more of it if what is known did not suffice."""
        self.levels[0] = self.levels[0].with_tree()
        places = self._reaching(changes) if known is None else known.places
        number = np.zeros(len(places), dtype=np.int64) if known is None else known.number.copy()
        far = NOTHING if known is None else known.far
        stretches = lv.stretches(places, number, far)
        ahead = AHEAD if known is None else AHEAD + 4 * max(len(known.after) // len(known.stretches), AHEAD)
        far = np.full(len(stretches), INF)
        for level in self.levels:
            lv.some_more(level.rows, stretches, ahead, far)
        before = NO_ROWS
        for level in self.levels:
            before = lv.added(before, level.rows, stretches, far)
        after = lv.added(before, changes, stretches, far)
        return Surroundings(places, number, stretches, far, before, after)

    def _reaching(self, changes: Rows) -> Rows:
        """The places whose runs depend on the changes, those of the changes among them."""
        own = np.column_stack((changes[:, G], changes[:, AT], changes[:, AT], changes[:, AT]))
        found = np.concatenate([own, *(lv.reaching(*level, changes) for level in self.levels)])
        return lv.united(found[argsort_by_group_and_time(found[:, 0], found[:, 1])])

    def add(self, changes: Rows, near: Surroundings, which: Times, reach: Times) -> None:
        """Add the changes; runs from some of the places now reach so far."""
        far = np.full(len(near.places), MIN)
        far[which] = reach
        self.levels.append(EventTable(changes, np.full(len(changes), MIN)).with_tree())
        for level in self.levels:
            lv.note_reach(*level, near.places, far)
        self.rows += near.rows_at_places(near.after) - near.rows_at_places(near.before)
        self._merge_while(lambda older, newer: older < FEW_EVENTS or older <= GROWTH * newer)

    def may_pass(self, rows: int) -> bool:
        """Whether a pass over all events is worth it after the chunks since the last one. This one has some rows."""
        self.credit += CREDIT + GROWTH * rows
        if self.rows > max(FEW_EVENTS, self.credit):
            return False
        self.credit = 0
        return True

    def _merge_while(self, mergeable: Callable[[int, int], bool]) -> None:
        levels = self.levels
        while len(levels) > 1 and mergeable(len(levels[-2].rows), len(levels[-1].rows)):
            older, newer = levels[-2:]
            levels[-2:] = [EventTable(*lv.merged(*older[:2], *newer[:2])).with_tree()]
