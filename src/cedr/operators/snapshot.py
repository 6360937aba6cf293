"""What all operators have in common that answer snapshot by snapshot: the speculative algorithm, chunk by chunk.

The state is a list of end points sorted by group and time. A chunk is merged into it in one pass; the snapshots that
may be emitted at the operator's latency are read off; their net change against what was emitted before is emitted; and
what lies before the front of its group is folded away. (The papers' POS is the `Synopsis`; their ECQ is the part of the
end points past the watermark.)
"""

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, Times
from cedr.columnar.index import RowIndex
from cedr.columnar.state import ARRAYS, PART, counted, fields
from cedr.kernels import endpoints as ep
from cedr.operators.base import Operator
from cedr.operators.front import Front, by_group, earliest
from cedr.operators.latency import EmissionPolicy
from cedr.operators.synopsis import OutputOrder, Synopsis
from cedr.operators.values import Words
from cedr.plan.latency import Latency

Rows = tuple[Times, Times, Times, Times, np.ndarray]
"""Group, start, end before and after, and weights (the first: how many tuples)."""
Sums = np.ndarray


class SnapshotOperator(Operator):
    """Subclasses define the weights of a row, the values of a snapshot, and how values become payload columns."""

    state = fields(
        groups=PART,
        endpoints=counted(ARRAYS),
        emission=PART,
        order=PART,
        emitted=PART,
        front=PART,
    )

    def __init__(self, group_schema: Mapping[str, pl.DataType], latency: Latency, weights: int, width: int):
        super().__init__()
        self.emission = EmissionPolicy(latency)
        self.groups = RowIndex(dict(group_schema))
        self.front = Front(self, self.groups)
        self.endpoints = ep.empty_endpoints(weights)
        self.emitted = Synopsis(width)
        self.order = OutputOrder()

    # --- what a subclass defines ---------------------------------------------------------------------------------

    @abstractmethod
    def take(self, chunk: Chunk, g: Times) -> Rows:
        """Work the rows into the subclass's own state; returns them with their weights."""

    @abstractmethod
    def answer(self, entries: Times, sums: Sums) -> tuple[Times | None, Words]:
        """The results of the snapshots that start at these end points, from the sums of what is live.

        For each result which snapshot it belongs to (None: one each, in order), and its words.
        """

    @abstractmethod
    def payload(self, g: Times, words: Words) -> pl.DataFrame:
        """The output columns."""

    def forget(self, before: Times) -> None:
        """Drop the subclass's own state that only matters before a settled time, by group or for all."""

    def renumber(self, numbers: Times) -> None:
        """The groups have new numbers."""

    # --- the algorithm --------------------------------------------------------------------------------------------

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        self.order.watch(chunk, self.promised[port])
        self.front.advance(port, chunk)
        if len(chunk):
            g = self.groups.ids(chunk.rows)
            g, vs, old, new, ints = self.take(chunk, g)
            changes = ep.changes_of(g, vs, old, new, ints[:, 0], ints)
            self.endpoints = ep.merge(*self.endpoints, *changes)
        self.emission.see(self, port, chunk)
        front, promised = self.front.all(), self.front.promised()
        entries, g, start, end, sums, held = self._to_emit(front, promised)
        which, words = self.answer(entries, sums)
        if which is not None:
            g, start, end = g[which], start[which], end[which]
        changed_g, changed_words, at, before, after = self.emitted.update(
            g, start, end, words, self.emission.reached(front)
        )
        cti, settled = min(self.cti, earliest(held)), self.front.settle(held, front)
        promises = self.front.passed(cti, len(chunk), changed_g)
        out = self.order.chunk(at, before, after, self.payload(changed_g, changed_words), cti, promises)
        if (settled > promised).any():
            self._forget(settled)
        return out

    def _to_emit(self, front: Times, promised: Times) -> tuple[Times, ...]:
        """The snapshots that may be emitted, with their sums, and by group the start of the first that may not."""
        g, t, _, weights = self.endpoints

        def still_open(until: Times) -> Times:
            found: Times = ep.earliest_open(g, t, weights, until, promised)
            return found

        limits = self.emission.limits(front, still_open, self.front.ahead(front))
        found: tuple[Times, ...] = ep.snapshots(g, t, weights, *limits, promised)
        return found

    def _forget(self, settled: Times) -> None:
        """Drop what is settled, once that is a good part of the state: dropping costs a pass over all of it."""
        g, t, *_ = self.endpoints
        if 4 * np.count_nonzero(t < by_group(settled, g)) < len(t):
            return
        self.endpoints = ep.fold(*self.endpoints, settled)
        self.emitted.forget(settled)
        self.forget(settled)
        if self.groups.may_compact():
            numbers = self.groups.compact(np.concatenate((self.endpoints[0], self.emitted.g)))
            if numbers is not None:
                self.endpoints = (numbers[self.endpoints[0]], *self.endpoints[1:])
                self.emitted.g = numbers[self.emitted.g]
                self.front.renumber(numbers)
                self.renumber(numbers)
