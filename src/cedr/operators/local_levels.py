"""End points and levels of `LevelOperator` in blocks, for chunks that are small compared with the state.

The payloads of a chunk are computed again, before and after it; each has few end points. Levels that are not emitted
wait in the order of their starts, which is the order in which a `perfect` operator emits, so those that progress makes
due come first.

Only as long as all payloads are equally far, and for the latencies perfect and eager.
"""

from collections.abc import Callable

import numpy as np

from cedr.columnar.blocks import SortedBlocks
from cedr.columnar.chunk import Times
from cedr.columnar.compacting import compact
from cedr.columnar.increments import BlockColumns
from cedr.columnar.index import RowIndex
from cedr.kernels import endpoints as ep
from cedr.kernels import levels as lv
from cedr.kernels.difference import net_change
from cedr.operators.lap import Lap
from cedr.operators.local_snapshots import EndPoints, columns_of, endpoints_of, view_of_emitted, view_of_endpoints
from cedr.operators.two_layouts import BlockView, Views
from cedr.temporal.time import INF

Levels = tuple[Times, Times, Times]
"""Group, start and end."""
Open = tuple[Times, Times]
"""Group and start of levels that were open at the first entry of a payload, the lowest first."""
Limits = tuple[Times, Times, Times]
"""By when an emitted level must end and start, and before which start it is emitted anyway; see `levels.emitted`."""
Changed = tuple[Times, Times, Times, Times]
"""Group, start, end before and after."""


class LocalLevels:
    """`limits`: by which levels were emitted."""

    def __init__(
        self,
        endpoints: EndPoints,
        open_: Open,
        emitted: Levels,
        height: Callable[[np.ndarray], Times],
        limits: Limits,
    ) -> None:
        g, t, k, counts = endpoints
        self.height, self.limits = height, limits
        self.open = SortedBlocks(3, 2, 2)
        self.open.add(np.column_stack((*open_, np.ones(len(open_[0]), dtype=np.int64))))
        self.endpoints = SortedBlocks(3 + counts.shape[1], 2, 2)
        self.endpoints.replace(np.column_stack((g, t, k, counts)))
        self.emitted = SortedBlocks(4, 3, 3)
        self.emitted.add(counted_rows(emitted))
        self.waiting = SortedBlocks(4, 3, 3)
        self._wait(self._held_back(self._levels(endpoints, open_), limits), 1)
        self.lap = Lap()

    @property
    def nbytes(self) -> int:
        return self.endpoints.nbytes + self.open.nbytes + self.emitted.nbytes + self.waiting.nbytes

    def flat(self) -> tuple[EndPoints, Open, Levels]:
        """All end points, open and emitted levels as sorted arrays."""
        return endpoints_of(self.endpoints.flat()), open_of(self.open.flat()), levels_of(self.emitted.flat())

    def views(self) -> Views:
        """The fields of a snapshot, in blocks."""
        return {
            "endpoints": view_of_endpoints(self.endpoints),
            "open": BlockView(self.open, BlockColumns((0, 1), repeat=2)),
            "emitted": view_of_emitted(self.emitted, 2, 4, 3),
        }

    # --- a chunk -----------------------------------------------------------------------------------------------------

    def take(self, changes: EndPoints) -> tuple[Times, Levels]:
        """Add the changes of a chunk; returns the payloads it is about and all of their levels."""
        groups = np.unique(changes[0])
        before, open_ = endpoints_of(self.endpoints.of_groups(groups)), open_of(self.open.of_groups(groups))
        self._wait(self._held_back(self._levels(before, open_), self.limits), -1)
        self.endpoints.add(np.column_stack(changes))
        self.lap.add(len(changes[0]))
        return groups, self._levels(ep.merge(*before, *changes), open_)

    def earliest_open(
        self, levels: Levels, until: int, over: int, released: int, promised: Times
    ) -> tuple[Levels, int]:
        """The levels of other payloads that may be due, and the earliest start of one that is not over."""
        once = np.array([until]), np.array([over])
        best = int(lv.earliest_open(*levels, *once, promised)[0])
        rows, best = lv.over_in_order(*self.waiting.arrays, until, over, released, best)
        return (columns_of(rows, 2), columns_of(rows, 0), columns_of(rows, 1)), int(best)

    def update(self, groups: Times, levels: Levels, due: Levels, limits: Limits) -> Changed:
        """Emit what the limits allow of the levels of some payloads, and of those of others that may be due."""
        emits, _ = lv.emitted(*levels, *limits)
        now: Levels = (levels[0][emits], levels[1][emits], levels[2][emits])
        rows = self.emitted.of_groups(groups)
        nothing = np.empty((len(now[0]), 0), dtype=np.int64)
        was = levels_of(rows)
        net = net_change(*was, np.empty((len(was[0]), 0), dtype=np.int64), *now, nothing, np.array([INF]))
        g, _, start, before, after = net
        self._wait((levels[0][~emits], levels[1][~emits], levels[2][~emits]), 1)
        ready = due[1] <= limits[1][0]
        due = (due[0][ready], due[1][ready], due[2][ready])
        self._wait(due, -1)
        g, start = np.concatenate((g, due[0])), np.concatenate((start, due[1]))
        before, after = np.concatenate((before, due[1])), np.concatenate((after, due[2]))
        self.emitted.add(changed_rows(g, start, before, after))
        self.lap.add(len(g))
        self.limits = limits
        order = np.lexsort((start, g))
        return g[order], start[order], before[order], after[order]

    def held(self) -> Times:
        """The start of the first level that is not emitted."""
        first = self.waiting.head(1)
        return first[0, :1] if len(first) else np.array([INF], dtype=np.int64)

    # --- forgetting --------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        return self.endpoints.rows + self.emitted.rows

    def forget(self, groups: Times, settled: Times, front: Times) -> None:
        """Fold what is settled of some payloads: end points, open and emitted levels together."""
        which, rows = self.endpoints.between((groups,), (groups + 1,))
        was_open = self.open.of_groups(groups)
        g, t, k, counts = endpoints_of(rows)
        open_g, open_start = open_of(was_open)
        open_ = (np.searchsorted(groups, open_g), open_start)
        height = self.height(ep.live_copies(g, counts))
        lg, _, end = lv.levels(which, t, height, *open_)
        folded = lv.foldable(lg, end, settled, front, len(groups))
        open_g, open_start = lv.open_levels(which, t, height, *open_, folded)
        self.open.change(was_open, open_rows((groups[open_g], open_start)))
        which, t, k, counts = ep.fold(which, t, k, counts, folded)
        self.endpoints.change(rows, np.column_stack((groups[which], t, k, counts)))
        emitted = self.emitted.of_groups(groups)
        self.emitted.remove(emitted[emitted[:, 2] < settled[0]])

    def compact(self, payloads: RowIndex) -> Times | None:
        """Drop payloads of which nothing is left; returns the new number of each."""
        numbers = compact(payloads, (self.endpoints, 0), (self.emitted, 0), (self.open, 0))
        if numbers is not None:
            self.waiting.renumber(2, numbers)
        return numbers

    # --- parts -------------------------------------------------------------------------------------------------------

    def _levels(self, endpoints: EndPoints, open_: Open) -> Levels:
        g, t, _, counts = endpoints
        found: Levels = lv.levels(g, t, self.height(ep.live_copies(g, counts)), *open_)
        return found

    @staticmethod
    def _held_back(levels: Levels, limits: Limits) -> Levels:
        """The levels that are not emitted."""
        emits, _ = lv.emitted(*levels, *limits)
        return levels[0][~emits], levels[1][~emits], levels[2][~emits]

    def _wait(self, levels: Levels, sign: int) -> None:
        """Add levels to those that wait, or remove them."""
        g, start, end = levels
        order = np.lexsort((g, end, start))
        self.waiting.add(np.column_stack((start, end, g, np.full(len(g), sign, dtype=np.int64)))[order])


def open_of(rows: np.ndarray) -> Open:
    """Starts of open levels from rows with the number of equal ones."""
    rows = np.repeat(rows, rows[:, 2], axis=0)
    return columns_of(rows, 0), columns_of(rows, 1)


def open_rows(open_: Open) -> np.ndarray:
    """The rows with the number of equal ones; starts are sorted."""
    rows, copies = np.unique(np.column_stack(open_), axis=0, return_counts=True)
    return np.column_stack((rows, copies))


def levels_of(rows: np.ndarray) -> Levels:
    """Levels from rows with the number of equal ones."""
    rows = np.repeat(rows, rows[:, 3], axis=0)
    return columns_of(rows, 0), columns_of(rows, 1), columns_of(rows, 2)


def counted_rows(levels: Levels) -> np.ndarray:
    """Levels as sorted rows; equal ones are added up later."""
    g, start, end = levels
    rows = np.column_stack((g, start, end, np.ones(len(g), dtype=np.int64)))
    return rows[np.lexsort((end, start, g))]


def changed_rows(g: Times, start: Times, before: Times, after: Times) -> np.ndarray:
    """How the number of levels of each kind changes."""
    was, now = before > start, after > start
    ones = np.ones(len(g), dtype=np.int64)
    gone = np.column_stack((g, start, before, -ones))[was]
    come = np.column_stack((g, start, after, ones))[now]
    rows = np.concatenate((gone, come))
    return rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]
