"""The events a pattern operator keeps: by group and start, each with the event types that accept it and its payload.

A port whose event types have different keys has its events in the list once for each key. Group -1 holds the events
without a key; each of them is a group of its own when patterns are evaluated. Payloads are kept as they came, in slots.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import polars as pl

from cedr.columnar import index
from cedr.columnar.chunk import Times
from cedr.columnar.sharding import absorb, can_be_key
from cedr.columnar.state import FRAME_PIECES, NUMBER, PARTS, Stateful, fields
from cedr.kernels.event_list import distinct
from cedr.kernels.hashing import SEED, absorb_words
from cedr.kernels.ids import counted_before, last_of_each, numbers_of
from cedr.operators.patterns.levels import EventLevels, Events, LevelsKind, Mask, NearEvents, in_order
from cedr.temporal.errors import StreamError


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

    state = fields(events=LevelsKind(), payloads=PARTS)

    def __init__(self, schemas: Sequence[Mapping[str, pl.DataType]], identified: bool) -> None:
        self.payloads = [Payloads(schema) for schema in schemas]
        self.identified = identified
        self.events = EventLevels()

    def __len__(self) -> int:
        return len(self.events)

    def change(self, port: int, come: Events, gone: Events, near: NearEvents) -> NearEvents:
        """Add and remove events; returns all in the stretches of `near`, which hold these, as they are now."""
        if self.identified:
            come = self._numbered(come)
        if len(gone.g):
            come, gone = without_both(come, gone)
        come = come if self.identified else come.without_ids()
        if len(gone.g):
            self.events.remove(*self._stored_at(port, gone))
            near = near.without_removed()
        self.events.add(come)
        return self.events.near(*near.stretches) if self.events.is_flat else near.plus(come)

    def _numbered(self, new: Events) -> Events:
        """New events with their numbers among equal ones."""
        near = self._together_with(new).events
        old = near.part(np.flatnonzero(near.bits))
        numbers, size = numbers_of(np.concatenate((equality(old), equality(new))))
        return new._replace(copy=counted_before(numbers, size)[len(old.g) :])

    def _together_with(self, events: Events) -> NearEvents:
        """The stored events of the same groups that start at the same times, with those that were removed."""
        ordered = in_order(events)
        g, vs = distinct(ordered.g, ordered.vs)
        return self.events.near(g, vs, vs)

    def _stored_at(self, port: int, gone: Events) -> tuple[Times, Times]:
        """Where events that are removed are stored: of equal ones, those that came last. They must be there."""
        near = self._together_with(gone)
        same_port = np.isin(near.events.variant, np.unique(gone.variant))
        there = np.flatnonzero(same_port & (near.events.bits != 0))
        stored = near.events.take(there)
        if not self.identified:
            rows = self.payloads[port].rows[stored.slot]
            stored = stored._replace(content=content_of(stored.vs, rows))
        numbers, size = numbers_of(np.concatenate((equality(stored), equality(gone))))
        taken = last_of_each(numbers, size, len(there))
        if (taken < 0).any():
            at = int(np.argmax(taken < 0))
            raise StreamError(f"removal of an event at {gone.vs[at]}", at, "there is no such event to remove")
        return near.stored_at(there[taken])

    def keep(self, needed: Callable[[Times, Times], Mask], ports: Times) -> bool:
        """Forget all other events if they are many; `ports` is the port of each variant."""
        events = self.events.flat()
        keep = needed(events.g, events.vs)
        dropped = len(keep) - int(np.count_nonzero(keep))
        if 4 * dropped < len(keep):
            return False
        if dropped:
            events = events.take(keep)
        for port, payloads in enumerate(self.payloads):
            mine = ports[events.variant] == port
            slots = payloads.compact(events.slot[mine])
            if slots is not None:
                slot = events.slot.copy()
                slot[mine] = slots[slot[mine]]  # the slots of other ports count other rows
                events = events._replace(slot=slot)
        self.events = EventLevels(events)
        return True


def without_both(come: Events, gone: Events) -> tuple[Events, Events]:
    """Without events that come and go at once; of equal ones the last go."""
    numbers, size = numbers_of(np.concatenate((equality(come), equality(gone))))
    taken = last_of_each(numbers, size, len(come.g))
    stays = np.ones(len(come.g), dtype=np.bool_)
    stays[taken[taken >= 0]] = False
    return come.take(stays), gone.take(taken < 0)


def equality(events: Events) -> Times:
    """One word for each event, the same for equal events."""
    words = events.content.view(np.uint64).copy()
    for column in (events.vs, events.variant, events.g):
        absorb_words(words, column.view(np.uint64), np.empty(0, dtype=np.bool_))
    return words.view(np.int64)
