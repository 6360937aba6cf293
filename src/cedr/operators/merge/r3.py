"""R3: any order, any adjusts; start and payload are a key in every input at any moment.

The two-tier index: each start and payload is a node, stored once, with one end per input and the end that was told. An
input costs eight bytes a node, whatever the payloads. Nodes are found by hash; the paper's tree finds the half frozen
ones in order, here one pass over the live nodes does, once per chunk that brings progress.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.chunk import NEW, OLD, TIMES, VS, Chunk, Times, assemble
from cedr.columnar.index import Ids, RowIndex
from cedr.kernels import two_tier
from cedr.operators.base import State
from cedr.operators.merge.base import LMerge
from cedr.operators.merge.policy import Policy
from cedr.temporal.element import Insert
from cedr.temporal.errors import StreamError
from cedr.temporal.row import Row
from cedr.temporal.time import MIN, show


class Indexed(LMerge):
    """What R3 and R4 share: nodes by start and payload, with arrays by node number that grow and are compacted."""

    def __init__(self, schema: Mapping[str, pl.DataType], ports: int = 2, policy: Policy | str = "first") -> None:
        super().__init__(schema, ports, policy)
        self.index = RowIndex({VS: pl.Int64(), **self.schema})
        self.start = np.empty(0, dtype=np.int64)
        self.alive = np.empty(0, dtype=np.bool_)
        """A node that is fully frozen is dead; whatever comes about it is late. By number, with room to grow."""

    def take(self, port: int, chunk: Chunk) -> None:
        rows = chunk.rows.select(*TIMES, *self.schema)
        of_use = None
        if self.stable != MIN and not (useful := np.maximum(chunk.old, chunk.new) >= self.stable).all():
            of_use = np.flatnonzero(useful)
            rows = rows[of_use]
        if rows.height:
            used = Chunk(rows)
            self.work_in(port, chunk, of_use, used, self._nodes(used))

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
            nodes[past] = np.where((known >= 0) & self.alive[np.maximum(known, 0)], known, -1) if len(self.alive) else -1
        self._grow(nodes, vs)
        return nodes

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

    size = 0
    """How many nodes there are, the dead included."""

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

    def prepare(self, first: int, last: int) -> None:
        """Nodes with these numbers are new."""
        raise NotImplementedError

    def work_in(self, port: int, given: Chunk, rows: Ids | None, used: Chunk, nodes: Ids) -> None:
        """Work in the rows that are of use; `rows` says where they stood in the chunk that came."""
        raise NotImplementedError

    def tell_nodes(self, nodes: Ids, old: Times, new: Times) -> None:
        if len(nodes):
            payload = self.index.take(nodes).select(list(self.schema))
            self.tell(assemble(self.start[nodes], old, new, payload))

    def contradicts(self, port: int, node: int, end: int, rule: str) -> StreamError:
        """The error for an input that denies what another has settled."""
        _, *values = self.index.take(np.array([node])).select(VS, *self.schema).row(0)
        event = Insert(int(self.start[node]), end, Row(dict(zip(self.schema, values, strict=True))))
        return StreamError(event, self.arrived[port], f"merge, input {port}: {rule}")

    def live(self) -> int:
        return int(np.count_nonzero(self.alive[: self.size]))

    def save(self) -> State:
        arrays = (self.start[: self.size].copy(), self.alive[: self.size].copy())
        return {**super().save(), "index": self.index.snapshot(), "nodes": arrays}

    def load(self, state: State) -> None:
        super().load(state)
        self.index.restore(state["index"])
        start, alive = state["nodes"]
        self.start, self.alive, self.size = start.copy(), alive.copy(), len(start)


class R3(Indexed):
    algorithm = "R3"

    def __init__(self, schema: Mapping[str, pl.DataType], ports: int = 2, policy: Policy | str = "first") -> None:
        super().__init__(schema, ports, policy)
        self.out = np.empty(0, dtype=np.int64)
        self.ends = np.empty((0, ports), dtype=np.int64)
        self._following = -1
        """With policy `leader`, the input that the output follows."""

    def work_in(self, port: int, given: Chunk, rows: Ids | None, used: Chunk, nodes: Ids) -> None:
        vs, old, new = used.vs, used.old, used.new
        row, why = two_tier.work_in(nodes, vs, old, new, self.ends, port, self.stable)
        if row >= 0:
            known = int(self.ends[nodes[row], port])
            raise self.broken(port, given, int(row if rows is None else rows[row]), key_rule(why, known))
        self._speak(port, used, nodes)

    def _speak(self, port: int, used: Chunk, nodes: Ids) -> None:
        """Tell what the policy wants told at once."""
        match self.policy.tells:
            case "half-frozen":
                return
            case "leader":
                self._follow()
                if port != self._following:
                    return
            case "first" | "fraction":
                attached = np.array(self.attached)
                needed = self.policy.needed(int(attached.sum()))
                told = two_tier.tell_new(
                    nodes, self.start, self.out, self.ends, attached, port, self.stable, needed
                )
                if len(told) == len(used) and used.is_insert.all():
                    self.tell(used)
                elif len(told):
                    n = nodes[told]
                    self._tell_rows(used, told, self.start[n], self.out[n])
                return
        told, before = two_tier.tell_changes(nodes, self.start, self.out, self.ends, port, self.stable)
        if len(told):
            self._tell_rows(used, told, before, self.out[nodes[told]])

    def _tell_rows(self, used: Chunk, rows: Ids, old: Times, new: Times) -> None:
        told = used.rows if len(rows) == len(used) else used.rows[rows]
        self.tell(Chunk(told.with_columns(pl.Series(OLD, old), pl.Series(NEW, new))))

    def _follow(self) -> None:
        """The input with the highest CTI leads; when another takes over, the output becomes what it says."""
        attached = [port for port in range(self.ports) if self.joined(port)]
        if not attached:
            return
        leads = max(attached, key=lambda port: (self.ctis[port], port == self._following))
        if leads != self._following:
            self._following = leads
            nodes = np.flatnonzero(self.alive[: self.size])
            told, before = two_tier.tell_changes(nodes, self.start, self.out, self.ends, leads, self.stable)
            self.tell_nodes(nodes[told], before, self.out[nodes[told]])

    def freeze(self, port: int, t: int) -> None:
        if self.policy.tells == "leader":
            self._follow()
        size = self.size
        start, alive, out, end = self.start[:size], self.alive[:size], self.out[:size], self.ends_of(port)
        wrong = int(two_tier.contradiction(start, alive, end, self.stable))
        if wrong >= 0:
            raise self.contradicts(port, wrong, int(out[wrong]), self._denied(int(end[wrong]), int(start[wrong])))
        nodes, old = two_tier.freeze(start, alive, out, end, t)
        self.tell_nodes(nodes, old, out[nodes])
        self._drop_dead()

    def _denied(self, end: int, start: int) -> str:
        says = "has no such event" if end == start else f"says that it ended at {show(end)}"
        return f"another input has settled that this event goes on until {show(self.stable)}, this one {says}"

    def ends_of(self, port: int) -> Times:
        """The end of each node in one input."""
        return self.ends[: self.size, port]

    def forget(self, port: int) -> None:
        self.ends[: self.size, port] = self.start[: self.size]
        self._following = -1 if port == self._following else self._following

    def prepare(self, first: int, last: int) -> None:
        self.out[first:last] = self.start[first:last]
        self.ends[first:last] = self.start[first:last, np.newaxis]

    def resize(self, room: int) -> None:
        super().resize(room)
        self.out, self.ends = resized(self.out, room), resized(self.ends, room)

    def keep(self, kept: Ids) -> None:
        super().keep(kept)
        self.out, self.ends = self.out[kept], self.ends[kept]

    def state_size(self) -> tuple[int, int]:
        arrays = (self.start, self.alive, self.out, self.ends)
        return self.live(), sum(a.nbytes for a in arrays) + int(self.index.rows.estimated_size())

    def save(self) -> State:
        ends = (self.out[: self.size].copy(), self.ends[: self.size].copy(), self._following)
        return {**super().save(), "ends": ends}

    def load(self, state: State) -> None:
        super().load(state)
        out, ends, self._following = state["ends"]
        self.out, self.ends = out.copy(), ends.copy()


def key_rule(why: int, known: int) -> str:
    if why == two_tier.DUPLICATE:
        return f"R3 needs a key of start and payload, and this input has one that ends at {show(known)}; R4 takes copies"
    return f"there is no such event to adjust; with this start and payload there is one that ends at {show(known)}"


def resized(array: np.ndarray[Any, Any], room: int) -> np.ndarray[Any, Any]:
    bigger = np.empty((room, *array.shape[1:]), dtype=array.dtype)
    bigger[: len(array)] = array
    return bigger
