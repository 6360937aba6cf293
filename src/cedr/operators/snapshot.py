"""What all operators have in common that answer snapshot by snapshot: the speculative algorithm, chunk by chunk.

The state is a list of end points sorted by group and time. A chunk is merged into it in one pass; the snapshots that
may be emitted at the operator's latency are read off; their net change against what was emitted before is emitted; and
what lies before the front of its group is folded away. (The papers' POS is the `Synopsis`; their ECQ is the part of the
end points past the watermark.)

If chunks are small compared with the state, a chunk costs what it changes: end points that time has not reached are
kept apart, if nothing reads them before (`future`); and what is left, if that is much, is kept in blocks
(`local_snapshots`).
"""

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, Times
from cedr.columnar.increments import source_of
from cedr.columnar.index import RowIndex
from cedr.columnar.state import ARRAYS, DERIVED, PART, added_later, counted, fields
from cedr.kernels import endpoints as ep
from cedr.kernels.difference import net_change
from cedr.kernels.frontiers import carried
from cedr.operators import future, layout
from cedr.operators.base import Operator
from cedr.operators.front import Front, by_group, earliest
from cedr.operators.future import FutureEndPoints, picked
from cedr.operators.latency import EmissionPolicy
from cedr.operators.local_snapshots import EndPoints, LocalSnapshots
from cedr.operators.synopsis import OutputOrder, Synopsis
from cedr.operators.two_layouts import TwoLayouts, Views
from cedr.operators.values import Words
from cedr.plan.latency import Latency
from cedr.temporal.time import INF, MIN

Rows = tuple[Times, Times, Times, Times, np.ndarray]
"""Group, start, end before and after, and weights (the first: how many tuples)."""
Sums = np.ndarray
Net = tuple[Times, Words, Times, Times, Times]
"""Group, words, start, end before and after of each change of the answer."""


class SnapshotOperator(TwoLayouts, Operator):
    """Subclasses define the weights of a row, the values of a snapshot, and how values become payload columns."""

    state = fields(
        groups=PART,
        endpoints=counted(ARRAYS),
        emission=PART,
        order=PART,
        emitted=PART,
        front=PART,
        later=added_later(ARRAYS),
        local=DERIVED,
        future=DERIVED,
        small_chunks=DERIVED,
        future_pays=DERIVED,
    )
    fields_in_blocks = ("endpoints", "emitted")

    answers_locally = False
    """Whether there is one answer for each snapshot, and it can be found from some of the end points, so that the state
    may be in blocks."""
    reads_no_future = False
    """Whether, in addition, end points that time has not reached are needed for nothing else."""

    def __init__(self, group_schema: Mapping[str, pl.DataType], latency: Latency, weights: int, width: int):
        super().__init__()
        self.emission = EmissionPolicy(latency)
        self.groups = RowIndex(dict(group_schema))
        self.front = Front(self, self.groups)
        self.endpoints = ep.empty_endpoints(weights)
        self.emitted = Synopsis(width)
        self.order = OutputOrder()
        self.local: LocalSnapshots | None = None
        """The end points and what was emitted, in blocks; then `endpoints` and `emitted` are empty."""
        self.future: FutureEndPoints | None = None
        """The end points that time has not reached, if they are not with the others."""
        self.later = ep.empty_endpoints(0)
        """Those in a snapshot; otherwise empty."""
        self.small_chunks = 0
        self.future_pays = True
        """Whether keeping them apart has cost less than it saved."""

    # --- what a subclass defines ---------------------------------------------------------------------------------

    @abstractmethod
    def take(self, chunk: Chunk, g: Times) -> Rows:
        """Work the rows into the subclass's own state; returns them with their weights."""

    @abstractmethod
    def answer(self, g: Times, t: Times, entries: Times, sums: Sums) -> tuple[Times | None, Words]:
        """The results of the snapshots that start at these of the end points `g, t`, from the sums of what is live.

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
        self._choose_layout(len(chunk))
        changes = self._changes(chunk)
        self.emission.see(self, port, chunk)
        front, promised = self.front.all(), self.front.promised()
        if self.future is not None:
            changes = self.future.exchange(changes, int(self.emission.latest(front)[0]))
        work = self._update if self.local is None else self._update_locally
        (changed_g, changed_words, at, before, after), held = work(changes, front, promised)
        cti, settled = min(self.cti, earliest(held)), self.front.settle(held, front)
        promises = self.front.passed(cti, len(chunk), changed_g)
        out = self.order.chunk(at, before, after, self.payload(changed_g, changed_words), cti, promises)
        if self.local is not None and MIN < settled[0] < INF:
            self._forget_in_blocks(int(settled[0]))
        elif self.local is None and (settled > promised).any():
            self._forget(settled)
        return out

    def _changes(self, chunk: Chunk) -> EndPoints | None:
        """How the chunk changes the end points."""
        if not len(chunk):
            return None
        g, vs, old, new, ints = self.take(chunk, self.groups.ids(chunk.rows))
        changes: EndPoints = ep.changes_of(g, vs, old, new, ints[:, 0], ints)
        return changes

    # --- all of the state in one pass ------------------------------------------------------------------------------

    def _update(self, changes: EndPoints | None, front: Times, promised: Times) -> tuple[Net, Times]:
        """The change of the answer; and by group the start of the first snapshot that may not be emitted."""
        if changes is not None:
            self.endpoints = ep.merge(*self.endpoints, *changes)
        limits = self._limits(front, promised)
        entries, g, start, end, sums, held, unknown = self._to_emit(limits, promised)
        if self.future is not None and len(unknown):
            self.endpoints = ep.merge(*self.endpoints, *self.future.first_of(unknown))
            entries, g, start, end, sums, held, _ = self._to_emit(limits, promised)
        which, words = self.answer(self.endpoints[0], self.endpoints[1], entries, sums)
        if which is not None:
            g, start, end = g[which], start[which], end[which]
        return self.emitted.update(g, start, end, words, self.emission.reached(front)), held

    def _limits(self, front: Times, promised: Times) -> tuple[Times, Times]:
        """By when a snapshot must end, and by when it must start, to be emitted."""
        g, t, _, weights = self.endpoints

        def still_open(until: Times) -> Times:
            found: Times = ep.earliest_open(g, t, weights, until, promised, self.future is not None)
            return found

        return self.emission.limits(front, still_open, self.front.ahead(front))

    def _to_emit(self, limits: tuple[Times, Times], promised: Times) -> tuple[Times, ...]:
        """The snapshots that may be emitted, with their sums; by group the start of the first that may not; and the
        groups of which an end in the future is needed."""
        g, t, _, weights = self.endpoints
        found: tuple[Times, ...] = ep.snapshots(g, t, weights, *limits, promised, self.future is not None)
        return found

    # --- what a chunk affects, from blocks ---------------------------------------------------------------------------

    def _update_locally(self, changes: EndPoints | None, front: Times, promised: Times) -> tuple[Net, Times]:
        """The same as `_update`, where the state is in blocks."""
        local = self.local
        assert local is not None
        touched = local.take(changes if changes is not None else self.endpoints)
        groups, begin, sums, limits = self._windows(touched, front, promised)
        until = touched[2] if local.eager else np.full(len(groups), limits[0][0])
        read, (entries, *snapshots, at_start, _, unknown) = self._read(groups, begin, until, sums, limits, promised)
        if self.future is not None and len(unknown):
            local.take(self.future.first_of(unknown))
            read, (entries, *snapshots, at_start, _, _) = self._read(groups, begin, until, sums, limits, promised)
        g, t, _ = read
        _, words = self.answer(g, t, entries, at_start)
        net: Net = net_change(*local.emitted_from(groups, begin, until), *snapshots, words, np.array([INF]))
        local.change(*net)
        local.move_frontiers(read, groups, sums, int(limits[0][0]), int(limits[1][0]), int(promised[0]))
        return net, local.held()

    def _read(
        self, groups: Times, begin: Times, until: Times, sums: Sums, limits: tuple[Times, Times], promised: Times
    ) -> tuple[tuple[Times, Times, Words], tuple[Times, ...]]:
        """The end points of some groups from a time on, with the sums before; and their snapshots, as `_to_emit`."""
        assert self.local is not None
        read = g, t, ints = self.local.read(groups, begin, until)
        weights = carried(g, ints, groups, sums)
        return read, ep.snapshots(g, t, weights, *limits, promised, self.future is not None)

    def _windows(
        self, touched: tuple[Times, Times, Times], front: Times, promised: Times
    ) -> tuple[Times, Times, Sums, tuple[Times, Times]]:
        """The groups to compute again, from when on, with the sums before; and the limits of what is emitted."""
        local = self.local
        assert local is not None
        if local.eager:
            groups, begin, sums, _ = local.windows(touched, INF, INF, MIN)
            return groups, begin, sums, self.emission.limits(front, lambda until: until)
        until = int(self.emission.latest(front)[0])
        groups, begin, sums, first = local.windows(touched, until, self.emission.released, int(promised[0]))
        return groups, begin, sums, self.emission.limits(front, lambda until: np.array([first]))

    # --- layout ------------------------------------------------------------------------------------------------------

    def _choose_layout(self, rows: int) -> None:
        """Keep apart what is in the future, and the rest in blocks, as long as chunks are small compared with it."""
        together = self.answers_locally and not self.front.keyed and self.emission.latency != "ordered"
        together &= self.cti < INF
        apart = together and self.reads_no_future and self.emission.latency == "perfect"
        if self.future is not None:
            self.future_pays = not self.future.costs_too_much
            if not self.future_pays or not apart or layout.is_large(rows, self.state_rows()):
                self._to_arrays()
        if self.local is None:
            small = together and layout.is_small(rows, len(self.endpoints[0]))
            self.small_chunks = self.small_chunks + 1 if small else 0
            if self.small_chunks > layout.PATIENCE and not (apart and self._keep_future_apart()):
                self._to_blocks()
        elif not together or layout.is_large(rows, self.local.endpoints.rows):
            self._from_blocks()

    def _keep_future_apart(self) -> bool:
        """If it is most of the state. Returns whether it was done."""
        if self.future is not None or not self.future_pays:
            return False
        horizon = int(self.emission.latest(self.front.all())[0])
        later = self.endpoints[1] > horizon
        if np.count_nonzero(later) < future.WORTH_IT * len(later):
            return False
        self.future = FutureEndPoints(picked(self.endpoints, later), horizon)
        self.endpoints = picked(self.endpoints, ~later)
        self.small_chunks = 0
        return True

    def _to_blocks(self) -> None:
        emitted = (self.emitted.g, self.emitted.start, self.emitted.end, self.emitted.words)
        limits = [int(limit[0]) for limit in self.emission.last_limits(self.front.promised())]
        eager, goes_on = self.emission.latency == "eager", self.future is not None
        self.local = LocalSnapshots(self.endpoints, emitted, eager, goes_on, *limits)
        self.clear_arrays()

    def _from_blocks(self) -> None:
        """The end points that time has reached, and what was emitted, move to arrays."""
        future, self.future = self.future, None
        self._to_arrays()
        self.future = future

    def _to_arrays(self) -> None:
        """All of the state moves to arrays."""
        self.fill_arrays()
        self.local = self.future = None
        self.small_chunks = 0

    # --- state -------------------------------------------------------------------------------------------------------

    def state_rows(self) -> int:
        rows = super().state_rows() if self.local is None else self.local.endpoints.rows
        return rows + (0 if self.future is None else self.future.rows)

    @property
    def nbytes(self) -> int:
        return super().nbytes + sum([part.nbytes for part in (self.local, self.future) if part is not None])

    def restored(self) -> None:
        super().restored()
        self.local, self.future, self.small_chunks, self.future_pays = None, None, 0, True
        later, self.later = self.later, ep.empty_endpoints(0)
        if not len(later[0]):
            return
        if (source := source_of(later)) is None:
            self.endpoints = ep.merge(*self.endpoints, *later)
            return
        self.future = FutureEndPoints(later, int(self.emission.latest(self.front.all())[0]))
        self.future.know(self.endpoints)
        self.future.blocks.increments.adopt(source)

    def block_views(self) -> Views | None:
        views: Views | None = None if self.local is None else self.local.views()
        return views if self.future is None else {**(views or {}), "later": self.future.view()}

    def fill_arrays(self) -> None:
        if self.local is not None:
            self.endpoints, emitted = self.local.flat()
            self.emitted.g, self.emitted.start, self.emitted.end, self.emitted.words = emitted
        if self.future is not None:
            self.endpoints = ep.merge(*self.endpoints, *self.future.flat())

    def clear_arrays(self) -> None:
        if self.local is None and self.future is not None:
            self.endpoints = self.future.without(self.endpoints)
            return
        self.endpoints = ep.empty_endpoints(self.endpoints[3].shape[1])
        self.emitted = Synopsis(self.emitted.words.shape[1])

    def move_to_blocks(self) -> None:
        self._to_blocks()

    def _forget(self, settled: Times) -> None:
        """Drop what is settled, once that is a good part of the state: dropping costs a pass over all of it."""
        g, t, *_ = self.endpoints
        if 4 * np.count_nonzero(t < by_group(settled, g)) < len(t):
            return
        self.endpoints = ep.fold(*self.endpoints, settled)
        self.emitted.forget(settled)
        self.forget(settled)
        if self.groups.may_compact():
            numbers = self.groups.compact(self._used_groups())
            if numbers is not None:
                self.endpoints = (numbers[self.endpoints[0]], *self.endpoints[1:])
                self.emitted.g = numbers[self.emitted.g]
                if self.future is not None:
                    self.future.renumber(numbers)
                self.front.renumber(numbers)
                self.renumber(numbers)

    def _used_groups(self) -> np.ndarray:
        """The groups of which there is something."""
        used = np.zeros(len(self.groups), dtype=np.bool_)
        used[self.endpoints[0]] = True
        used[self.emitted.g] = True
        if self.future is not None:
            self.future.blocks.mark(1, used)
        return used

    # --- forgetting in blocks ----------------------------------------------------------------------------------------

    def _forget_in_blocks(self, settled: int) -> None:
        """The same, a few groups with each chunk."""
        local = self.local
        assert local is not None
        rows = local.rows + self.held_rows()
        if local.lap.begins(rows):
            groups = local.lap.groups(rows, len(self.groups))
            local.forget(groups, settled)
            self.forget_in_blocks(groups, settled)
            if not local.lap.under_way:
                self._compact_in_blocks(local)

    def held_rows(self) -> int:
        """Rows of the subclass's own state."""
        return 0

    def forget_in_blocks(self, groups: Times, settled: int) -> None:
        """Drop the subclass's own state of some groups that only matters before a settled time."""

    def compact_in_blocks(self, local: LocalSnapshots) -> None:
        """Drop what the subclass has numbered and does not need any more."""

    def _compact_in_blocks(self, local: LocalSnapshots) -> None:
        self.compact_in_blocks(local)
        numbers = local.compact(self.groups, *([(self.future.blocks, 1)] if self.future is not None else []))
        if numbers is not None:
            if self.future is not None:
                self.future.renumber_reach(numbers)
            self.front.renumber(numbers)
            self.renumber(numbers)
