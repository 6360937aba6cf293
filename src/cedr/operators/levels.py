"""Operators that know only how many copies of a payload live at an instant: distinct, coalesce, difference, intersect.

Their result is a height per payload and instant, emitted as levels: the k-th copy lives where the height is at least k.
The state is a list of end points per payload, as in `snapshot`; the starts of levels that began before what is still
remembered are kept separately. So a level that never ends does not keep what it is made of. If chunks are small
compared with the state, it is in blocks (`local_levels`).

Each payload is a group of its own, so every promise is about groups. Where the result is nothing without an input,
as in a difference without its first, a payload that this input will not bring any more and that has run out in it is
decided: its state goes, and rows about it from the other input are not kept.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, Times
from cedr.columnar.index import RowIndex
from cedr.columnar.state import ARRAYS, DERIVED, PART, counted, fields
from cedr.kernels import endpoints as ep
from cedr.kernels import levels as lv
from cedr.operators import layout
from cedr.operators.base import Operator
from cedr.operators.front import Front, Mask, by_group, earliest
from cedr.operators.latency import EmissionPolicy
from cedr.operators.local_levels import Changed, Levels, LocalLevels
from cedr.operators.local_snapshots import EndPoints
from cedr.operators.synopsis import OutputOrder, Synopsis
from cedr.operators.two_layouts import TwoLayouts, Views
from cedr.plan.latency import Latency
from cedr.temporal.time import INF, MIN

Counts = np.ndarray
HeightAndLevels = tuple[Times, Levels]
"""The height from each end point on, and the levels."""


class LevelOperator(TwoLayouts, Operator):
    """Subclasses define the height from the number of live copies on each port."""

    needed: tuple[int, ...] = ()
    """Ports without whose copies the height is 0."""

    state = fields(
        payloads=PART,
        endpoints=counted(ARRAYS),
        open=ARRAYS,
        order=PART,
        emission=PART,
        emitted=PART,
        front=PART,
        local=DERIVED,
        small_chunks=DERIVED,
    )
    fields_in_blocks = ("endpoints", "open", "emitted")

    def __init__(self, schema: Mapping[str, pl.DataType], latency: Latency = "perfect") -> None:
        super().__init__()
        self.schema = dict(schema)
        self.emission = EmissionPolicy(latency, growing=True)
        self.payloads = RowIndex(self.schema)
        self.front = Front(self, self.payloads, needed=self.needed)
        self.endpoints = ep.empty_endpoints(self.ports)
        nothing = np.empty(0, dtype=np.int64)
        self.open = (nothing, nothing)
        self.emitted = Synopsis(0)
        self.order = OutputOrder()
        self.local: LocalLevels | None = None
        """End points, open and emitted levels in blocks; then `endpoints`, `open` and `emitted` are empty."""
        self.small_chunks = 0

    @abstractmethod
    def height(self, copies: Counts) -> Times:
        """The height from the number of copies on each port (columns)."""

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        self.order.watch(chunk, self.promised[port])
        self.front.advance(port, chunk)
        self._choose_layout(len(chunk))
        changes = self._changes(port, chunk) if len(chunk) else None
        if self.local is None and changes is not None:  # before the fronts: they depend on what a payload still has
            self.endpoints = ep.merge(*self.endpoints, *changes)
        self.emission.see(self, port, chunk)
        front, promised = self._front(), self.front.promised()
        update = self._update if self.local is None else partial(self._update_locally, changes)
        (changed, at, before, after), held, levels = update(front, promised)
        cti, settled = min(self.cti, earliest(held)), self.front.settle(held, front)
        promises = self.front.passed(cti, len(chunk), changed)
        out = self.order.chunk(at, before, after, self.payloads.take(changed), cti, promises)
        if self.local is not None and MIN < settled[0] < INF:
            self._forget_in_blocks(self.local, front, settled)
        elif self.local is None and ((settled > promised).any() or (settled < front).any()):
            self._forget(front, settled, levels)
        return out

    def _changes(self, port: int, chunk: Chunk) -> EndPoints:
        """How the chunk changes the end points."""
        g, vs, old, new = self.payloads.ids(chunk.rows), chunk.vs, chunk.old, chunk.new
        others = [other for other in self.needed if other != port]
        if self.front.keyed and others:
            use = ~self._decided(others, np.array([MIN]))[g]
            g, vs, old, new = g[use], vs[use], old[use], new[use]
        weights = np.zeros((len(g), self.ports), dtype=np.int64)
        weights[:, port] = 1
        changes: EndPoints = ep.changes_of(g, vs, old, new, np.ones(len(g), dtype=np.int64), weights)
        return changes

    # --- all of the state in one pass ------------------------------------------------------------------------------

    def _update(self, front: Times, promised: Times) -> tuple[Changed, Times, HeightAndLevels | None]:
        """The change of the answer; by payload the start of the first level that may not be emitted; all levels."""
        height, levels = self._levels()
        lg, start, end = levels
        emits, held = self.emission.select(lg, start, end, front, promised, self.front.ahead(front))
        no_words = np.empty((int(emits.sum()), 0), dtype=np.int64)
        changed, _, at, before, after = self.emitted.update(
            lg[emits], start[emits], end[emits], no_words, self.emission.reached(front)
        )
        return (changed, at, before, after), held, (height, levels)

    def _levels(self) -> HeightAndLevels:
        g, t, _, counts = self.endpoints
        height = self.height(ep.live_copies(g, counts))
        return height, lv.levels(g, t, height, *self.open)

    # --- what a chunk affects, from blocks ---------------------------------------------------------------------------

    def _update_locally(
        self, changes: EndPoints | None, front: Times, promised: Times
    ) -> tuple[Changed, Times, HeightAndLevels | None]:
        """The same as `_update`, where the state is in blocks; without all levels."""
        local = self.local
        assert local is not None
        groups, levels = local.take(self.endpoints if changes is None else changes)
        due = (groups[:0], groups[:0], groups[:0])

        def still_open(until: Times) -> Times:
            nonlocal due
            over = self.emission.over(until)
            due, first = local.earliest_open(levels, int(until[0]), int(over[0]), self.emission.released, promised)
            return np.array([first])

        limits = self.emission.limits(front, still_open)
        return local.update(groups, levels, due, (*limits, promised)), local.held(), None

    def _choose_layout(self, rows: int) -> None:
        """Keep the state in blocks as long as chunks are small compared with it."""
        together = not self.front.keyed and self.emission.latency != "ordered" and self.cti < INF
        if self.local is None:
            small = together and layout.is_small(rows, len(self.endpoints[0]))
            self.small_chunks = self.small_chunks + 1 if small else 0
            if self.small_chunks > layout.PATIENCE:
                self._to_blocks()
        elif not together or layout.is_large(rows, self.local.endpoints.rows):
            self._to_arrays()

    def _to_blocks(self) -> None:
        emitted = (self.emitted.g, self.emitted.start, self.emitted.end)
        limits = self.emission.last_limits(self.front.promised())
        self.local = LocalLevels(self.endpoints, self.open, emitted, self.height, limits)
        self.clear_arrays()

    def _to_arrays(self) -> None:
        self.fill_arrays()
        self.local, self.small_chunks = None, 0

    # --- progress and forgetting -------------------------------------------------------------------------------------

    def _front(self) -> Times:
        """The fronts; INF for a payload that is decided."""
        front = self.front.all()
        return np.where(self._decided(self.needed, front), INF, front) if self.front.keyed else front

    def _decided(self, ports: Sequence[int], since: Times) -> Mask:
        """By payload: has it run out since that time in one of these inputs, which brings no more of it?"""
        g, t, _, counts = self.endpoints
        decided = np.zeros(len(self.payloads), dtype=np.bool_)
        for port in ports:
            done = np.broadcast_to(self.front.of(port) == INF, decided.shape).copy()
            if done.any():
                done[g[(counts[:, port] != 0) & (t > by_group(since, g))]] = False
                decided |= done
        return decided

    def _forget(self, front: Times, settled: Times, known: HeightAndLevels | None) -> None:
        """Drop what is settled."""
        height, (lg, _, end) = known or self._levels()
        g, t, *_ = self.endpoints
        folded = lv.foldable(lg, end, settled, front, len(self.payloads))
        self.open = lv.open_levels(g, t, height, *self.open, folded)
        self.endpoints = ep.fold(*self.endpoints, folded)
        self.emitted.forget(settled)
        numbers = self.payloads.compact(np.concatenate((self.endpoints[0], self.emitted.g, self.open[0])))
        if numbers is not None:
            self.endpoints = (numbers[self.endpoints[0]], *self.endpoints[1:])
            self.emitted.g = numbers[self.emitted.g]
            self.open = (numbers[self.open[0]], self.open[1])
            self.front.renumber(numbers)

    def _forget_in_blocks(self, local: LocalLevels, front: Times, settled: Times) -> None:
        """The same, a few payloads with each chunk."""
        if local.lap.begins(local.rows):
            local.forget(local.lap.groups(local.rows, len(self.payloads)), settled, front)
            if not local.lap.under_way:
                numbers = local.compact(self.payloads)
                if numbers is not None:
                    self.front.renumber(numbers)

    # --- state -------------------------------------------------------------------------------------------------------

    def state_rows(self) -> int:
        return super().state_rows() if self.local is None else self.local.endpoints.rows

    @property
    def nbytes(self) -> int:
        return super().nbytes + (0 if self.local is None else self.local.nbytes)

    def restored(self) -> None:
        super().restored()
        self.local, self.small_chunks = None, 0

    def block_views(self) -> Views | None:
        return None if self.local is None else self.local.views()

    def fill_arrays(self) -> None:
        assert self.local is not None
        self.endpoints, self.open, (g, start, end) = self.local.flat()
        self.emitted.g, self.emitted.start, self.emitted.end = g, start, end
        self.emitted.words = np.empty((len(g), 0), dtype=np.int64)

    def clear_arrays(self) -> None:
        self.endpoints, self.emitted = ep.empty_endpoints(self.ports), Synopsis(0)
        self.open = (self.endpoints[0], self.endpoints[1])

    def move_to_blocks(self) -> None:
        self._to_blocks()


class DistinctOperator(LevelOperator):
    """Every payload once while it lives."""

    def height(self, copies: Counts) -> Times:
        return np.minimum(copies[:, 0], 1)


class CoalesceOperator(LevelOperator):
    """The same table in the fewest, longest events."""

    def height(self, copies: Counts) -> Times:
        return copies[:, 0]


class DifferenceOperator(LevelOperator):
    """What the first input has more often than the second (bag monus)."""

    ports = 2
    needed = (0,)

    def height(self, copies: Counts) -> Times:
        return np.maximum(copies[:, 0] - copies[:, 1], 0)


class IntersectOperator(LevelOperator):
    """What both inputs have, each payload once."""

    ports = 2
    needed = (0, 1)

    def height(self, copies: Counts) -> Times:
        return np.minimum(np.minimum(copies[:, 0], copies[:, 1]), 1)
