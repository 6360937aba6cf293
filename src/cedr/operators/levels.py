"""Operators that know only how many copies of a payload live at an instant: distinct, coalesce, difference, intersect.

Their result is a height per payload and instant, emitted as levels: the k-th copy lives where the height is at least k.
The state is a list of end points per payload, as in `snapshot`; the starts of levels that began before what is still
remembered are kept separately. So a level that never ends does not keep what it is made of.

Each payload is a group of its own, so every promise is about groups. Where the result is nothing without an input,
as in a difference without its first, a payload that this input will not bring any more and that has run out in it is
decided: its state goes, and rows about it from the other input are not kept.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, Times
from cedr.columnar.index import RowIndex
from cedr.columnar.state import ARRAYS, PART, counted, fields
from cedr.kernels import endpoints as ep
from cedr.kernels import levels as lv
from cedr.operators.base import Operator
from cedr.operators.front import Front, Mask, by_group, earliest
from cedr.operators.latency import EmissionPolicy
from cedr.operators.synopsis import OutputOrder, Synopsis
from cedr.plan.latency import Latency
from cedr.temporal.time import INF, MIN

Counts = np.ndarray


class LevelOperator(Operator):
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
    )

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

    @abstractmethod
    def height(self, copies: Counts) -> Times:
        """The height from the number of copies on each port (columns)."""

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        self.order.watch(chunk, self.promised[port])
        self.front.advance(port, chunk)
        if len(chunk):
            self._merge(port, chunk)
        self.emission.see(self, port, chunk)
        front, promised = self._front(), self.front.promised()
        g, t, _, counts = self.endpoints
        height = self.height(ep.live_copies(g, counts))
        lg, start, end = lv.levels(g, t, height, *self.open)
        emits, held = self.emission.select(lg, start, end, front, promised, self.front.ahead(front))
        no_words = np.empty((int(emits.sum()), 0), dtype=np.int64)
        changed, _, at, before, after = self.emitted.update(
            lg[emits], start[emits], end[emits], no_words, self.emission.reached(front)
        )
        cti, settled = min(self.cti, earliest(held)), self.front.settle(held, front)
        promises = self.front.passed(cti, len(chunk), changed)
        out = self.order.chunk(at, before, after, self.payloads.take(changed), cti, promises)
        if (settled > promised).any() or (settled < front).any():
            folded = lv.foldable(lg, end, settled, front, len(self.payloads))
            self.open = lv.open_levels(g, t, height, *self.open, folded)
            self._forget(folded, settled)
        return out

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

    def _merge(self, port: int, chunk: Chunk) -> None:
        g, vs, old, new = self.payloads.ids(chunk.rows), chunk.vs, chunk.old, chunk.new
        others = [other for other in self.needed if other != port]
        if self.front.keyed and others:
            use = ~self._decided(others, np.array([MIN]))[g]
            g, vs, old, new = g[use], vs[use], old[use], new[use]
        weights = np.zeros((len(g), self.ports), dtype=np.int64)
        weights[:, port] = 1
        once = np.ones(len(g), dtype=np.int64)
        changes = ep.changes_of(g, vs, old, new, once, weights)
        self.endpoints = ep.merge(*self.endpoints, *changes)

    def _forget(self, folded: Times, settled: Times) -> None:
        self.endpoints = ep.fold(*self.endpoints, folded)
        self.emitted.forget(settled)
        numbers = self.payloads.compact(np.concatenate((self.endpoints[0], self.emitted.g, self.open[0])))
        if numbers is not None:
            self.endpoints = (numbers[self.endpoints[0]], *self.endpoints[1:])
            self.emitted.g = numbers[self.emitted.g]
            self.open = (numbers[self.open[0]], self.open[1])
            self.front.renumber(numbers)


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
