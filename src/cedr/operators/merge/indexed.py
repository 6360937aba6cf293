"""What R3 and R4 share: nodes by start and payload, with arrays by node number that grow and are compacted.

Payloads are stored once, however many inputs there are. Nodes are found by hash; the paper's tree finds those that
progress concerns in order. Here one pass over all nodes does, for each chunk that brings progress; or, if chunks change
little of the state, the order of time in blocks (`cedr.operators.merge.due`). Both give the same output.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.blocks import Matrix
from cedr.columnar.chunk import TIMES, VS, Chunk, Times, assemble
from cedr.columnar.index import Ids, RowIndex
from cedr.columnar.picked import picked
from cedr.columnar.state import BLOCKS, DERIVED, NUMBER, PART, TRANSIENT, array, fields
from cedr.kernels.due_nodes import WAITING, ends_list
from cedr.operators.locality import Locality
from cedr.operators.merge.base import LMerge
from cedr.operators.merge.due import DueNodes
from cedr.plan.merge_policy import Policy
from cedr.temporal.element import Insert
from cedr.temporal.errors import StreamError
from cedr.temporal.row import Row
from cedr.temporal.time import INF, MIN

Changes = tuple[Ids, Times, Times]
"""Which of some nodes change in the output, by place; old and new ends. What is not there ends at its start."""

OVERHEAD = 150
"""What the order of time costs a chunk with progress in addition, in rows that change."""


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
        live=DERIVED,
        due=BLOCKS,
        _locality=TRANSIENT,
        _changed=TRANSIENT,
    )

    may_use_blocks = True
    touched_cost = 20
    """What a changed row costs with the order of time, compared with a node in a pass."""

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
        self.live = 0
        """How many nodes are not dead."""
        self.due: DueNodes | None = None
        """The live nodes in the order of time, while chunks change few of them."""
        self._locality = Locality(self.touched_cost)
        self._changed = 0
        """Rows since the CTI last moved."""

    def take(self, port: int, chunk: Chunk) -> None:
        rows = picked(chunk.rows, (*TIMES, *self.schema))
        of_use = None
        if self.stable != MIN and not (useful := np.maximum(chunk.old, chunk.new) >= self.stable).all():
            of_use = np.flatnonzero(useful)
            rows = rows[of_use]
        if rows.height:
            used = Chunk(rows)
            nodes = self._nodes(used)
            self._changed += len(used)
            with self._kept_in_order(nodes):
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
            nodes[~past] = self.index.ids(chunk.rows[np.flatnonzero(~past)])
            known = self.index.ids(chunk.rows[np.flatnonzero(past)], add=False)
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
        self.live += size - before
        self.prepare(before, size)
        if self.due is not None:
            self.due.add(self.due_rows(np.arange(before, size), self.stable))

    def _drop_dead(self) -> None:
        if 2 * self.live > self.size:
            return
        numbers = self.index.compact(self.alive[: self.size])
        if numbers is not None:
            kept = np.flatnonzero(numbers >= 0)
            self.size = len(kept)
            self.keep(kept)
            if self.due is not None:
                self.due.renumber(numbers)

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
    def settle(self, port: int, t: int, nodes: Ids | None) -> Changes:
        """What makes nodes fit this input where CTI t would make a difference final, by node number. Those that it
        concerns are among `nodes`; None if they may be any."""

    @abstractmethod
    def due_rows(self, nodes: Ids, since: int) -> Matrix:
        """What the order of time has about nodes, as of a CTI (see `cedr.kernels.due_nodes`)."""

    @abstractmethod
    def due_lists(self, port: int) -> Iterable[int]:
        """The lists with the nodes that a CTI concerns if the output has to agree with this input."""

    # --- output --------------------------------------------------------------------------------------------------

    def _emit_at_once(self, port: int, used: Chunk, nodes: Ids) -> None:
        """Emit what the policy emits at once."""
        match self.policy.emits:
            case "half-frozen":
                return
            case "leader":
                self._follow()
                changes = self._made_same(nodes, port if port == self.following else -1)
            case "reflect":
                changes = self._made_same(nodes, port)
            case _:
                changes = self.new(nodes, port, self.policy.needed(sum(self.attached)))
        self._emit_rows(used, *changes)

    def _emit_rows(self, used: Chunk, rows: Ids, old: Times, new: Times) -> None:
        if not len(rows):
            return
        changes = used.rows if same_rows(rows, len(used)) else used.rows[rows]
        self.emit(assemble(changes[VS].to_numpy(), old, new, picked(changes, self.schema)))

    def _follow(self) -> None:
        """The input with the highest CTI leads; when another takes over, the output becomes what it has."""
        joined = [port for port in range(self.ports) if self.joined(port)]
        leads = max(joined, key=lambda port: (self.ctis[port], port == self.following), default=-1)
        if leads != self.following:
            self.following = leads
            if self.due is None:
                nodes = np.flatnonzero(self.alive[: self.size])
            else:
                nodes = self.due.all_of([WAITING, ends_list(leads)])
            places, old, new = self._made_same(nodes, leads)
            self.emit_nodes(nodes[places], old, new)

    def _made_same(self, nodes: Ids, port: int) -> Changes:
        with self._kept_in_order(nodes):
            return self.differences(nodes, port)

    def freeze(self, port: int, t: int) -> None:
        self._choose_layout(t)
        if self.policy.emits == "leader":
            self._follow()
        if self.due is None:
            self.emit_nodes(*self.settle(port, t, None))
            self.live = int(np.count_nonzero(self.alive[: self.size]))
        else:
            self.emit_nodes(*self._settle_due(self.due, port, t))
        self._drop_dead()

    def _settle_due(self, due: DueNodes, port: int, t: int) -> Changes:
        nodes = due.before(t, self.due_lists(port))
        before = self.due_rows(nodes, self.stable)
        changes = self.settle(port, t, nodes)
        self.live -= len(nodes) - int(np.count_nonzero(self.alive[nodes]))
        due.change(before, self.due_rows(nodes, t))
        self._locality.touch(len(nodes))
        return changes

    def emit_nodes(self, nodes: Ids, old: Times, new: Times) -> None:
        if len(nodes):
            payload = picked(self.index.take(nodes), self.schema)
            self.emit(assemble(self.start[nodes], old, new, payload))

    def forget(self, port: int) -> None:
        if port == self.following:
            self.following = -1
        self.due = None

    def attach(self, port: int, join: int = MIN) -> None:
        super().attach(port, join)
        self.due = None

    # --- the order of time -------------------------------------------------------------------------------------------

    def _choose_layout(self, t: int) -> None:
        """Whether the order of time is kept, from CTI t on; at the end one pass takes all nodes."""
        changed, self._changed = self._changed, 0
        wanted = self._locality.prefers_blocks(self.live, changed + OVERHEAD, self.due is not None)
        if not (wanted and self.may_use_blocks) or t == INF:
            self.due = None
        elif self.due is None:
            nodes = np.flatnonzero(self.alive[: self.size])
            self.due = DueNodes(nodes, lambda some: self.due_rows(some, self.stable))
            self._locality.changed()

    @contextmanager
    def _kept_in_order(self, nodes: Ids) -> Iterator[None]:
        """Within it the ends of these nodes, -1 allowed, may change."""
        if self.due is None:
            yield
            return
        known = nodes[nodes >= 0]
        half_frozen = np.unique(known[self.start[known] < self.stable])
        before = self.due_rows(half_frozen, self.stable)
        yield
        self.due.change(before, self.due_rows(half_frozen, self.stable))

    # --- state ---------------------------------------------------------------------------------------------------

    def contradicts(self, port: int, node: int, end: int, rule: str) -> StreamError:
        """The error for an input that denies what another has settled."""
        _, *values = self.index.take(np.array([node])).select(VS, *self.schema).row(0)
        event = Insert(int(self.start[node]), end, Row(dict(zip(self.schema, values, strict=True))))
        return StreamError(event, self.arrived[port], f"merge, {self.called(port)}: {rule}")

    def state_rows(self) -> int:
        return self.live

    def restored(self) -> None:
        super().restored()
        self.live, self.due = int(np.count_nonzero(self.alive[: self.size])), None


def resized(array: np.ndarray[Any, Any], room: int) -> np.ndarray[Any, Any]:
    bigger = np.zeros((room, *array.shape[1:]), dtype=array.dtype)
    bigger[: len(array)] = array
    return bigger


def same_rows(rows: Ids, size: int) -> bool:
    """Are these all rows, each once and in order?"""
    return len(rows) == size and bool((rows == np.arange(size)).all())
