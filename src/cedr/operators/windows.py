"""Windows as lifetimes; the definitions are in `cedr.reference.windows`."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, Times
from cedr.operators.base import Operator
from cedr.operators.stateless import AlterLifetime, plus
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF, as_duration

Schema = Mapping[str, pl.DataType]


def same(vs: Times) -> Times:
    return vs


def sliding(schema: Schema, w: int) -> AlterLifetime:
    length = as_duration(w, "window length")
    return AlterLifetime(schema, same, lambda vs, ve: plus(vs, length))


def moving(schema: Schema, w: int) -> AlterLifetime:
    length = as_duration(w, "window length")
    return AlterLifetime(schema, same, lambda vs, ve: np.minimum(ve, plus(vs, length)))


def hopping(schema: Schema, size: int, hop: int, offset: int = 0) -> AlterLifetime:
    if as_duration(size, "window size") % as_duration(hop, "hop") or INF in (size, hop):
        raise QueryError(f"hopping window of size {size} and hop {hop}: the size must be a finite multiple of the hop")

    def grid(t: Times) -> Times:
        return (t - offset) // hop * hop + offset

    return AlterLifetime(schema, grid, lambda vs, ve: plus(grid(vs), size))


def tumbling(schema: Schema, size: int, offset: int = 0) -> AlterLifetime:
    return hopping(schema, size, size, offset)


def inserts(schema: Schema) -> AlterLifetime:
    return AlterLifetime(schema, same, lambda vs, ve: np.full_like(vs, INF))


class Deletes(Operator):
    """`[ve, ∞)` for every tuple that ends. An adjust moves the delete: one goes, another comes."""

    def __init__(self, schema: Schema) -> None:
        super().__init__()
        self.schema = dict(schema)

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        vs, old, new = chunk.vs, chunk.old, chunk.new
        gone = (old > vs) & (old != INF)
        come = (new > vs) & (new != INF)
        rows = np.concatenate([np.flatnonzero(gone), np.flatnonzero(come)])
        start = np.concatenate([old[gone], new[come]])
        forever = np.full_like(start, INF)
        is_gone = np.arange(len(rows)) < np.count_nonzero(gone)
        moved = chunk.with_rows(chunk.rows[rows[order]]) if len(order := np.argsort(rows, kind="stable")) else chunk
        if not len(rows):
            return chunk.with_rows(chunk.rows.clear())
        start, forever, is_gone = start[order], forever[order], is_gone[order]
        return moved.with_times(start, np.where(is_gone, forever, start), np.where(is_gone, start, forever))
