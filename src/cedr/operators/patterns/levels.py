"""Events sorted by group and start, in levels of growing size, so that a small chunk does not copy all of them.

New events are a level of their own. A level that is not much larger than the next newer one is merged with it, so there
are few levels, and each event is copied only a few times. Equal events of an older level come before those of a newer
one. What is removed stays in its level without event types (`bits` is 0), until the level is copied anyway.

While there are few events, or chunks are a sizeable part of them, there is one level: plain sorted columns.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cedr.columnar.blocks import Matrix
from cedr.columnar.chunk import Times
from cedr.columnar.state.kinds import ColumnsKind
from cedr.contracts import DEBUG, sorted_by
from cedr.kernels.event_list import merge_order, merged_column
from cedr.kernels.near_events import copy_ranges, directory, merge_near, near_ranges
from cedr.kernels.sorting import argsort_by_group_and_time

NO_KEY = -1
Mask = np.ndarray[Any, np.dtype[np.bool_]]
Stretches = tuple[Times, Times, Times]
"""Groups, and the first and the last start of each."""

FEW_EVENTS = 1024
"""Up to this number of events are one level. Tests set it to 4, so that short streams have several levels, too."""
GROWTH = 4
"""A level is more than this many times as large as the next newer one."""
SAMPLED = 256
"""Events that are looked at to estimate how many can be forgotten."""

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Events(NamedTuple):
    """Columns of events, sorted by group and start, and equal ones by age. A column that is not needed is empty."""

    g: Times
    vs: Times
    slot: Times
    bits: Times
    variant: Times
    """The port and the key they are listed under."""
    content: Times
    """A hash of start and payload, for ids."""
    copy: Times
    """The number among equal events, for ids."""

    def take(self, places: Times | Mask) -> "Events":
        return Events(*(a[places] if len(a) else a for a in self))

    def part(self, places: Times) -> "Events":
        """The events at increasing places, or all of them unchanged."""
        return self if len(places) == len(self.g) else self.take(places)

    def merged(self, new: "Events") -> "Events":
        return self.merged_in_order(new)[0]

    def merged_in_order(self, new: "Events") -> tuple["Events", Times | None]:
        """All events, and their order where both were one after the other, if that is another."""
        if not len(self.g) or not len(new.g):
            return new if len(new.g) else self, None
        assert not DEBUG or all(sorted_by(events.g, events.vs) for events in (self, new)), "events are not sorted"
        order = merge_order(self.g, self.vs, new.g, new.vs)
        merge = merged_column if len(self.g) > GROWTH * len(new.g) else reordered
        return Events(*(merge(a, b, order) if len(a) else a for a, b in zip(self, new, strict=True))), order

    def without_ids(self) -> "Events":
        return self._replace(content=NOTHING, copy=NOTHING)


NOTHING = np.empty(0, dtype=np.int64)
NO_EVENTS = Events(*(NOTHING for _ in Events._fields))


def reordered(a: Times, b: Times, order: Times) -> Times:
    """As `merged_column`, which is slower where the two alternate."""
    return np.concatenate((a, b))[order]


def in_order(events: Events) -> Events:
    return events.take(argsort_by_group_and_time(events.g - NO_KEY, events.vs))


def chained(parts: list[Events]) -> Events:
    """Events one after the other."""
    if len(parts) == 1:
        return parts[0]
    return Events(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def read_only(column: Times) -> Times:
    """A view of a column. All are of one type, as kernels require of a tuple, even if some columns must not change."""
    view = column.view()
    view.flags.writeable = False
    return view


class EventLevel:
    """Events, and how they are found."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self.columns = tuple([read_only(column) for column in events[1:] if len(column)])
        """Those that are needed, without the groups."""
        self._directory: tuple[int, int, Times] | None = None

    def __len__(self) -> int:
        return len(self.events.g)

    @property
    def nbytes(self) -> int:
        places = 0 if self._directory is None else self._directory[2].nbytes
        return sum([column.nbytes for column in self.events]) + places

    def find(self, stretches: Stretches, begin: Times, end: Times) -> int:
        """Sets where the events of each stretch begin and end, and returns how many there are."""
        if self._directory is None:  # only now, as a level may be merged before it is searched
            self._directory = directory(self.events.g)
        count: int = near_ranges(self.events.g, self.events.vs, *self._directory, *stretches, begin, end)
        return count


class Ranges(NamedTuple):
    """By level and stretch, where its events are."""

    begin: Matrix
    end: Matrix
    counts: list[int]
    """By level."""

    def of(self, columns: Sequence[tuple[Times, ...]]) -> Matrix:
        """The events of some columns of each level, one after the other."""
        found, at = np.empty((len(columns[0]), sum(self.counts)), dtype=np.int64), 0
        for level, begin, end, count in zip(columns, *self, strict=True):
            if count:
                copy_ranges(level, begin, end, found, at)
            at += count
        return found


class NearEvents(NamedTuple):
    """Events in stretches of some groups, in order, and where they are stored."""

    events: Events
    number: Times
    """The number of the stretch that each event belongs to."""
    stretches: Stretches
    levels: tuple[EventLevel, ...]
    ranges: Ranges
    order: Times | None
    """The order of what was found level after level; None if there is only one."""

    def without_removed(self) -> "NearEvents":
        """The same without those that were removed from their levels since."""
        bits = self.ranges.of([(level.events.bits,) for level in self.levels])[0]
        bits = bits if self.order is None else bits[self.order]
        if bits.all():
            return self
        there = np.flatnonzero(bits)
        return self._replace(events=self.events.take(there), number=self.number[there])

    def plus(self, new: Events) -> "NearEvents":
        """The same with new events in these stretches, of which each group has one."""
        events, order = self.events.merged_in_order(new)
        number = np.concatenate((self.number, np.searchsorted(self.stretches[0], new.g)))
        return self._replace(events=events, number=number if order is None else number[order])

    def stored_at(self, which: Times) -> tuple[Times, Times]:
        """The level of some of these events, and the place there."""
        begin, end, _ = self.ranges
        behind = np.cumsum(end - begin)
        found = which if self.order is None else self.order[which]
        at = np.searchsorted(behind, found, "right")
        return at // begin.shape[1], end.ravel()[at] - behind[at] + found


class EventLevels:
    """From the oldest level to the newest. Only `bits` of a level changes in place."""

    def __init__(self, events: Events = NO_EVENTS) -> None:
        self.levels = [EventLevel(events)]
        self.removed = 0
        """Events that are still in their levels."""

    def __len__(self) -> int:
        return sum([len(level) for level in self.levels]) - self.removed

    @property
    def nbytes(self) -> int:
        return sum([level.nbytes for level in self.levels])

    @property
    def is_flat(self) -> bool:
        return len(self.levels) == 1

    def flat(self) -> Events:
        """All events as one level."""
        if not self.is_flat or self.removed:
            self._merge_while(lambda older, newer: True)
            self._drop_removed()
        return self.levels[0].events

    def near(self, groups: Times, low: Times, high: Times) -> NearEvents:
        """The events of each group that start in [low, high]. The stretches are in order and do not overlap."""
        levels, stretches = tuple(self.levels), (groups, low, high)
        begin, end = np.empty((2, len(levels), len(groups)), dtype=np.int64)
        counts = [level.find(stretches, *at) for level, *at in zip(levels, begin, end, strict=True)]
        ranges = Ranges(begin, end, counts)
        if len(levels) == 1 and counts[0] == len(levels[0]):
            number = np.repeat(np.arange(len(groups)), end[0] - begin[0])
            return NearEvents(levels[0].events, number, stretches, levels, ranges, None)
        columns = ranges.of([level.columns for level in levels])
        if len(levels) == 1:
            number, order = np.repeat(np.arange(len(groups)), end[0] - begin[0]), None
        else:
            number, order = merge_near(begin, end, columns[0])
            columns = np.take(columns, order, axis=1)
        events = Events(groups[number], *columns, *(NOTHING,) * (len(NO_EVENTS) - 1 - len(columns)))
        return NearEvents(events, number, stretches, levels, ranges, order)

    def add(self, new: Events) -> None:
        if not len(new.g):
            return
        self.levels.append(EventLevel(new))
        self._merge_while(lambda older, newer: older < FEW_EVENTS or older <= GROWTH * newer)

    def remove(self, level: Times, place: Times) -> None:
        for number in np.unique(level):
            self.levels[number].events.bits[place[level == number]] = 0
        self.removed += len(place)
        if len(self) <= max(FEW_EVENTS, GROWTH * self.removed):
            self.flat()

    def is_worth_forgetting(self, needed: Callable[[Times, Times], Mask]) -> bool:
        """Whether a quarter of the events or more are not needed, as far as a sample of them shows."""
        oldest = self.levels[0].events
        n = len(oldest.g)
        if n <= FEW_EVENTS:
            return True
        at = sample(n)
        return 4 * int(np.count_nonzero(needed(oldest.g[at], oldest.vs[at]))) <= 3 * len(at)

    def _merge_while(self, mergeable: Callable[[int, int], bool]) -> None:
        levels = self.levels
        while len(levels) > 1 and mergeable(len(levels[-2]), len(levels[-1])):
            levels[-2:] = [EventLevel(levels[-2].events.merged(levels[-1].events))]

    def _drop_removed(self) -> None:
        events = self.levels[0].events
        there = events.bits != 0
        if not there.all():
            self.levels = [EventLevel(events.take(there))]
        self.removed = 0


def sample(n: int) -> Times:
    """Places in a list, the same for equal lengths, and in no step with its groups."""
    spread = np.arange(1, SAMPLED + 1, dtype=np.uint64) * GOLDEN
    return (spread % np.uint64(n)).astype(np.int64)


class LevelsKind(ColumnsKind):
    """Events in levels, saved as plain columns."""

    counted = True

    def __init__(self) -> None:
        super().__init__(Events)

    def save(self, value: Any, owner: Any) -> Any:
        return super().save(unshared(value.flat()), owner)

    def load(self, value: Any, saved: Any) -> Any:
        return EventLevels(unshared(super().load(None, saved)))

    def nbytes(self, value: Any) -> int:
        return int(value.nbytes)

    def rows(self, value: Any) -> int:
        return len(value)


def unshared(events: Events) -> Events:
    """With a copy of what changes in place."""
    return events._replace(bits=events.bits.copy())
