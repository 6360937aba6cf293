"""Windows as lifetimes; the definitions are in `cedr.reference.windows`."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from cedr.columnar.calendar import cells_of, instants
from cedr.columnar.chunk import Chunk, Times
from cedr.columnar.times import earlier, later, since_grid
from cedr.operators.base import Operator
from cedr.operators.stateless import AlterLifetimeOperator
from cedr.temporal.calendar import Calendar
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF, as_duration

Schema = Mapping[str, pl.DataType]


def unchanged(vs: Times) -> Times:
    return vs


def sliding(schema: Schema, w: int) -> AlterLifetimeOperator:
    length = as_duration(w, "window length")
    return AlterLifetimeOperator(schema, unchanged, lambda vs, ve: later(vs, length))


def moving(schema: Schema, w: int) -> AlterLifetimeOperator:
    length = as_duration(w, "window length")
    return AlterLifetimeOperator(schema, unchanged, lambda vs, ve: np.minimum(ve, later(vs, length)))


def hopping(schema: Schema, size: int, hop: int, offset: int = 0) -> AlterLifetimeOperator:
    if as_duration(size, "window size") % as_duration(hop, "hop") or INF in (size, hop):
        raise QueryError(f"hopping window of size {size} and hop {hop}: the size must be a finite multiple of the hop")

    def grid(t: Times) -> Times:
        return earlier(t, since_grid(t, hop, offset))

    def end(vs: Times, ve: Times) -> Times:
        return later(vs, size - since_grid(vs, hop, offset))

    return AlterLifetimeOperator(schema, grid, end)


def calendar_windows(schema: Schema, grid: Calendar) -> AlterLifetimeOperator:
    """Windows of whole cells of a calendar: from the cell of the start on."""

    def start(t: Times) -> Times:
        return instants(grid, cells_of(grid, t))

    def end(vs: Times, ve: Times) -> Times:
        return instants(grid, cells_of(grid, vs) + grid.cells)

    return AlterLifetimeOperator(schema, start, end)


def tumbling(schema: Schema, size: int, offset: int = 0) -> AlterLifetimeOperator:
    return hopping(schema, size, size, offset)


def sliced(schema: Schema, start: int, end: int) -> AlterLifetimeOperator:
    """What lies outside becomes empty; once time has passed the end, nothing changes any more."""

    def cut(t: Times) -> Times:
        return np.clip(t, start, end)

    return AlterLifetimeOperator(schema, cut, lambda vs, ve: cut(ve), lambda t: np.where(t >= end, INF, cut(t)))


def inserts(schema: Schema) -> AlterLifetimeOperator:
    return AlterLifetimeOperator(schema, unchanged, lambda vs, ve: np.full_like(vs, INF))


class DeletesOperator(Operator):
    """`[ve, ∞)` for every tuple that ends. An adjust moves the delete: one goes, another comes."""

    keeps_files = True

    def __init__(self, schema: Schema) -> None:
        super().__init__()
        self.schema = dict(schema)

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        vs, old, new = chunk.vs, chunk.old, chunk.new
        gone = np.flatnonzero((old > vs) & (old != INF))
        come = np.flatnonzero((new > vs) & (new != INF))
        order = np.argsort(np.concatenate((gone, come)), kind="stable")  # in arrival order, what goes first
        row = np.concatenate((gone, come))[order]
        start = np.concatenate((old[gone], new[come]))[order]
        goes = order < len(gone)
        forever = np.full_like(start, INF)
        moved = chunk.with_rows(chunk.rows[row])
        return moved.with_times(start, np.where(goes, forever, start), np.where(goes, start, forever))
