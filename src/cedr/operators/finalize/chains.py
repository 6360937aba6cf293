"""The second job of a Finalize: connect adjusts to their tuples, in whatever order they arrive.

A tuple and its adjusts form a chain. `Chains` stores the tuples that may still be adjusted and holds adjusts whose
predecessor is missing. When it arrives, the chain leaves as one row.

*When does a held adjust hold a CTI back?* Let the input promise t, and let `x -> f` wait for a tuple that ends at x.
While `min(x, f) >= t` it does not matter. Below that, its insert can no longer arrive (`vs <= min(x, f) < t`). But if a
tuple with the same start and payload is stored and `x >= t`, a missing `w -> x` may still arrive and lead that tuple to
f < t:

    insert [0, 10)    12 -> 4    cti 5    10 -> 12         the tuple ends at 4, so CTI 5 has to wait for `10 -> 12`

The report drops `12 -> 4` here and loses the end of the tuple. We emit CTI 4 until the chain is complete, or until the
promise has passed x and the missing link can no longer arrive. In all other cases the adjust is of an *unknown tuple*.

Adjusts that form a circle cancel out. They can be left over when a tuple advanced by another path; they change nothing,
hold nothing back, and are counted as cancelled.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.chunk import Times, assemble
from cedr.columnar.index import Ids, RowIndex
from cedr.columnar.promises import PromiseIndex
from cedr.columnar.state import PART, Stateful, columns, compact, counted, fields
from cedr.kernels.chains import merge, nodes, on_cycles, reachable
from cedr.kernels.tuple_counts import TupleCounts
from cedr.operators.base import Operator
from cedr.operators.finalize.rows import Mask, ValidatedRows
from cedr.operators.late import Late, Reason
from cedr.temporal.time import INF, MIN, show

FEW_PAYLOADS = 4096
"""Number of payloads below which unused ones are not looked for."""


@dataclass(frozen=True)
class Edges:
    """Rows with the number of their payload and their position in arrival order, as columns."""

    vs: Times
    pid: Ids
    old: Times
    new: Times
    position: Times

    @staticmethod
    def none() -> "Edges":
        return Edges(*(np.empty(0, dtype=np.int64) for _ in range(5)))

    def __len__(self) -> int:
        return len(self.vs)

    def __getitem__(self, which: Any) -> "Edges":
        return Edges(*(column[which] for column in self.columns()))

    def columns(self) -> list[Times]:
        return [self.vs, self.pid, self.old, self.new, self.position]

    def plus(self, other: "Edges") -> "Edges":
        return Edges(*(np.concatenate(both) for both in zip(self.columns(), other.columns(), strict=True)))

    def with_ids(self, numbers: Ids) -> "Edges":
        return Edges(self.vs, numbers[self.pid], self.old, self.new, self.position)

    def graph(self) -> Any:
        """The edges in the form that `cedr.kernels.chains` expects."""
        return nodes(self.vs, self.pid, self.old, self.new)

    @property
    def sync(self) -> Times:
        return np.minimum(self.old, self.new)


@dataclass(frozen=True)
class AppliedRows:
    """The rows of a chunk and the adjusts held before it: which of them found their tuple, in order, and which wait."""

    edges: Edges
    applied: Times
    waiting: Edges
    in_order: bool
    cancelled: int = 0

    @staticmethod
    def none() -> "AppliedRows":
        return AppliedRows(Edges.none(), np.empty(0, dtype=np.int64), Edges.none(), in_order=True)


@dataclass(frozen=True)
class SettledAdjusts:
    """Adjusts that still wait, the CTI they allow, and those that can no longer find their tuple."""

    held: Edges
    unforced: int
    late: list[Late]


class Chains(Stateful):
    state = fields(
        held=counted(columns(Edges)),
        _index=PART,
        _store=counted(compact(4, lambda chains, _: chains.reachable(), lambda store, tuples: store.refill(tuples, 0))),
    )

    def __init__(self, schema: Mapping[str, pl.DataType], operator: Operator) -> None:
        """`operator`: the Finalize, whose CTI and promises decide which tuples can still be adjusted."""
        self.schema, self.operator = dict(schema), operator
        self.held = Edges.none()
        self._index = RowIndex(self.schema)
        self._store = TupleCounts()

    def __len__(self) -> int:
        return len(self._store) + len(self.held)

    def payload(self, ids: Ids) -> pl.DataFrame:
        return self._index.take(ids) if self.schema else pl.DataFrame()

    # --- applying rows -----------------------------------------------------------------------------------------------

    def apply(self, rows: ValidatedRows, cti_out: int, punctuations: PromiseIndex) -> AppliedRows:
        """Let rows and held adjusts find their tuples; what has been promised before them frees memory if necessary."""
        if not len(rows) and not len(self.held):
            return AppliedRows.none()
        self._make_room(len(rows) + len(self.held), cti_out, punctuations)
        vs, old, new = rows.times
        edges = Edges(vs, self._index.ids(rows.rows), old, new, rows.positions)
        held = len(self.held)
        if held:
            edges = self.held.plus(edges)
        applied = self._store.work_in(edges.vs, edges.pid, edges.old, edges.new, held)
        if len(applied) == len(edges):
            in_order = not held and bool((applied[1:] > applied[:-1]).all())
            return AppliedRows(edges, applied, Edges.none(), in_order)
        rest = np.ones(len(edges), dtype=np.bool_)
        rest[applied] = False
        waiting = edges[rest]
        circling = on_cycles(*waiting.graph())
        return AppliedRows(edges, applied, waiting[~circling], False, int(circling.sum()))

    def undo(self, rows: AppliedRows) -> None:
        """Restore the state before `apply`."""
        edges = rows.edges
        self._store.take_back(rows.applied, edges.vs, edges.pid, edges.old, edges.new)

    def output(self, rows: pl.DataFrame, applied: AppliedRows) -> pl.DataFrame:
        """The rows that found their tuples; when chains were broken, each chain as one row."""
        if applied.in_order:
            return rows
        edges = applied.edges[applied.applied]
        last, kept = merge(*edges.graph())
        joined, new = edges[kept], edges.new[last][kept]
        return assemble(joined.vs, joined.old, new, self.payload(joined.pid)).rows

    def clear(self) -> None:
        """Forget all tuples: none can be adjusted any more."""
        self._store, self._index = TupleCounts(), RowIndex(self.schema)

    # --- settling held adjusts ---------------------------------------------------------------------------------------

    def settle(self, held: Edges, promised: int, forced: int, punctuations: PromiseIndex) -> SettledAdjusts:
        """Which adjusts can continue to wait, and how far the CTI can advance meanwhile."""
        if not len(held):
            return SettledAdjusts(held, promised, [])
        fronts = self._fronts(held.pid, promised, punctuations)
        below = held.sync < fronts
        hopeful = self._can_connect(held, fronts) if below.any() else below
        unforced = min(promised, int(held.sync[hopeful].min(initial=INF)))
        hopeless, forgotten = below & ~hopeful, held.sync < forced
        late = self._late(held[hopeless], "unknown_tuple", "to adjust; it was never inserted, or was removed")
        t = show(forced)
        late += self._late(held[forgotten & ~hopeless], "forgotten", f"lies before {t}, where memory ends")
        return SettledAdjusts(held[~hopeless & ~forgotten], unforced, late)

    def _fronts(self, pid: Ids, cti: int, punctuations: PromiseIndex) -> Times:
        """For each payload, the time before which nothing about it can arrive."""
        if not punctuations or not len(pid):
            return np.full(len(pid), cti)
        return np.maximum(punctuations.of(self.payload(pid)), cti)

    def _can_connect(self, held: Edges, fronts: Times) -> Mask:
        """Held adjusts that a later element, which cannot lie below its front, could still connect to a tuple."""
        later = (held.old >= fronts) & (fronts < INF)
        if not later.any():
            return later
        vs, pid, end, _ = self._store.live(int(fronts.min()))
        alive = pl.DataFrame({"vs": vs, "pid": pid, "end": end}).group_by("vs", "pid").agg(pl.col("end").max())
        keys = pl.DataFrame({"vs": held.vs, "pid": held.pid})
        ends = keys.join(alive, on=["vs", "pid"], how="left", maintain_order="left")["end"].fill_null(MIN)
        return reachable(*held.graph(), later & (ends.to_numpy() >= fronts))

    def _late(self, edges: Edges, reason: Reason, promise: str) -> list[Late]:
        if not len(edges):
            return []
        rows = assemble(edges.vs, edges.old, edges.new, self.payload(edges.pid)).rows
        return [Late(rows, edges.position, reason, promise)]

    # --- memory and state --------------------------------------------------------------------------------------------

    def _make_room(self, rows: int, cti_out: int, punctuations: PromiseIndex) -> None:
        """When the store is full, or most payloads are of tuples long gone: forget what no adjust can reach."""
        few_payloads = len(self._index) <= 4 * len(self) + FEW_PAYLOADS
        if few_payloads and self._store.has_room(rows):
            return
        vs, pid, end, count = self._live(cti_out, punctuations)
        renumbered = self._index.compact(np.concatenate([pid, self.held.pid]))
        if renumbered is not None:
            pid = renumbered[pid]
            self.held = self.held.with_ids(renumbered)
        self._store.refill((vs, pid, end, count), rows)

    def reachable(self) -> tuple[Times, Ids, Times, Times]:
        """What has to be saved: the tuples that an adjust can still reach."""
        return self._live(self.operator.cti_out, self.operator.promised[0])

    def _live(self, cti_out: int, punctuations: PromiseIndex) -> tuple[Times, Ids, Times, Times]:
        """The tuples that an adjust can still reach: those that end no earlier than what is promised for them."""
        vs, pid, end, count = self._store.live(cti_out)
        if not punctuations or not len(pid):
            return vs, pid, end, count
        fronts = punctuations.of(self.payload(pid))
        kept = (end >= fronts) & (fronts < INF)
        return vs[kept], pid[kept], end[kept], count[kept]
