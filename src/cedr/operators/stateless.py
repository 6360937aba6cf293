"""Operators that look at one row at a time: select, project, union, and lifetimes.

They need no state, because an adjust carries the whole payload and both ends.
"""

from collections.abc import Callable, Mapping

import numpy as np
import polars as pl

from cedr.columnar.chunk import TIMES, Chunk, Times
from cedr.operators.base import Operator
from cedr.temporal.errors import TimeError
from cedr.temporal.time import INF, MIN


class Select(Operator):
    """Rows whose payload satisfies a predicate; a missing truth value counts as false."""

    def __init__(self, schema: Mapping[str, pl.DataType], predicate: pl.Expr) -> None:
        super().__init__()
        self.schema, self.predicate = dict(schema), predicate

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        return chunk.with_rows(chunk.rows.filter(self.predicate))


class Project(Operator):
    """Payloads replaced by expressions of them."""

    def __init__(self, schema: Mapping[str, pl.DataType], expressions: list[pl.Expr]) -> None:
        super().__init__()
        self.expressions = expressions
        self.schema = dict(pl.DataFrame(schema=dict(schema)).select(expressions).schema)

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        return chunk.with_rows(chunk.rows.select(*TIMES, *self.expressions))


class Union(Operator):
    """All rows of all inputs; the slowest one's progress."""

    def __init__(self, schema: Mapping[str, pl.DataType], ports: int = 2) -> None:
        self.ports = ports
        super().__init__()
        self.schema = dict(schema)

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        return Chunk(chunk.rows.select(*TIMES, *self.schema), self.cti)


class AlterLifetime(Operator):
    """Each tuple moves to `[start(vs), end(vs, ve))`.

    `start` must not decrease; `end` must not decrease in `ve`. A removed tuple removes its image, even when the image
    does not depend on the end. `progress(t)` is the largest output CTI that input CTI t allows; by default `start(t)`.
    """

    def __init__(
        self,
        schema: Mapping[str, pl.DataType],
        start: Callable[[Times], Times],
        end: Callable[[Times, Times], Times],
        progress: Callable[[Times], Times] | None = None,
    ) -> None:
        super().__init__()
        self.schema, self.start, self.end = dict(schema), start, end
        self.progress = progress or start

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        vs, old, new = chunk.vs, chunk.old, chunk.new
        start = self.start(vs)
        image_old = np.where(old == vs, start, self.end(vs, old))
        image_new = np.where(new == vs, start, self.end(vs, new))
        return Chunk(chunk.with_times(start, image_old, image_new).rows, self._cti())

    def _cti(self) -> int:
        if self.cti in (INF, MIN):
            return self.cti
        return int(self.progress(np.array([self.cti], dtype=np.int64))[0])


def plus(times: Times, length: int) -> Times:
    """`times + length` where INF absorbs; a finite sum that leaves 64 bits is an error, not a wrapped time."""
    if length == INF:
        return np.full_like(times, INF)
    finite = times != INF
    if len(times) and int(times[finite].max(initial=MIN)) > INF - 1 - length:
        raise TimeError(f"a start plus {length} lies past the last chronon 2^63-2; use INF for no end")
    return np.where(finite, times + np.where(finite, length, 0), INF)
