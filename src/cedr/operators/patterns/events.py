"""The events a pattern operator keeps: by group and start, each with the event types that accept it and its payload.

A port whose event types have different keys has its events in the list once for each key. Group -1 holds the events
without a key; each of them is a group of its own when patterns are evaluated. Payloads are kept as they came, in slots.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from cedr.columnar import index
from cedr.columnar.chunk import Times
from cedr.columnar.sharding import absorb, can_be_key
from cedr.columnar.state import FRAME_PIECES, NUMBER, PARTS, Stateful, columns, counted, fields
from cedr.contracts import DEBUG, sorted_by
from cedr.kernels.event_list import merge_order, runs
from cedr.kernels.hashing import SEED, absorb_words
from cedr.kernels.ids import counted_before, last_of_each, numbers_of
from cedr.kernels.sorting import argsort_by_group_and_time
from cedr.temporal.errors import StreamError

NO_KEY = -1
Mask = np.ndarray[Any, np.dtype[np.bool_]]


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
        both = (np.concatenate(columns) for columns in zip(self, new, strict=True))
        return Events(*(column[order] if len(column) else column for column in both))

    def without_ids(self) -> "Events":
        return self._replace(content=NOTHING, copy=NOTHING)


NOTHING = np.empty(0, dtype=np.int64)
NO_EVENTS = Events(*(NOTHING for _ in Events._fields))


def in_order(events: Events) -> Events:
    return events.take(argsort_by_group_and_time(events.g - NO_KEY, events.vs))


class Payloads(Stateful):
    """The payloads of one port by slot, in few pieces, so that a row is copied only a few times."""

    state = fields(pieces=FRAME_PIECES, size=NUMBER)

    def __init__(self, schema: Mapping[str, pl.DataType]) -> None:
        self.schema = dict(schema)
        self.pieces: list[pl.DataFrame] = [pl.DataFrame(schema=self.schema)]
        self.size = 0

    def add(self, rows: pl.DataFrame) -> Times:
        """Takes rows in; returns their slots."""
        slots = np.arange(self.size, self.size + rows.height)
        self.size += rows.height
        self.pieces.append(rows.select(list(self.schema)))
        while len(self.pieces) > 1 and self.pieces[-2].height <= 2 * self.pieces[-1].height:
            self.pieces[-2:] = [pl.concat(self.pieces[-2:], rechunk=True)]
        return slots

    @property
    def rows(self) -> pl.DataFrame:
        return pl.concat(self.pieces, rechunk=False) if len(self.pieces) > 1 else self.pieces[0]

    def column(self, name: str) -> pl.Series:
        return self.rows[name] if len(self.pieces) > 1 else self.pieces[0][name]

    def compact(self, used: Times) -> Times | None:
        """Forget all other slots when that is worth it; returns the new slot of each old one."""
        if self.size < index.WORTH_COMPACTING or 2 * len(used) > self.size:
            return None
        keep = np.zeros(self.size, dtype=np.bool_)
        keep[used] = True
        self.pieces = [self.rows.filter(pl.Series(keep))]
        self.size = self.pieces[0].height
        return np.cumsum(keep) - 1


def content_of(vs: Times, rows: pl.DataFrame) -> Times:
    """A hash of start and payload that is the same on every machine and after any upgrade."""
    hashes = np.full(len(vs), SEED, dtype=np.uint64)
    absorb_words(hashes, vs.view(np.uint64), np.empty(0, dtype=np.bool_))
    for name in rows.columns:
        for column in distinguishing(rows[name]):
            absorb(hashes, column)
    return hashes.view(np.int64)


def distinguishing(column: pl.Series) -> list[pl.Series]:
    """Columns whose hashes differ where the values do. The hash of shards is about microseconds and 64 bits."""
    kind = column.dtype
    if isinstance(kind, pl.Datetime | pl.Duration) and kind.time_unit == "ns":
        return [column, column.cast(pl.Int64) % 1000]
    if kind in (pl.Int128, pl.UInt128):
        return [column.cast(pl.String)]
    return [column if can_be_key(kind) else column.hash().alias(column.name)]


class EventList(Stateful):
    """All events kept, with their payloads. `identified`: ids are needed, so equal events are numbered."""

    state = fields(events=counted(columns(Events)), payloads=PARTS)

    def __init__(self, schemas: Sequence[Mapping[str, pl.DataType]], identified: bool) -> None:
        self.payloads = [Payloads(schema) for schema in schemas]
        self.identified = identified
        self.events = NO_EVENTS

    def __len__(self) -> int:
        return len(self.events.g)

    def number(self, new: Events) -> Events:
        """New events with their numbers among equal ones."""
        old = self.events
        words = [equality(e) for e in (old, new)]
        numbers, size = numbers_of(np.concatenate(words))
        return new._replace(copy=counted_before(numbers, size)[len(old.g) :])

    def add(self, new: Events) -> None:
        self.events = self.events.merged(new)

    def find(self, port: int, gone: Events) -> Times:
        """The places of events that are removed: of equal ones, those that came last. They must be there."""
        events = self.events
        near = runs(events.g, events.vs, gone.g, gone.vs)
        stored = events.take(near)
        if not self.identified:
            same_port = np.isin(stored.variant, np.unique(gone.variant))
            near, stored = near[same_port], stored.take(np.flatnonzero(same_port))
            rows = self.payloads[port].rows[stored.slot]
            stored = stored._replace(content=content_of(stored.vs, rows))
        numbers, size = numbers_of(np.concatenate((equality(stored), equality(gone))))
        taken = last_of_each(numbers, size, len(near))
        if (taken < 0).any():
            at = int(np.argmax(taken < 0))
            raise StreamError(f"removal of an event at {gone.vs[at]}", at, "there is no such event to remove")
        return near[taken]

    def remove(self, places: Times) -> None:
        keep = np.ones(len(self), dtype=np.bool_)
        keep[places] = False
        self.events = self.events.take(keep)

    def keep(self, keep: Mask, ports: Times) -> None:
        """Drop all other events; `ports` is the port of each variant."""
        if not keep.all():
            self.events = self.events.take(keep)
        for port, payloads in enumerate(self.payloads):
            mine = ports[self.events.variant] == port
            slots = payloads.compact(self.events.slot[mine])
            if slots is not None:
                slot = self.events.slot.copy()
                slot[mine] = slots[slot[mine]]  # the slots of other ports count other rows
                self.events = self.events._replace(slot=slot)


def equality(events: Events) -> Times:
    """One word for each event, the same for equal events."""
    words = events.content.view(np.uint64).copy()
    for column in (events.vs, events.variant, events.g):
        absorb_words(words, column.view(np.uint64), np.empty(0, dtype=np.bool_))
    return words.view(np.int64)
