"""Sort: rows leave in the order of some columns, each with its final end, and what has left never changes.

A row may leave when nothing more can come that belongs before it or changes it: promises without end about the first
column cover its value and every value before it. A CTI does not cover values, so only the one of infinity releases
rows. Rows with equal values leave together, ordered by the other columns, then by start, end and payload. Missing
values come last, either way.

What is held is settled no further than its start, in the output's CTI as in its promises.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.chunk import NEW, OLD, TIMES, VS, Chunk
from cedr.columnar.index import RowIndex
from cedr.columnar.promises import BEFORE, NO_STEPS, Promises
from cedr.columnar.promises.values import is_whole, whole
from cedr.columnar.state import PART, columns, fields
from cedr.operators.base import Operator
from cedr.operators.tuple_store import TupleStore
from cedr.operators.waiting import Waiting
from cedr.temporal.punctuation import Range
from cedr.temporal.time import INF, MIN

Mask = np.ndarray[Any, np.dtype[np.bool_]]


class SortOperator(Operator):
    state = fields(payloads=PART, tuples=columns(TupleStore), waiting=PART)

    def __init__(self, schema: Mapping[str, pl.DataType], by: Sequence[str], descending: Sequence[bool]) -> None:
        super().__init__()
        self.schema, self.by = dict(schema), list(by)
        self.first, self.descending = by[0], descending[0]
        ties = [VS, NEW, *sorted(schema)]
        self.order = [*by, *ties]
        self.directions = [*descending, *(False for _ in ties)]
        self.nulls_last = [*(True for _ in by), *(False for _ in ties)]
        self.payloads = RowIndex(self.schema)
        self.tuples = TupleStore.empty()
        """Held rows: start, end and payload number, with copies."""
        self.waiting = Waiting()

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        if len(chunk):
            same = np.zeros(len(chunk), dtype=np.int64)
            changes = TupleStore.changes(same, chunk.vs, chunk.old, chunk.new, self.payloads.ids(chunk.rows))
            self.tuples = self.tuples.merge(changes)
        rows = self._release() if len(chunk.promises) or self.cti == INF else self._rows(TupleStore.empty())
        settled = min(self.cti, int(self.tuples.vs.min(initial=INF)))
        return Chunk(
            rows, settled, promises=self.waiting.passed(chunk.promises, self._not_about_held, settled, len(chunk))
        )

    # --- leaving ---------------------------------------------------------------------------------------------------

    def _release(self) -> pl.DataFrame:
        leaves = np.ones(self.tuples.rows, dtype=np.bool_)
        if self.cti != INF:
            held = self.payloads.take(self.tuples.value)[self.first]
            leaves = complete_values(held, self.promised[0].all(), self.descending)
        leaving, staying = self.tuples.split(leaves)
        rows = self._rows(leaving)
        if rows.height:
            self.tuples = staying
            self._compact()
        return rows.sort(self.order, descending=self.directions, nulls_last=self.nulls_last)

    def _rows(self, tuples: TupleStore) -> pl.DataFrame:
        vs, ve, number = (np.repeat(column, tuples.copies) for column in (tuples.vs, tuples.ve, tuples.value))
        times = pl.DataFrame({VS: vs, OLD: vs, NEW: ve}, schema=dict.fromkeys(TIMES, pl.Int64))
        return times.hstack(self.payloads.take(number))

    def _compact(self) -> None:
        numbers = self.payloads.compact(self.tuples.value)
        if numbers is not None:
            self.tuples = self.tuples.renumber_values(numbers)

    def _not_about_held(self, promises: Promises) -> Promises:
        return promises.held_back(self.payloads.take(self.tuples.value), self.tuples.vs)

    def state_rows(self) -> int:
        return int(self.tuples.copies.sum())


# --- which values are complete ---------------------------------------------------------------------------------------


def complete_values(column: pl.Series, promises: Promises, descending: bool) -> Mask:
    """Of which values neither they nor any that belong before them can come any more."""
    known = column.is_not_null().to_numpy()
    run = whole_run if is_whole(column.dtype) else other_run
    inside, everything = run(column, promises, descending)
    return known & inside | ~known & (everything and missing_is_complete(promises, column.name))


def whole_run(column: pl.Series, promises: Promises, descending: bool) -> tuple[Mask, bool]:
    """The values in the step that is complete and lies where the order begins; and whether it is all there is."""
    steps = promises.steps.get(column.name, NO_STEPS)
    first, last = type_bounds(column.dtype)
    begins = steps.last >= last if descending else steps.low <= first
    run = np.flatnonzero(begins & (steps.before == INF))
    if not len(run):
        return np.zeros(len(column), dtype=np.bool_), False
    low, high = int(steps.low[run[0]]), int(steps.last[run[0]])
    values, _ = whole(column, column.dtype)
    return (low <= values) & (values <= high), low <= first and last <= high


def type_bounds(kind: pl.DataType) -> tuple[int, int]:
    """The least and the greatest number of a type."""
    if not kind.is_integer():
        return MIN, INF
    bits = 8 * pl.Series([0], dtype=kind).to_numpy().itemsize
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if kind.is_signed_integer() else (0, 2**bits - 1)


def other_run(column: pl.Series, promises: Promises, descending: bool) -> tuple[Mask, bool]:
    """The same of texts and other values that are not whole: ranges count that are open where the order begins."""
    inside, everything = np.zeros(len(column), dtype=np.bool_), False
    for p in promises.others:
        found = p[column.name]
        if p.attributes != (column.name,) or p.before != INF or not isinstance(found, Range):
            continue
        begin, end = (found.high, found.low) if descending else (found.low, found.high)
        if begin is not None:
            continue
        everything |= end is None
        within = column.is_not_null() if end is None else column >= end if descending else column <= end
        inside |= within.fill_null(False).to_numpy()
    return inside, everything


def missing_is_complete(promises: Promises, name: str) -> bool:
    table = promises.points.get((name,))
    return table is not None and bool(table.filter(pl.col(name).is_null() & (pl.col(BEFORE) == INF)).height)
