"""R3: any order, any adjusts; start and payload are a key in every input at any moment.

The two-tier index: a node for each start and payload, with one end per input and the end that was emitted. An input
costs eight bytes a node, whatever the payloads.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl

from cedr.columnar.blocks import Matrix
from cedr.columnar.chunk import Chunk, Times
from cedr.columnar.index import Ids
from cedr.columnar.state import array, fields
from cedr.kernels import due_nodes, two_tier
from cedr.kernels.chains import merge
from cedr.kernels.chains import nodes as ends_of_chains
from cedr.operators.merge.base import Mask
from cedr.operators.merge.indexed import NODES, Changes, Indexed, resized
from cedr.plan.merge_policy import Policy
from cedr.temporal.time import show

NOTHING: Changes = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


class R3(Indexed):
    algorithm = "R3"
    touched_cost = 400  # a pass takes a few nanoseconds a node

    state = fields(out=array(used=NODES), ends=array(ndim=2, used=NODES))

    def __init__(self, schema: Mapping[str, pl.DataType], ports: int = 2, policy: Policy | str = "first") -> None:
        super().__init__(schema, ports, policy)
        self.out = np.empty(0, dtype=np.int64)
        self.ends = np.empty((0, ports), dtype=np.int64)

    def work_in(self, port: int, given: Chunk, rows: Ids | None, used: Chunk, nodes: Ids) -> None:
        vs, old, new = used.vs, used.old, used.new
        row, why, known = two_tier.work_in(nodes, vs, old, new, self.ends, port, self.stable)
        if row < 0:
            return
        order, end = in_any_order(nodes, vs, old, new)
        wrong, *_ = two_tier.work_in(nodes[order], vs[order], old[order], end, self.ends, port, self.stable)
        if wrong >= 0:
            raise self.broken(port, given, int(row if rows is None else rows[row]), key_rule(why, known))

    def new(self, nodes: Ids, port: int, needed: int) -> Changes:
        attached = np.array(self.attached)
        rows = two_tier.emit_new(nodes, self.start, self.out, self.ends, attached, port, self.stable, needed)
        return rows, self.start[nodes[rows]], self.out[nodes[rows]]

    def differences(self, nodes: Ids, port: int) -> Changes:
        if port < 0:
            return NOTHING
        rows, old = two_tier.emit_changes(nodes, self.start, self.out, self.ends, port, self.stable)
        return rows, old, self.out[nodes[rows]]

    def settle(self, port: int, t: int, nodes: Ids | None) -> Changes:
        if nodes is None:
            size = self.size
            start, alive, out = self.start[:size], self.alive[:size], self.out[:size]
            return self._settle(port, t, start, alive, out, self.ends_of(port))
        start, alive, out = self.start[nodes], self.alive[nodes], self.out[nodes]
        changed, old, new = self._settle(port, t, start, alive, out, self.ends[nodes, port], nodes)
        self.alive[nodes], self.out[nodes] = alive, out
        return nodes[changed], old, new

    def _settle(
        self, port: int, t: int, start: Times, alive: Mask, out: Times, end: Times, nodes: Ids | None = None
    ) -> Changes:
        """The same for nodes with these values, by place; their liveness and their ends in the output change."""
        wrong = int(two_tier.contradiction(start, alive, end, self.stable))
        if wrong >= 0:
            node = wrong if nodes is None else int(nodes[wrong])
            raise self.contradicts(port, node, int(out[wrong]), self._denied(int(end[wrong]), int(start[wrong])))
        changed, old = two_tier.freeze(start, alive, out, end, t)
        return changed, old, out[changed]

    def _denied(self, end: int, start: int) -> str:
        claims = "has no such event" if end == start else f"has it end at {show(end)}"
        return f"another input has settled that this event goes on until {show(self.stable)}, this one {claims}"

    def ends_of(self, port: int) -> Times:
        """The end of each node in one input."""
        return self.ends[: self.size, port]

    def due_rows(self, nodes: Ids, since: int) -> Matrix:
        attached = np.array(self.attached)
        rows: Matrix = due_nodes.rows_of_two_tier(nodes, self.start, self.alive, self.out, self.ends, attached, since)
        return rows

    def due_lists(self, port: int) -> Iterable[int]:
        return due_nodes.WAITING, due_nodes.OUT, due_nodes.ends_list(port)

    def forget(self, port: int) -> None:
        super().forget(port)
        self.ends[: self.size, port] = self.start[: self.size]

    def add_port(self) -> int:
        room = np.repeat(self.start[:, np.newaxis], 1, axis=1)
        self.ends = np.ascontiguousarray(np.hstack((self.ends, room)))
        return super().add_port()

    def prepare(self, first: int, last: int) -> None:
        self.out[first:last] = self.start[first:last]
        self.ends[first:last] = self.start[first:last, np.newaxis]

    def resize(self, room: int) -> None:
        super().resize(room)
        self.out, self.ends = resized(self.out, room), resized(self.ends, room)

    def keep(self, kept: Ids) -> None:
        super().keep(kept)
        self.out, self.ends = self.out[kept], self.ends[kept]


def in_any_order(nodes: Ids, vs: Times, old: Times, new: Times) -> tuple[Ids, Times]:
    """The rows that are left when adjusts are merged into the rows they follow, adjusts first; and their ends.

    Operators may emit an event again before they retract the old one; only the net effect of a chunk must have a key.
    """
    last, kept = merge(*ends_of_chains(vs, nodes, old, new))
    left = np.flatnonzero(kept)
    order = left[np.argsort(old[left] == vs[left], kind="stable")]
    return order, new[last[order]]


def key_rule(why: int, known: int) -> str:
    if why == two_tier.DUPLICATE:
        return (
            f"R3 needs a key of start and payload, and this input has one that ends at {show(known)}; R4 takes copies"
        )
    return f"there is no such event to adjust; the one with this start and payload ends at {show(known)}"
