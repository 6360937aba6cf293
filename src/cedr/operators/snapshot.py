"""What all operators have in common that answer snapshot by snapshot: the speculative algorithm, chunk by chunk.

The state is a list of end points sorted by group and time. A chunk is merged into it in one pass; the snapshots that
may be emitted at the operator's latency are read off; their net change against what was emitted before is emitted; and
what lies before the front of its group is folded away. (The papers' POS is the `Synopsis`; their ECQ is the part of the
end points past the watermark.)

If chunks are small compared with the state, the state is kept in blocks instead, and a chunk costs what it changes
(`local_snapshots`).
"""

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, Times
from cedr.columnar.index import RowIndex
from cedr.columnar.state import ARRAYS, DERIVED, PART, counted, fields
from cedr.kernels import endpoints as ep
from cedr.kernels.difference import net_change
from cedr.kernels.frontiers import carried
from cedr.operators import layout
from cedr.operators.base import Operator
from cedr.operators.front import Front, by_group, earliest
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
        local=DERIVED,
        small_chunks=DERIVED,
    )
    fields_in_blocks = ("endpoints", "emitted")

    answers_locally = False
    """Whether there is one answer for each snapshot, and it can be found from some of the end points, so that the state
    may be in blocks."""

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
        self.small_chunks = 0

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
        entries, g, start, end, sums, held = self._to_emit(front, promised)
        which, words = self.answer(self.endpoints[0], self.endpoints[1], entries, sums)
        if which is not None:
            g, start, end = g[which], start[which], end[which]
        return self.emitted.update(g, start, end, words, self.emission.reached(front)), held

    def _to_emit(self, front: Times, promised: Times) -> tuple[Times, ...]:
        """The snapshots that may be emitted, with their sums, and by group the start of the first that may not."""
        g, t, _, weights = self.endpoints

        def still_open(until: Times) -> Times:
            found: Times = ep.earliest_open(g, t, weights, until, promised)
            return found

        limits = self.emission.limits(front, still_open, self.front.ahead(front))
        found: tuple[Times, ...] = ep.snapshots(g, t, weights, *limits, promised)
        return found

    # --- what a chunk affects, from blocks ---------------------------------------------------------------------------

    def _update_locally(self, changes: EndPoints | None, front: Times, promised: Times) -> tuple[Net, Times]:
        """The same as `_update`, where the state is in blocks."""
        local = self.local
        assert local is not None
        touched = local.take(changes if changes is not None else self.endpoints)
        groups, begin, sums, limits = self._windows(touched, front, promised)
        until = touched[2] if local.eager else np.full(len(groups), limits[0][0])
        read = local.read(groups, begin, until)
        g, t, ints = read
        entries, *snapshots, at_start, _ = ep.snapshots(g, t, carried(g, ints, groups, sums), *limits, promised)
        _, words = self.answer(g, t, entries, at_start)
        net: Net = net_change(*local.emitted_from(groups, begin, until), *snapshots, words, np.array([INF]))
        local.change(*net)
        local.move_frontiers(read, groups, sums, int(limits[0][0]), int(limits[1][0]), int(promised[0]))
        return net, local.held()

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

    def _choose_layout(self, rows: int) -> None:
        """Keep the state in blocks as long as chunks are small compared with it."""
        together = self.answers_locally and not self.front.keyed and self.emission.latency != "ordered"
        if self.local is None:
            small = together and self.cti < INF and layout.is_small(rows, len(self.endpoints[0]))
            self.small_chunks = self.small_chunks + 1 if small else 0
            if self.small_chunks > layout.PATIENCE:
                self._to_blocks()
        elif not together or self.cti == INF or layout.is_large(rows, self.local.endpoints.rows):
            self._to_arrays()

    def _to_blocks(self) -> None:
        emitted = (self.emitted.g, self.emitted.start, self.emitted.end, self.emitted.words)
        limits = [int(limit[0]) for limit in self.emission.last_limits(self.front.promised())]
        self.local = LocalSnapshots(self.endpoints, emitted, self.emission.latency == "eager", *limits)
        self.clear_arrays()

    def _to_arrays(self) -> None:
        self.fill_arrays()
        self.local = None
        self.small_chunks = 0

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
        self.endpoints, emitted = self.local.flat()
        self.emitted.g, self.emitted.start, self.emitted.end, self.emitted.words = emitted

    def clear_arrays(self) -> None:
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
            numbers = self.groups.compact(np.concatenate((self.endpoints[0], self.emitted.g)))
            if numbers is not None:
                self.endpoints = (numbers[self.endpoints[0]], *self.endpoints[1:])
                self.emitted.g = numbers[self.emitted.g]
                self.front.renumber(numbers)
                self.renumber(numbers)

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
        numbers = local.compact(self.groups)
        if numbers is not None:
            self.front.renumber(numbers)
            self.renumber(numbers)
