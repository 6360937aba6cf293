"""End points that time has not reached, in the order of time.

Most end points of an aggregate with many live tuples are ends in the future. At the latency `perfect` nothing reads
them until time is there: a snapshot that is not over is not emitted, whenever it ends. In the order of groups each of
them would change a block of its own, somewhere in the state; in the order of time those of a chunk are next to each
other, and so are those that time reaches.

So an operator keeps apart what is later than a `horizon`, which is how far it may emit. What it has itself is complete
up to the horizon, and often small: then it is in sorted arrays, and a chunk costs a pass over these.

One case needs an end in the future. What starts before a promised time stays emitted; if its end is taken back, or
moved, the next end point of the group is its end. `first_of` looks for it, in the order of time, and hands it over: for
this group the operator then has everything up to that time (`_reach`). The search is short if there are few groups. If
there are many, and it happens often, `costs_too_much`, and the operator does without this store.
"""

import numpy as np

from cedr.columnar.blocks import SortedBlocks
from cedr.columnar.chunk import Times
from cedr.columnar.increments import BlockColumns
from cedr.kernels import by_time
from cedr.kernels.sorting import argsort_by_group_and_time
from cedr.operators.local_snapshots import EndPoints, columns_of
from cedr.operators.two_layouts import BlockView

HEAD = 3
"""Columns before the weights: time, group, number of end points."""
WORTH_IT = 0.5
"""Part of the end points in the future from which on they are kept apart. Tests set it to 0."""
PATIENCE = 4
"""As many times the state may be searched as it has been added. Tests set it."""


class FutureEndPoints:
    """`endpoints`: sorted by group and time; of these, what is not after the horizon is left to `arrived`."""

    def __init__(self, endpoints: EndPoints, horizon: int) -> None:
        self.blocks = SortedBlocks(HEAD + endpoints[3].shape[1], 2, 2)
        self.horizon = horizon
        self._reach: tuple[Times, Times] = (endpoints[0][:0], endpoints[1][:0])
        """Sorted groups of which the operator has more than up to the horizon, and up to when."""
        self._wanted = np.zeros(0, dtype=np.bool_)
        self._searched = 0
        """Rows that were looked at, less those that were added."""
        self.blocks.replace(rows_of(endpoints))

    @property
    def rows(self) -> int:
        return self.blocks.rows

    @property
    def width(self) -> int:
        """The number of weights."""
        return self.blocks.width - HEAD

    @property
    def nbytes(self) -> int:
        return self.blocks.nbytes

    @property
    def costs_too_much(self) -> bool:
        return self._searched > PATIENCE * (self.rows + 1)

    def know(self, endpoints: EndPoints) -> None:
        """The operator has these end points; some may be after the horizon."""
        g, t, *_ = endpoints
        later = t > self.horizon
        g, t = g[later], t[later]
        last = np.flatnonzero(np.append(g[1:] != g[:-1], True)[: len(g)])
        self._reach = (g[last], t[last])

    def without(self, endpoints: EndPoints) -> EndPoints:
        """Of all end points those that the operator has."""
        return picked(endpoints, ~self._is_future(endpoints[0], endpoints[1]))

    def exchange(self, changes: EndPoints | None, horizon: int) -> EndPoints | None:
        """Keep those of some changes that are in the future; returns the others, with all that time has reached now."""
        self._move(horizon)
        arrived = self._arrived()
        if changes is None:
            return arrived
        future = self._is_future(changes[0], changes[1])
        if future.any():
            rows = rows_of(picked(changes, future))
            self.blocks.add(rows)
            self._searched -= len(rows)
            changes = picked(changes, ~future)
        if arrived is None:
            return changes
        return added(changes, arrived)

    def _move(self, horizon: int) -> None:
        self.horizon = horizon
        groups, times = self._reach
        if len(groups):
            ahead = times > horizon
            self._reach = (groups[ahead], times[ahead])

    def _is_future(self, g: Times, t: Times) -> np.ndarray:
        future = t > self.horizon
        groups, times = self._reach
        if len(groups):
            at = np.minimum(np.searchsorted(groups, g), len(groups) - 1)
            future &= (groups[at] != g) | (t > times[at])
        return np.asarray(future)

    def _arrived(self) -> EndPoints | None:
        """What time has reached; it is removed."""
        rows = self.blocks.take_until(self.horizon)
        return endpoints_of(rows) if len(rows) else None

    def first_of(self, groups: Times) -> EndPoints:
        """The first end point of each of these groups, which all have one; it is removed."""
        if int(groups[-1]) >= len(self._wanted):
            self._wanted = np.zeros(2 * int(groups[-1]) + 16, dtype=np.bool_)
        self._wanted[groups] = True
        rows, searched = by_time.first_of_groups(*self.blocks.arrays, self._wanted, len(groups))
        assert len(rows) == len(groups), "a group with live tuples has no end point in the future"
        self._searched += searched
        self.blocks.remove(rows)
        found = endpoints_of(rows)
        known = ~np.isin(self._reach[0], found[0])
        g, t = (np.concatenate((a[known], b)) for a, b in zip(self._reach, found[:2], strict=True))
        order = np.argsort(g)
        self._reach = (g[order], t[order])
        return found

    def flat(self) -> EndPoints:
        """All of them, sorted by group and time."""
        return endpoints_of(self.blocks.flat())

    def view(self) -> BlockView:
        """The field of a snapshot, in blocks."""
        return BlockView(self.blocks, BlockColumns((1, 0, 2, (HEAD, self.blocks.width)), order=(1, 0)))

    def renumber(self, numbers: Times) -> None:
        """The groups have new numbers, in the same order."""
        self.blocks.renumber(1, numbers)
        self.renumber_reach(numbers)

    def renumber_reach(self, numbers: Times) -> None:
        """The same, if the blocks have them."""
        groups, times = self._reach
        kept = numbers[groups] >= 0
        self._reach = (numbers[groups[kept]], times[kept])


def picked(endpoints: EndPoints, which: np.ndarray) -> EndPoints:
    g, t, k, ints = endpoints
    return g[which], t[which], k[which], ints[which]


def added(one: EndPoints, other: EndPoints) -> EndPoints:
    """Changes of end points from two places as one. Different ones that cancel out in number may differ in weight."""
    g, t, k, ints = (np.concatenate(both) for both in zip(one, other, strict=True))
    order = argsort_by_group_and_time(g, t)
    return summed(g[order], t[order], k[order], ints[order])


def summed(g: Times, t: Times, k: Times, ints: np.ndarray) -> EndPoints:
    """Sorted changes with those at one time and group added up."""
    heads = np.flatnonzero(np.append(True, (g[1:] != g[:-1]) | (t[1:] != t[:-1]))[: len(g)])
    if len(heads) == len(g):
        return g, t, k, ints
    return g[heads], t[heads], np.add.reduceat(k, heads), np.add.reduceat(ints, heads, axis=0)


def rows_of(endpoints: EndPoints) -> np.ndarray:
    """End points as rows in the order of time."""
    g, t, k, ints = endpoints
    return np.column_stack((t, g, k, ints))[np.argsort(t, kind="stable")]


def endpoints_of(rows: np.ndarray) -> EndPoints:
    """Rows in the order of time as end points."""
    g, t = columns_of(rows, 1), columns_of(rows, 0)
    rows = rows[order := argsort_by_group_and_time(g, t)]
    return g[order], t[order], columns_of(rows, 2), np.ascontiguousarray(rows[:, HEAD:])
