"""R4: any order, any adjusts, and several events with one start and payload.

The three-tier index: a node for each start and payload, with a list of ends and their counts for each input and for the
output. Before a CTI leaves, the output has as many events of each start it passes as the input it comes from, and
exactly the same that end before it.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl

from cedr.columnar.blocks import Matrix
from cedr.columnar.chunk import Chunk, Times
from cedr.columnar.index import Ids
from cedr.columnar.state import array, fields
from cedr.kernels import due_nodes, three_tier
from cedr.operators.merge.base import Mask
from cedr.operators.merge.indexed import NODES, Changes, Indexed, resized
from cedr.operators.merge.r3 import NOTHING
from cedr.plan.merge_policy import Policy
from cedr.temporal.time import show


class R4(Indexed):
    algorithm = "R4"

    state = fields(
        head=array(ndim=2, used=NODES),
        end=array(in_place=True),
        count=array(in_place=True),
        link=array(in_place=True),
        free=array(in_place=True),
    )

    def __init__(self, schema: Mapping[str, pl.DataType], ports: int = 2, policy: Policy | str = "first") -> None:
        super().__init__(schema, ports, policy)
        self.head = np.empty((0, ports + 1), dtype=np.int64)
        self.end, self.count, self.link = (np.empty(0, dtype=np.int64) for _ in range(3))
        self.free = np.array([three_tier.NONE, 0])

    @property
    def pool(self) -> tuple[Times, ...]:
        return self.head, self.end, self.count, self.link, self.free

    @property
    def cells(self) -> int:
        """How many cells are in use."""
        return int(self.free[1])

    def _room(self, cells: int) -> None:
        """Reserve this number of unused cells."""
        first = len(self.end)
        if self.cells + cells > first:
            room = max(2 * first, self.cells + cells, 1024)
            self.end, self.count, self.link = (resized(a, room) for a in (self.end, self.count, self.link))
            three_tier.link_free(self.link, first, self.free)

    def work_in(self, port: int, given: Chunk, rows: Ids | None, used: Chunk, nodes: Ids) -> None:
        self._room(len(used))
        three_tier.work_in(nodes, used.vs, used.old, used.new, *self.pool, port, self.stable)

    def new(self, nodes: Ids, port: int, needed: int) -> Changes:
        self._room(self.cells)
        attached = np.array(self.attached)
        return tuple(three_tier.emit_new(nodes, self.start, *self.pool, attached, port, self.stable, needed))

    def differences(self, nodes: Ids, port: int) -> Changes:
        if port < 0:
            return NOTHING
        self._room(self.cells)
        return tuple(three_tier.emit_changes(nodes, self.start, *self.pool, port, self.stable))

    def settle(self, port: int, t: int, nodes: Ids | None) -> Changes:
        self._room(self.cells)
        if nodes is None:
            return self._settle(port, t, self.start[: self.size], self.alive[: self.size], self.head)
        start, alive, head = self.start[nodes], self.alive[nodes], self.head[nodes]
        changed, old, new = self._settle(port, t, start, alive, head, nodes)
        self.alive[nodes], self.head[nodes] = alive, head
        return nodes[changed], old, new

    def _settle(self, port: int, t: int, start: Times, alive: Mask, head: Times, nodes: Ids | None = None) -> Changes:
        """The same for nodes with these values, by place; their liveness and their lists change."""
        _, end, count, link, free = self.pool
        wrong = int(three_tier.contradiction(start, alive, head, count, link, port, self.stable))
        if wrong >= 0:
            out, own = (int(three_tier.total(count, link, head[wrong, m])) for m in (self.ports, port))
            rule = f"another input has settled that {out} of these go on until {show(self.stable)}, this one has {own}"
            node = wrong if nodes is None else int(nodes[wrong])
            raise self.contradicts(port, node, int(end[max(head[wrong, self.ports], 0)]), rule)
        return tuple(three_tier.freeze(start, alive, head, end, count, link, free, port, t))

    def due_rows(self, nodes: Ids, since: int) -> Matrix:
        head, end, count, link, _ = self.pool
        attached = np.array(self.attached)
        rows: Matrix = due_nodes.rows_of_three_tier(
            nodes, self.start, self.alive, head, end, count, link, attached, since
        )
        return rows

    def due_lists(self, port: int) -> Iterable[int]:
        """Of all inputs, as ends before the CTI are dropped from their lists."""
        inputs = [due_nodes.ends_list(m) for m in range(self.ports)]
        return due_nodes.WAITING, due_nodes.OUT, *inputs, due_nodes.count_list(port)

    def forget(self, port: int) -> None:
        super().forget(port)
        three_tier.forget(self.head[: self.size], self.link, self.free, port)

    def add_port(self) -> int:
        """The list of the output stays the last one."""
        self.head = np.insert(self.head, self.ports, three_tier.NONE, axis=1)
        return super().add_port()

    def prepare(self, first: int, last: int) -> None:
        self.head[first:last] = three_tier.NONE

    def resize(self, room: int) -> None:
        super().resize(room)
        self.head = resized(self.head, room)

    def keep(self, kept: Ids) -> None:
        super().keep(kept)
        self.head = self.head[kept]
