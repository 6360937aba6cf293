"""What R3 and R4 share: nodes by start and payload, with arrays by node number that grow and are compacted.

Payloads are stored once, however many inputs there are. Nodes are found by hash; the paper's tree finds the half frozen
ones in order, here one pass over the live nodes does, once per chunk that brings progress.
"""

from abc import abstractmethod
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.chunk import NEW, OLD, TIMES, VS, Chunk, Times, assemble
from cedr.columnar.index import Ids, RowIndex
from cedr.columnar.state import NUMBER, PART, array, fields
from cedr.operators.merge.base import LMerge
from cedr.plan.merge_policy import Policy
from cedr.temporal.element import Insert
from cedr.temporal.errors import StreamError
from cedr.temporal.row import Row
from cedr.temporal.time import MIN

Changes = tuple[Ids, Times, Times]
"""Which of some nodes change in the output, by place; old and new ends. What is not there ends at its start."""


NODES = attrgetter("size")
"""How many rows of an array by node number are in use."""


class Indexed(LMerge):
    """What R3 and R4 share: nodes by start and payload, with arrays by node number that grow and are compacted."""

    state = fields(
        index=PART,
        start=array(used=NODES),
        alive=array("b", used=NODES),
        size=NUMBER,
        following=NUMBER,
    )

    def __init__(self, schema: Mapping[str, pl.DataType], ports: int = 2, policy: Policy | str = "first") -> None:
        super().__init__(schema, ports, policy)
        self.index = RowIndex({VS: pl.Int64(), **self.schema})
        self.start = np.empty(0, dtype=np.int64)
        self.alive = np.empty(0, dtype=np.bool_)
        """A node that is fully frozen is dead; whatever comes about it is late. By number, with room to grow."""
        self.size = 0
        """How many nodes there are, the dead included."""
        self.following = -1
        """With policy `leader`, the input that the output follows."""

    def take(self, port: int, chunk: Chunk) -> None:
        rows = chunk.rows.select(*TIMES, *self.schema)
        of_use = None
        if self.stable != MIN and not (useful := np.maximum(chunk.old, chunk.new) >= self.stable).all():
            of_use = np.flatnonzero(useful)
            rows = rows[of_use]
        if rows.height:
            used = Chunk(rows)
            nodes = self._nodes(used)
            self.work_in(port, chunk, of_use, used, nodes)
            self._emit_at_once(port, used, nodes)

    def _nodes(self, chunk: Chunk) -> Ids:
        """The node of each row; -1 when it starts before the CTI and is not known, or no more."""
        vs = chunk.vs
        past = vs < self.stable
        if not past.any():
            nodes = self.index.ids(chunk.rows)
        else:
            nodes = np.full(len(chunk), -1, dtype=np.int64)
            nodes[~past] = self.index.ids(chunk.rows.filter(pl.Series(~past)))
            known = self.index.ids(chunk.rows.filter(pl.Series(past)), add=False)
            nodes[past] = np.where(self.are_alive(known), known, -1)
        self._grow(nodes, vs)
        return nodes

    def are_alive(self, nodes: Ids) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which of these numbers, -1 allowed, are those of live nodes."""
        alive = nodes >= 0
        alive[alive] = self.alive[nodes[alive]]
        return alive

    def _grow(self, nodes: Ids, vs: Times) -> None:
        """Room for new nodes, and their starts."""
        size = len(self.index)
        before = self.size
        if size == before:
            return
        if size > len(self.start):
            self.resize(max(2 * len(self.start), size, 1024))
        new = nodes >= before
        self.start[nodes[new]] = vs[new]
        self.alive[before:size] = True
        self.size = size
        self.prepare(before, size)

    def _drop_dead(self) -> None:
        numbers = self.index.compact(np.flatnonzero(self.alive[: self.size])) if self.index.may_compact() else None
        if numbers is not None:
            kept = np.flatnonzero(numbers >= 0)
            self.size = len(kept)
            self.keep(kept)

    def resize(self, room: int) -> None:
        self.start, self.alive = resized(self.start, room), resized(self.alive, room)

    def keep(self, kept: Ids) -> None:
        """Only these nodes are left, in this order."""
        self.start, self.alive = self.start[kept], self.alive[kept]

    # --- what algorithms differ in -------------------------------------------------------------------------------

    @abstractmethod
    def prepare(self, first: int, last: int) -> None:
        """Nodes with these numbers are new."""

    @abstractmethod
    def work_in(self, port: int, given: Chunk, rows: Ids | None, used: Chunk, nodes: Ids) -> None:
        """Apply the useful rows; `rows` are their positions in the given chunk."""

    @abstractmethod
    def new(self, nodes: Ids, port: int, needed: int) -> Changes:
        """Of these nodes, the events that are not emitted, and that this input and as many as needed have."""

    @abstractmethod
    def differences(self, nodes: Ids, port: int) -> Changes:
        """What makes these nodes as this input has them, as far as the CTI allows."""

    @abstractmethod
    def settle(self, port: int, t: int) -> Changes:
        """What makes nodes fit this input where CTI t would make a difference final, by node number."""

    # --- output --------------------------------------------------------------------------------------------------

    def _emit_at_once(self, port: int, used: Chunk, nodes: Ids) -> None:
        """Emit what the policy emits at once."""
        match self.policy.emits:
            case "half-frozen":
                return
            case "leader":
                self._follow()
                changes = self.differences(nodes, port if port == self.following else -1)
            case "reflect":
                changes = self.differences(nodes, port)
            case _:
                changes = self.new(nodes, port, self.policy.needed(sum(self.attached)))
        self._emit_rows(used, *changes)

    def _emit_rows(self, used: Chunk, rows: Ids, old: Times, new: Times) -> None:
        if not len(rows):
            return
        changes = used.rows if same_rows(rows, len(used)) else used.rows[rows]
        self.emit(Chunk(changes.with_columns(pl.Series(OLD, old), pl.Series(NEW, new))))

    def _follow(self) -> None:
        """The input with the highest CTI leads; when another takes over, the output becomes what it has."""
        joined = [port for port in range(self.ports) if self.joined(port)]
        leads = max(joined, key=lambda port: (self.ctis[port], port == self.following), default=-1)
        if leads != self.following:
            self.following = leads
            nodes = np.flatnonzero(self.alive[: self.size])
            places, old, new = self.differences(nodes, leads)
            self.emit_nodes(nodes[places], old, new)

    def freeze(self, port: int, t: int) -> None:
        if self.policy.emits == "leader":
            self._follow()
        self.emit_nodes(*self.settle(port, t))
        self._drop_dead()

    def emit_nodes(self, nodes: Ids, old: Times, new: Times) -> None:
        if len(nodes):
            payload = self.index.take(nodes).select(list(self.schema))
            self.emit(assemble(self.start[nodes], old, new, payload))

    def forget(self, port: int) -> None:
        if port == self.following:
            self.following = -1

    # --- state ---------------------------------------------------------------------------------------------------

    def contradicts(self, port: int, node: int, end: int, rule: str) -> StreamError:
        """The error for an input that denies what another has settled."""
        _, *values = self.index.take(np.array([node])).select(VS, *self.schema).row(0)
        event = Insert(int(self.start[node]), end, Row(dict(zip(self.schema, values, strict=True))))
        return StreamError(event, self.arrived[port], f"merge, {self.called(port)}: {rule}")

    def state_rows(self) -> int:
        return int(np.count_nonzero(self.alive[: self.size]))


def resized(array: np.ndarray[Any, Any], room: int) -> np.ndarray[Any, Any]:
    bigger = np.zeros((room, *array.shape[1:]), dtype=array.dtype)
    bigger[: len(array)] = array
    return bigger


def same_rows(rows: Ids, size: int) -> bool:
    """Are these all rows, each once and in order?"""
    return len(rows) == size and bool((rows == np.arange(size)).all())
