"""What a loop holds at each instant, and how many derivations support it.

A row that the body puts out is one derivation of its payload for a while. A payload is held while it has support, and,
with a selection, while it is the best of its group. A retraction is where care is needed: rows that derive each other
keep each other alive when what they came from is gone. So first everything that lost *a* derivation is withdrawn, and
what follows from it, and so on (`withdraw`); only when no more falls, what still has support is held again (`renew`).
What was never touched has only derivations that stand, so it rests on firm ground, and so does what follows from it.
This is delete and rederive, for all instants at once, each by itself.

    counts    derivations, as entries of `cedr.kernels.supports`
    held      what is held now
    fed       what the body has seen of it; the rest circulates
    told      what the output has seen of it
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, Times, assemble
from cedr.columnar.index import RowIndex
from cedr.kernels import supports as su
from cedr.operators.base import State
from cedr.operators.iterate.selection import Selection
from cedr.temporal.time import INF, MIN

Mask = np.ndarray[Any, np.dtype[np.bool_]]
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


class Holdings:
    def __init__(self, schema: Mapping[str, pl.DataType], selection: Selection | None = None) -> None:
        self.payloads = RowIndex(dict(schema))
        self.selection = selection
        self.groups = RowIndex({name: schema[name] for name in selection.by}) if selection else None
        self.group_of = np.empty(0, dtype=np.int64)
        self.counts: Intervals = su.nothing()
        self.held: Intervals = su.nothing()
        self.fed: Intervals = su.nothing()
        self.told: Intervals = su.nothing()
        self.lost: list[Intervals] = []
        self.since = MIN
        """Before this nothing changes any more."""
        self._grow()

    # --- what the body says --------------------------------------------------------------------------------------

    def absorb(self, chunk: Chunk, *, firm: bool) -> None:
        """Count the derivations that came and went.

        `firm`: they went only because something better came, so that what still has support is on firm ground.
        """
        if not len(chunk):
            return
        p, old, new = self.payloads.ids(chunk.rows), chunk.old, chunk.new
        self._grow()
        low, high, sign = np.minimum(old, new), np.maximum(old, new), np.where(new > old, 1, -1)
        self.counts = su.merge(*self.counts, *su.count_changes(p, low, high, sign))
        self.dirty[self.group_of[p]] = True
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
        touched = self._mask(gone[0])
        before = self._of(self.held, touched)
        after = su.subtract(*before, *gone)
        if same(before, after):
            return False
        self._hold(touched, after)
        return True

    def renew(self) -> None:
        """Hold what has support, in the groups about which something was said since the last time."""
        if not self.dirty.any():
            return
        touched = self.dirty[self.group_of]
        members, groups = self._preferred(np.flatnonzero(touched))
        now = su.best(*self._entries(), members, groups, self.since)
        p, start, end = self._of(self.held, touched)
        settled = start < self.since
        p, start, end = (
            np.concatenate((p[settled], now[0])),
            np.concatenate((start[settled], now[1])),
            np.concatenate((np.minimum(end[settled], self.since), now[2])),
        )
        order = np.lexsort((start, p))
        self._hold(touched, su.union(p[order], start[order], end[order]))
        self.dirty[:] = False

    def _preferred(self, members: Times) -> tuple[Times, Times]:
        """Payloads by group, the best first; and their groups."""
        groups = self.group_of[members]
        if self.selection is None:
            return members, groups
        order = self.selection.preferred(self.payloads.take(members), groups)
        return members[order], groups[order]

    def _entries(self) -> tuple[Times, Times, Times]:
        return self.counts[1], self.counts[2], su.first_places(self.counts[0], len(self.payloads))

    def _hold(self, touched: Mask, intervals: Intervals) -> None:
        self.held = su.replaced(*self.held, touched, *intervals)
        self.unfed |= touched
        self.untold |= touched

    # --- what goes round, and what goes out ----------------------------------------------------------------------

    def circulating(self) -> Changes:
        """What is held differently from what the body has seen."""
        if not self.unfed.any():
            return Changes(*(np.empty(0, dtype=np.int64) for _ in range(4)))
        return Changes(*su.end_changes(*self._of(self.fed, self.unfed), *self._of(self.held, self.unfed)))

    def feed(self, cti: int) -> Chunk:
        """What circulates, for the body."""
        chunk = self._chunk(self.circulating(), cti)
        self.fed = self.held
        self.unfed[:] = False
        return chunk

    def tell(self, cti: int) -> Chunk:
        """What changed since the last time, for the output."""
        changes = Changes(*su.end_changes(*self._of(self.told, self.untold), *self._of(self.held, self.untold)))
        self.told = self.held
        self.untold[:] = False
        return self._chunk(changes, cti)

    def _chunk(self, changes: Changes, cti: int) -> Chunk:
        """Ends that shrink come first, so that no payload is ever there twice."""
        order = np.argsort(changes.new > changes.old, kind="stable")
        p, vs, old, new = (a[order] for a in changes)
        return assemble(vs, old, new, self.payloads.take(p), cti)

    # --- forgetting ----------------------------------------------------------------------------------------------

    def forget(self, before: int) -> None:
        """Nothing before this time changes any more: let go of what only matters there. Call it when all is told."""
        self.since = before
        self.counts = su.nothing() if before == INF else su.fold(*self.counts, before)
        self.held, self.fed, self.told = (kept(i, before) for i in (self.held, self.fed, self.told))
        used = np.concatenate((self.counts[0], self.held[0], self.fed[0], self.told[0]))
        numbers = self.payloads.compact(used)
        if numbers is not None:
            self.counts, self.held, self.fed, self.told = (
                (numbers[p], start, end) for p, start, end in (self.counts, self.held, self.fed, self.told)
            )
            self._number_anew(unfed=self.unfed[numbers >= 0])

    def _number_anew(self, unfed: Mask | None = None) -> None:
        """Groups and marks for payloads that have got new numbers; without marks all is looked at again."""
        if self.selection:
            self.groups = RowIndex({name: self.payloads.schema[name] for name in self.selection.by})
        self.group_of = np.empty(0, dtype=np.int64)
        self._grow()
        size = len(self.payloads)
        self.unfed = np.ones(size, dtype=np.bool_) if unfed is None else unfed
        self.untold = np.ones(size, dtype=np.bool_) if unfed is None else np.zeros(size, dtype=np.bool_)

    # --- numbers -------------------------------------------------------------------------------------------------

    def _grow(self) -> None:
        """Groups and marks for new payloads."""
        known, size = len(self.group_of), len(self.payloads)
        if known == 0:
            self.dirty, self.unfed, self.untold = (np.zeros(0, dtype=np.bool_) for _ in range(3))
        if known == size:
            return
        new = np.arange(known, size)
        groups = new if self.groups is None else self.groups.ids(self.payloads.take(new))
        self.group_of = np.concatenate((self.group_of, groups))
        self.unfed, self.untold = extended(self.unfed, size), extended(self.untold, size)
        self.dirty = extended(self.dirty, size if self.groups is None else len(self.groups))

    def _mask(self, payloads: Times) -> Mask:
        mask = np.zeros(len(self.payloads), dtype=np.bool_)
        mask[payloads] = True
        return mask

    def _of(self, intervals: Intervals, touched: Mask) -> Intervals:
        mine = touched[intervals[0]]
        return intervals[0][mine], intervals[1][mine], intervals[2][mine]

    def size(self) -> tuple[int, int]:
        arrays = [*self.counts, *self.held, *self.fed, *self.told]
        return len(self.counts[0]) + len(self.held[0]), sum(a.nbytes for a in arrays)

    def save(self) -> State:
        intervals = {"counts": self.counts, "held": self.held, "fed": self.fed, "told": self.told}
        return {**intervals, "payloads": self.payloads.snapshot(), "since": self.since}

    def load(self, state: State) -> None:
        self.payloads.restore(state["payloads"])
        self.counts, self.held, self.fed, self.told = (state[name] for name in ("counts", "held", "fed", "told"))
        self.since = state["since"]
        self._number_anew()


def same(one: Intervals, two: Intervals) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def kept(intervals: Intervals, before: int) -> Intervals:
    """What ends at the time may still grow; what is for ever stays until all is over."""
    p, start, end = intervals
    keep = (end >= before) & (before != INF)
    return (p, start, end) if keep.all() else (p[keep], start[keep], end[keep])


def extended(mask: Mask, size: int) -> Mask:
    return np.concatenate((mask, np.zeros(size - len(mask), dtype=np.bool_)))
