"""Events sorted by group and start, in levels of growing size, so that a small chunk does not copy all of them.

New events are a level of their own. A level that is not much larger than the next newer one is merged with it, so there
are few levels, and each event is copied only a few times. Equal events of an older level come before those of a newer
one. What is removed stays in its level without event types (`bits` is 0), until the level is copied anyway.

While there are few events, or chunks are a sizeable part of them, there is one level: plain sorted columns.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cedr.columnar.chunk import Times
from cedr.columnar.state.kinds import ColumnsKind
from cedr.contracts import DEBUG, sorted_by
from cedr.kernels.event_list import merge_order, merged_column, stretches
from cedr.kernels.sorting import argsort_by_group_and_time

NO_KEY = -1
Mask = np.ndarray[Any, np.dtype[np.bool_]]

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
        if not len(self.g) or not len(new.g):
            return new if len(new.g) else self
        assert not DEBUG or all(sorted_by(events.g, events.vs) for events in (self, new)), "events are not sorted"
        order = merge_order(self.g, self.vs, new.g, new.vs)
        merge = merged_column if len(self.g) > GROWTH * len(new.g) else reordered
        return Events(*(merge(a, b, order) if len(a) else a for a, b in zip(self, new, strict=True)))

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


class NearEvents(NamedTuple):
    """Events in stretches of some groups, in order, and where they are stored."""

    events: Events
    number: Times
    """The number of the stretch that each event belongs to."""
    stretches: tuple[Times, Times, Times]
    """Groups, and the first and the last start of each."""
    levels: tuple[Events, ...]
    places: tuple[Times, ...]
    """By level."""
    order: Times | None
    """The order of what was found level after level; None if there is only one."""

    def without_removed(self) -> "NearEvents":
        """The same without those that were removed from their levels since."""
        found = [level.bits[at] for level, at in zip(self.levels, self.places, strict=True)]
        bits = found[0] if self.order is None else np.concatenate(found)[self.order]
        if bits.all():
            return self
        there = np.flatnonzero(bits)
        return self._replace(events=self.events.take(there), number=self.number[there])

    def plus(self, new: Events) -> "NearEvents":
        """The same with new events in these stretches, of which each group has one."""
        events = self.events.merged(new)
        return self._replace(events=events, number=np.searchsorted(self.stretches[0], events.g))

    def stored_at(self, which: Times) -> tuple[Times, Times]:
        """The level of some of these events, and the place there."""
        level = np.repeat(np.arange(len(self.places)), [len(at) for at in self.places])
        place = np.concatenate(self.places)
        which = which if self.order is None else self.order[which]
        return level[which], place[which]


class EventLevels:
    """From the oldest level to the newest. Only `bits` of a level changes in place."""

    def __init__(self, events: Events = NO_EVENTS) -> None:
        self.levels = [events]
        self.removed = 0
        """Events that are still in their levels."""

    def __len__(self) -> int:
        return sum([len(level.g) for level in self.levels]) - self.removed

    @property
    def nbytes(self) -> int:
        return sum([column.nbytes for level in self.levels for column in level])

    @property
    def is_flat(self) -> bool:
        return len(self.levels) == 1

    def flat(self) -> Events:
        """All events as one level."""
        if not self.is_flat or self.removed:
            self._merge_while(lambda older, newer: True)
            self._drop_removed()
        return self.levels[0]

    def near(self, groups: Times, low: Times, high: Times) -> NearEvents:
        """The events of each group that start in [low, high]. The stretches are in order and do not overlap."""
        levels = tuple(self.levels)
        if len(levels) == 1:
            places, number = stretches(levels[0].g, levels[0].vs, groups, low, high)
            return NearEvents(levels[0].part(places), number, (groups, low, high), levels, (places,), None)
        found = [stretches(level.g, level.vs, groups, low, high) for level in levels]
        events = chained([level.take(places) for level, (places, _) in zip(levels, found, strict=True)])
        number = np.concatenate([n for _, n in found])
        order = argsort_by_group_and_time(number, events.vs)
        places = tuple(at for at, _ in found)
        return NearEvents(events.take(order), number[order], (groups, low, high), levels, places, order)

    def add(self, new: Events) -> None:
        if not len(new.g):
            return
        self.levels.append(new)
        self._merge_while(lambda older, newer: older < FEW_EVENTS or older <= GROWTH * newer)

    def remove(self, level: Times, place: Times) -> None:
        for number in np.unique(level):
            self.levels[number].bits[place[level == number]] = 0
        self.removed += len(place)
        if len(self) <= max(FEW_EVENTS, GROWTH * self.removed):
            self.flat()

    def is_worth_forgetting(self, needed: Callable[[Times, Times], Mask]) -> bool:
        """Whether a quarter of the events or more are not needed, as far as a sample of them shows."""
        oldest = self.levels[0]
        n = len(oldest.g)
        if n <= FEW_EVENTS:
            return True
        at = sample(n)
        return 4 * int(np.count_nonzero(needed(oldest.g[at], oldest.vs[at]))) <= 3 * len(at)

    def _merge_while(self, mergeable: Callable[[int, int], bool]) -> None:
        levels = self.levels
        while len(levels) > 1 and mergeable(len(levels[-2].g), len(levels[-1].g)):
            levels[-2:] = [levels[-2].merged(levels[-1])]

    def _drop_removed(self) -> None:
        there = self.levels[0].bits != 0
        if not there.all():
            self.levels = [self.levels[0].take(there)]
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
