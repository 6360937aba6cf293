"""Reach: which nodes are reachable from which sources, emitted as CTIs settle it.

The answer of `graphs.reachability` as a loop, found another way: for each source a search tree is kept and repaired
when edges are added or removed (`cedr.kernels.search_trees`). What happened before the CTI is applied instant by
instant, in the order of time, so nothing is retracted; what lies after it waits as end points.
The cost of a batch is that of the edges that changed, whatever the size of the graph.

Port 0 takes the edges, port 1 the sources. Edges that are there twice count once. A missing node connects nothing.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.blocks import Matrix
from cedr.columnar.chunk import Chunk, Times, assemble
from cedr.columnar.index import RowIndex
from cedr.columnar.state import ARRAYS, BLOCKS, DICT, LIST, NUMBER, PART, Stateful, array, each, elsewhere, fields
from cedr.kernels import supports as su
from cedr.kernels.search_trees import NONE, link, repair, unlink
from cedr.operators.base import Operator
from cedr.operators.due_changes import Changes, DueChanges
from cedr.temporal.time import INF

LISTS = ("out_first", "out_next", "out_prev", "in_first", "in_next", "in_prev")


class Graph(Stateful):
    """Edges by number, in lists by node."""

    state = fields(
        start=array(in_place=True),
        end=array(in_place=True),
        copies=array(in_place=True),
        out_first=array(in_place=True),
        out_next=array(in_place=True),
        out_prev=array(in_place=True),
        in_first=array(in_place=True),
        in_next=array(in_place=True),
        in_prev=array(in_place=True),
    )

    def __init__(self) -> None:
        none = np.empty(0, dtype=np.int32)
        self.start, self.end, self.copies = none, none, none
        self.out_first, self.out_next, self.out_prev = none, none, none
        self.in_first, self.in_next, self.in_prev = none, none, none

    def grow(self, edges: int, nodes: int) -> None:
        for name in ("start", "end", "copies"):
            setattr(self, name, with_room(getattr(self, name), edges, 0))
        for name in LISTS:
            setattr(self, name, with_room(getattr(self, name), nodes if name.endswith("first") else edges, -1))

    def change(self, edges: Times, by: Times) -> tuple[Times, Times]:
        """Change the number of copies of edges; returns the edges that are gone and those that are new."""
        before = self.copies[edges] > 0
        self.copies[edges] += by
        after = self.copies[edges] > 0
        gone, come = edges[before & ~after], edges[after & ~before]
        lists = self.start, self.end, *(getattr(self, name) for name in LISTS)
        unlink(gone, *lists)
        link(come, *lists)
        return gone, come

    def renumbered(self, edges: Times, nodes: Times) -> "Graph":
        """The graph of these edges, between nodes with new numbers."""
        new, n = Graph(), len(edges)
        new.grow(n, int(nodes.max(initial=-1)) + 1)
        new.start[:n], new.end[:n] = nodes[self.start[edges]], nodes[self.end[edges]]
        new.copies[:n] = self.copies[edges]
        link(np.flatnonzero(new.copies > 0), new.start, new.end, *(getattr(new, name) for name in LISTS))
        return new

    def pairs(self, edges: Times) -> Times:
        return np.column_stack((self.start[edges], self.end[edges])).astype(np.int64)

    def leaving(self, node: int) -> Times:
        """The edges that leave a node."""
        found = []
        e = int(self.out_first[node])
        while e >= 0:
            found.append(e)
            e = int(self.out_next[e])
        return np.array(found, dtype=np.int64)


class ReachOperator(Operator):
    ports = 2

    state = fields(
        nodes=PART,
        edges=PART,
        graph=PART,
        waiting=elsewhere(each(ARRAYS)),
        due=BLOCKS,
        row_of=DICT,
        free=LIST,
        roots=array(in_place=True),
        parents=array(ndim=2, in_place=True),
        since=array(ndim=2, in_place=True),
        copies=array(in_place=True),
        reached=array(in_place=True),
        seen=NUMBER,
    )

    def __init__(self, schema: Mapping[str, pl.DataType], edges: tuple[str, str], node: str) -> None:
        super().__init__()
        self.schema, self.edge_columns, self.node = dict(schema), list(edges), node
        self.nodes = RowIndex({"node": next(iter(self.schema.values()))})
        self.edges = RowIndex({"both": pl.Int64()})
        """By the numbers of both nodes in one word."""
        self.graph = Graph()
        self.due = DueChanges(self.ports)
        """By port: when the number of copies of which edges or nodes changes."""
        self.row_of: dict[int, int] = {}
        """By source node its row, in the arrays that have one per source."""
        self.free: list[int] = []
        self.roots = np.empty(0, dtype=np.int64)
        self.parents = np.empty((0, 0), dtype=np.int32)
        self.since = np.empty((0, 0), dtype=np.int64)
        """When each node was reached; an emitted row ends at INF until it ends."""
        self.copies = np.empty(0, dtype=np.int64)
        """How often each node is a source."""
        self.reached = np.empty(0, dtype=np.int64)
        """By how many sources each node is reached. An edge to a node that all reach brings nothing new."""
        self.seen = 0
        """How many edges there were when it was last looked how many are gone."""

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        if len(chunk):
            self._keep_end_points(port, chunk)
        changes = [self._changes_at(*change) for change in self._due_changes()]
        root, node, vs, old, new = (np.concatenate(arrays) for arrays in zip(NO_ROWS, *changes, strict=True))
        both = self.nodes.take(np.concatenate((root, node)))["node"]
        start, end = both[: len(root)], both[len(root) :]
        payload = pl.DataFrame([s.alias(name) for s, name in zip((start, end), self.schema, strict=True)])
        if changes:
            self._forget()
        return assemble(vs, old, new, payload, self.cti)

    def _keep_end_points(self, port: int, chunk: Chunk) -> None:
        """Keep the end points of a chunk's rows."""
        columns = self.edge_columns if port == 0 else [self.node]
        rows = chunk.rows
        if rows[columns[0]].null_count():
            rows = rows.filter(pl.col(columns[0]).is_not_null())
        numbers = self._edges(rows) if port == 0 else self._nodes(rows[columns[0]])
        old, new = rows["_ve_old"].to_numpy(), rows["_ve_new"].to_numpy()
        sign = np.where(new > old, 1, -1)
        changes = su.count_changes(numbers, np.minimum(old, new), np.maximum(old, new), sign)
        ends = changes[1] < INF
        self.due.add(port, tuple(a[ends] for a in changes))

    def _edges(self, rows: pl.DataFrame) -> Times:
        one, two = (rows[name] for name in self.edge_columns)
        start, end = np.split(self._nodes(pl.concat([one, two.alias(one.name)])), 2)
        numbers = self.edges.ids(pl.DataFrame({"both": (start << 32) | end}))
        self.graph.grow(len(self.edges), len(self.nodes))
        self.graph.start[numbers], self.graph.end[numbers] = start, end
        return numbers

    def _nodes(self, column: pl.Series) -> Times:
        numbers = self.nodes.ids(column.alias("node").to_frame())
        self.copies, self.reached = (with_room(a, len(self.nodes), 0) for a in (self.copies, self.reached))
        self.graph.grow(len(self.edges), len(self.nodes))
        if self.parents.shape[1] < len(self.nodes):
            self._shape(len(self.roots), len(self.nodes) + len(self.nodes) // 8)
        return numbers

    def _shape(self, rows: int, nodes: int) -> None:
        """Reserve room for this number of sources and nodes."""
        short = np.int16 if nodes < 2**15 else np.int32  # most of the time goes into reading the trees
        for name, fill, kind in (("parents", NONE, short), ("since", INF, np.int64)):
            known = getattr(self, name)
            array = np.full((rows, nodes), fill, dtype=kind)
            array[: known.shape[0], : known.shape[1]] = known
            setattr(self, name, array)

    def _due_changes(self) -> Iterator[tuple[int, Matrix, Matrix]]:
        """For each time before the CTI at which something changes what changes on both ports."""
        edges, nodes = (self.due.take(port, self.cti) for port in range(self.ports))
        for t in np.unique(np.concatenate((edges[:, 0], nodes[:, 0]))):
            yield int(t), at_time(edges, t), at_time(nodes, t)

    def _changes_at(self, t: int, edges: Matrix, sources: Matrix) -> tuple[Times, ...]:
        """What changes at an instant: source, node, start, and how the end changes."""
        gone, come = self.graph.change(edges[:, 1], edges[:, 2])
        nodes, by = sources[:, 1], sources[:, 2]
        before = self.copies[nodes] > 0
        self.copies[nodes] += by
        after = self.copies[nodes] > 0
        changes = [self._end_source(int(n), t) for n in nodes[before & ~after]]
        rows = np.array(sorted(self.row_of.values()), dtype=np.int64)
        changes.append(self._repair(rows, gone, come, t))
        changes += [self._begin_source(int(n), t) for n in nodes[after & ~before]]
        return tuple(np.concatenate(arrays) for arrays in zip(*changes, strict=True))

    def _repair(self, rows: Times, gone: Times, come: Times, t: int) -> tuple[Times, ...]:
        g = self.graph
        if not len(rows) or not (len(gone) or len(come)):
            return NO_ROWS
        come = come[self.reached[g.end[come]] < len(self.row_of)]
        lists = g.out_first, g.out_next, g.in_first, g.in_next
        row, node, reached = repair(
            self.parents, rows, self.roots, g.pairs(gone), g.pairs(come), g.start, g.end, *lists
        )
        if not len(row):
            return NO_ROWS
        np.add.at(self.reached, node, np.where(reached, 1, -1))
        vs = np.where(reached, t, self.since[row, node])
        self.since[row, node] = np.where(reached, t, INF)
        return self.roots[row], node, vs, np.where(reached, vs, INF), np.where(reached, INF, t)

    def _begin_source(self, node: int, t: int) -> tuple[Times, ...]:
        """A source comes: a search from it."""
        if not self.free:
            size = max(2 * len(self.roots), 8)
            self.free = list(range(len(self.roots), size))[::-1]
            self.roots = with_room(self.roots, size, -1, exact=True)
            self._shape(size, self.parents.shape[1])
        row = self.free.pop()
        self.row_of[node], self.roots[row] = row, node
        return self._repair(np.array([row]), np.empty(0, dtype=np.int64), self.graph.leaving(node), t)

    def _end_source(self, node: int, t: int) -> tuple[Times, ...]:
        """A source goes, and all that was reached from it."""
        row = self.row_of.pop(node)
        self.free.append(row)
        found = np.flatnonzero(self.parents[row] >= 0)
        self.reached[found] -= 1
        vs = self.since[row, found]
        self.parents[row], self.since[row] = NONE, INF
        return np.full(len(found), node), found, vs, np.full(len(found), INF), np.full(len(found), t)

    # --- forgetting ----------------------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Edges and nodes that are gone, and of which nothing waits, need no numbers, once they are the most."""
        if not self.edges.may_compact() or len(self.edges) < 2 * self.seen:
            return
        there = np.flatnonzero(self.graph.copies[: len(self.edges)] > 0)
        waiting = self.waiting
        edges = np.union1d(there, waiting[0][0])
        self.seen = len(self.edges)
        if 2 * len(edges) > len(self.edges):
            return
        ends = self.graph.start[edges], self.graph.end[edges]
        nodes = np.unique(np.concatenate((*ends, np.flatnonzero(self.copies > 0), waiting[1][0])))
        self._renumber(edges, nodes)
        self.seen = len(self.edges)

    def _renumber(self, edges: Times, nodes: Times) -> None:
        """Keep these edges and nodes alone."""
        new_edge, new_node = new_numbers(edges, len(self.graph.start)), new_numbers(nodes, len(self.copies))
        self.nodes.restore(self.nodes.take(nodes))
        self.graph = self.graph.renumbered(edges, new_node)
        start, end = (a[: len(edges)].astype(np.int64) for a in (self.graph.start, self.graph.end))
        self.edges.restore(pl.DataFrame({"both": (start << 32) | end}))
        for port, numbers in enumerate((new_edge, new_node)):
            which, times, by = self.due.all(port)
            self.due.replace(port, (numbers[which], times, by))
        self.copies, self.reached = self.copies[nodes], self.reached[nodes]
        rooted = self.roots >= 0
        self.roots[rooted] = new_node[self.roots[rooted]]
        self.row_of = {int(new_node[node]): row for node, row in self.row_of.items()}
        parents, since = self.parents[:, nodes], self.since[:, nodes]
        hang = parents >= 0
        parents[hang] = new_node[parents[hang]]
        self.parents, self.since = parents, since

    def state_rows(self) -> int:
        return len(self.edges) + self.due.rows + len(self.row_of)

    @property
    def waiting(self) -> list[Changes]:
        """As snapshots have it."""
        return [self.due.all(port) for port in range(self.ports)]

    @waiting.setter
    def waiting(self, saved: list[Changes]) -> None:
        for port, changes in enumerate(saved):
            self.due.replace(port, changes)


NO_ROWS: tuple[Any, ...] = tuple(np.empty(0, dtype=np.int64) for _ in range(5))


def at_time(changes: Matrix, t: int) -> Matrix:
    """Of changes in the order of time those of one time."""
    begin, end = np.searchsorted(changes[:, 0], (t, t + 1))
    return changes[begin:end]


def new_numbers(kept: Times, size: int) -> Times:
    """By old number the new one; -1 for what is not kept."""
    numbers = np.full(size, -1, dtype=np.int64)
    numbers[kept] = np.arange(len(kept))
    return numbers


def with_room(array: Times, size: int, fill: int, *, exact: bool = False) -> Times:
    """An array with room for `size`, at least twice as large each time it grows."""
    if len(array) >= size:
        return array
    more = (size if exact else max(size, 2 * len(array), 64)) - len(array)
    return np.concatenate((array, np.full(more, fill, dtype=array.dtype)))
