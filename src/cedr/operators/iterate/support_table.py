"""What a loop holds at each instant, and how many derivations support it.

A row that the body emits is one derivation of its payload for a while. A payload is held while it has support, and,
with a selection, while it is the best of its group. A retraction is where care is needed: rows that derive each other
keep each other alive when what they came from is gone. So first everything that lost *a* derivation is withdrawn, and
what follows from it, and so on (`withdraw`); only when no more falls, what still has support is held again (`renew`).
What was never touched has only valid derivations, and so does what follows from it.
This is delete and rederive, for all instants at once, each by itself.

    counts    derivations, as entries of `cedr.kernels.supports`
    held      what is held now
    fed       what the body has seen of it; the rest circulates
    emitted   what the output has seen of it
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, Times, assemble
from cedr.columnar.index import RowIndex
from cedr.columnar.marks import Marks
from cedr.columnar.state import DERIVED, NUMBER, PART, TRANSIENT, Stateful, compact, counted, fields
from cedr.kernels import supports as su
from cedr.kernels.members import Members, with_room
from cedr.kernels.ragged_pairs import RaggedPairs
from cedr.operators.iterate.selection import preferred
from cedr.plan.loop import LoopSelection
from cedr.temporal.time import INF, MIN

Intervals = tuple[Times, Times, Times]
"""Payload, start and end, sorted."""


class Changes(NamedTuple):
    """How ends of intervals change."""

    payload: Times
    vs: Times
    old: Times
    new: Times

    @property
    def sync(self) -> Times:
        return np.minimum(self.old, self.new)


PAIRS = compact(
    3, lambda _, pairs: pairs.all(), lambda pairs, saved: pairs.fill(int(saved[0].max(initial=-1)) + 1, *saved)
)
"""Pairs by payload."""


class SupportTable(Stateful):
    state = fields(
        payloads=PART,
        counts=counted(PAIRS),
        held=counted(PAIRS),
        fed=PAIRS,
        emitted=PAIRS,
        since=NUMBER,
        lost=TRANSIENT,
        groups=DERIVED,
        group_of=DERIVED,
        members=DERIVED,
        known=DERIVED,
        work=TRANSIENT,
        dirty=DERIVED,
        unfed=DERIVED,
        unemitted=DERIVED,
        differs=DERIVED,
    )

    def __init__(self, schema: Mapping[str, pl.DataType], selection: LoopSelection | None = None) -> None:
        self.payloads = RowIndex(dict(schema))
        self.selection = selection
        self.groups = RowIndex({name: schema[name] for name in selection.by}) if selection else None
        self.group_of = np.empty(0, dtype=np.int64)
        """With a selection the group of each payload, and room for more."""
        self.members = Members()
        self.dirty, self.unfed, self.unemitted = Marks(), Marks(), Marks()
        """Groups whose support has changed, and payloads that are held differently from what was fed and emitted."""
        self.known = self.work = 0
        """Payloads that have a group and marks; and what arrived since anything was forgotten."""
        self.counts, self.held, self.fed, self.emitted = (RaggedPairs() for _ in NAMES)
        self.lost: list[Intervals] = []
        self.since = MIN
        """Before this nothing changes any more."""
        self.differs: Changes | None = None
        """What circulates; None if it has to be computed."""
        self._grow()

    # --- derivations of the body ---------------------------------------------------------------------------------

    def absorb(self, chunk: Chunk, *, firm: bool) -> None:
        """Count the derivations that came and went.

        `firm`: they went only because something better came, so that what still has support is on firm ground.
        """
        if not len(chunk):
            return
        p, old, new = self.payloads.ids(chunk.rows), chunk.old, chunk.new
        self._grow()
        low, high, sign = np.minimum(old, new), np.maximum(old, new), np.where(new > old, 1, -1)
        changes = su.count_changes(p, low, high, sign)
        touched = distinct_sorted(changes[0])
        self.counts.put(touched, *su.merge(*self.counts.of(touched), *changes))
        self.dirty.add(p if self.groups is None else self.group_of[p])
        self.work += len(p)
        went = sign < 0
        if went.any():
            lost = p[went], low[went], high[went]
            self.lost.append(su.without_support(*self._entries(), *lost) if firm else lost)

    def withdraw(self) -> bool:
        """Let go of what lost a derivation; whether anything was held of it."""
        if not self.lost:
            return False
        p, low, high = (np.concatenate(arrays) for arrays in zip(*self.lost, strict=True))
        self.lost = []
        order = np.lexsort((low, p))
        gone = su.union(p[order], low[order], high[order])
        touched = distinct_sorted(gone[0])
        before = self.held.of(touched)
        after = su.subtract(*before, *gone)
        if equal_intervals(before, after):
            return False
        self._hold(touched, after)
        return True

    def renew(self) -> None:
        """Hold what has support, in the groups that changed since the last call."""
        if not self.dirty:
            return
        groups = self.dirty.numbers()
        touched = groups if self.groups is None else np.sort(self.members.of(groups))
        found = self._supported(touched)
        p, start, end = self.held.of(touched)
        settled = start < self.since
        if settled.any():
            mine = p[settled], start[settled], np.minimum(end[settled], self.since)
            found = concatenated(mine, found)
        if settled.any() or self.selection:
            order = np.lexsort((found[1], found[0]))
            found = su.union(*(a[order] for a in found))
        self._hold(touched, found)
        self.dirty.clear()

    def _supported(self, members: Times) -> Intervals:
        """When each of these payloads has support, and is the best of its group."""
        if self.selection is None:
            return su.all_supported(*self._entries(), members, self.since)
        groups = self.group_of[members]
        order = preferred(self.selection, self.payloads.take(members), groups)
        return su.best(*self._entries(), members[order], groups[order], self.since)

    def _entries(self) -> tuple[Times, Times, Times, Times]:
        return self.counts.first, self.counts.size, self.counts.one, self.counts.two

    def _hold(self, touched: Times, intervals: Intervals) -> None:
        self.held.put(touched, *intervals)
        self.unfed.add(touched)
        self.unemitted.add(touched)
        self.differs = None

    # --- what goes round, and what goes out ----------------------------------------------------------------------

    def circulating(self) -> Changes:
        """What is held differently from what the body has seen."""
        if self.differs is None:
            self.differs = self._unseen(self.fed, self.unfed)
        return self.differs

    def feed(self, cti: int) -> Chunk:
        """What circulates, for the body."""
        chunk = self._chunk(self.circulating(), cti)
        self._seen(self.fed, self.unfed)
        self.differs = None
        return chunk

    def emit(self, cti: int) -> Chunk:
        """What changed since the last time, for the output."""
        changes = self._unseen(self.emitted, self.unemitted)
        self._seen(self.emitted, self.unemitted)
        return self._chunk(changes, cti)

    def _unseen(self, seen: RaggedPairs, marks: Marks) -> Changes:
        payloads = marks.numbers()
        return Changes(*su.end_changes(*seen.of(payloads), *self.held.of(payloads)))

    def _seen(self, seen: RaggedPairs, marks: Marks) -> None:
        payloads = marks.numbers()
        seen.put(payloads, *self.held.of(payloads))
        marks.clear()

    def _chunk(self, changes: Changes, cti: int) -> Chunk:
        """Ends that shrink come first, so that no payload is ever there twice."""
        p, vs, old, new = changes
        grows = new > old
        if not grows.all():
            order = np.argsort(grows, kind="stable")
            p, vs, old, new = p[order], vs[order], old[order], new[order]
        return assemble(vs, old, new, self.payloads.take(p), cti)

    # --- forgetting ----------------------------------------------------------------------------------------------

    def forget(self, before: int) -> None:
        """Nothing before this time changes any more: drop what only matters there. Call it when all is emitted."""
        self.since = before
        self.work += FREE
        if before != INF and self.work < len(self.counts) + len(self.held) + len(self.payloads) - FEW_ROWS:
            return
        self.work = 0
        counts = su.nothing() if before == INF else su.fold(*self.counts.all(), before)
        all_kept = [
            counts,
            *(without_settled(shelves.all(), before) for shelves in (self.held, self.fed, self.emitted)),
        ]
        numbers = self.payloads.compact(np.concatenate([p for p, _, _ in all_kept]))
        if numbers is not None:
            all_kept = [(numbers[p], one, two) for p, one, two in all_kept]
            self._renumber(self.unfed.renumbered(numbers, len(self.payloads)))
        self._fill(all_kept)

    def _fill(self, contents: Sequence[Intervals]) -> None:
        for name, intervals in zip(NAMES, contents, strict=True):
            getattr(self, name).fill(len(self.payloads), *intervals)
        self.differs = None

    def _renumber(self, unfed: Marks | None = None) -> None:
        """Groups and marks for payloads that have got new numbers; without marks all is looked at again."""
        if self.selection:
            self.groups = RowIndex({name: self.payloads.schema[name] for name in self.selection.by})
        size = len(self.payloads)
        self.group_of, self.members, self.dirty = np.empty(0, dtype=np.int64), Members(), Marks()
        self.unfed = Marks(size, marked=True) if unfed is None else unfed
        self.unemitted = Marks(size, marked=unfed is None)
        self.known = 0
        self._grow()

    # --- numbers -------------------------------------------------------------------------------------------------

    def _grow(self) -> None:
        """Groups and marks for new payloads."""
        known, size = self.known, len(self.payloads)
        if known == size:
            return
        self.known = size
        if self.groups is not None:
            new = np.arange(known, size)
            groups = self.groups.ids(self.payloads.take(new))
            self.group_of = with_room(self.group_of, size)
            self.group_of[known:size] = groups
            self.members.add(new, groups)
        self.unfed.grow(size)
        self.unemitted.grow(size)
        self.dirty.grow(size if self.groups is None else len(self.groups))
        for name in NAMES:
            getattr(self, name).grow(size)

    def restored(self) -> None:
        self._renumber()
        self.differs = None


NAMES = ("counts", "held", "fed", "emitted")

FEW_ROWS = 1024
"""Up to this number of rows all are looked at to forget some."""
FREE = 1024
"""Beyond it each progress looks at this number, and at one for each row that arrived since, on average."""


def distinct_sorted(payloads: Times) -> Times:
    """Of sorted numbers each once."""
    return payloads[np.diff(payloads, prepend=-1) != 0]


def concatenated(one: Intervals, two: Intervals) -> Intervals:
    p, start, end = (np.concatenate(both) for both in zip(one, two, strict=True))
    return p, start, end


def equal_intervals(one: Intervals, two: Intervals) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def without_settled(intervals: Intervals, before: int) -> Intervals:
    """What ends at the time may still grow; what is for ever stays until all is over."""
    p, start, end = intervals
    keep = (end >= before) & (before != INF)
    return (p, start, end) if keep.all() else (p[keep], start[keep], end[keep])
