"""Operators that look at one row at a time: select, project, union, and lifetimes.

They need no state, because an adjust carries the whole payload and both ends. What the input promises about parts of
it, `promise` turns into what the output promises.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from cedr.columnar.chunk import FILE, TIMES, Chunk, Times
from cedr.columnar.promises import NONE, Promises
from cedr.columnar.state import FLAG, PART, fields
from cedr.operators.base import Operator
from cedr.operators.feedback import PassesFeedback
from cedr.operators.promise_intersection import PromiseIntersection
from cedr.temporal.time import INF, MIN


def file_column(rows: pl.DataFrame) -> tuple[str, ...]:
    """The column that numbers the files of rows, where there is one."""
    return (FILE,) if FILE in rows.columns else ()


class SelectOperator(PassesFeedback, Operator):
    """Rows whose payload satisfies a predicate; a missing truth value counts as false.

    `excluded` is what the predicate never lets through. It is promised once, with the first output.
    """

    keeps_files = True

    state = fields(excluded_passed=FLAG)

    def __init__(self, schema: Mapping[str, pl.DataType], predicate: pl.Expr, excluded: Promises = NONE) -> None:
        super().__init__()
        self.schema, self.predicate, self.excluded = dict(schema), predicate, excluded
        self.excluded_passed = not len(excluded)

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        return replace(chunk, rows=chunk.rows.filter(self.predicate), promises=self.promise(chunk.promises))

    def promise(self, promises: Promises) -> Promises:
        if self.excluded_passed:
            return promises
        self.excluded_passed = True
        return self.excluded.plus(promises)


class ProjectOperator(PassesFeedback, Operator):
    """Payloads replaced by expressions of them. Promises about columns that are passed on stay, under the new names."""

    keeps_files = True

    def __init__(self, schema: Mapping[str, pl.DataType], expressions: list[pl.Expr]) -> None:
        super().__init__()
        self.expressions = expressions
        self.schema = dict(pl.DataFrame(schema=dict(schema)).select(expressions).schema)
        self.names = new_names(expressions, schema)

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        rows = chunk.rows.select(*TIMES, *file_column(chunk.rows), *self.expressions)
        return replace(chunk, rows=rows, promises=self.promise(chunk.promises))

    def promise(self, promises: Promises) -> Promises:
        return promises.renamed(self.names) if len(promises) else promises


def new_names(expressions: list[pl.Expr], schema: Mapping[str, pl.DataType]) -> dict[str, list[str]]:
    """For each column that is passed on unchanged, the names it gets."""
    names: dict[str, list[str]] = {}
    for expression in expressions:
        plain = expression.meta.undo_aliases()
        if plain.meta.is_column():
            names.setdefault(plain.meta.output_name(), []).append(expression.meta.output_name())
        elif expression.meta.is_column_selection():
            for name in pl.DataFrame(schema=dict(schema)).select(expression).columns:
                names.setdefault(name, []).append(name)
    return names


class UnionOperator(PassesFeedback, Operator):
    """All rows of all inputs; the slowest one's progress, also about each part."""

    keeps_files = True

    state = fields(common=PART)

    def __init__(self, schema: Mapping[str, pl.DataType], ports: int = 2) -> None:
        self.ports = ports
        super().__init__()
        self.schema = dict(schema)
        self.common = PromiseIntersection(self.promised)

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        new = [chunk.promises if p == port else NONE for p in range(self.ports)]
        promises = self.common.passed(new, self.ctis, len(chunk))
        rows = chunk.rows.select(*TIMES, *file_column(chunk.rows), *self.schema)
        return Chunk(rows, self.cti, promises=promises, files=chunk.files)


class AlterLifetimeOperator(Operator):
    """Each tuple moves to `[start(vs), end(vs, ve))`.

    `start` must not decrease; `end` must not decrease in `ve`. A removed tuple removes its image, even when the image
    does not depend on the end. `progress(t)` is the largest output CTI that input CTI t allows; by default `start(t)`.
    """

    keeps_files = True

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
        moved = chunk.with_times(start, image_old, image_new)
        return Chunk(moved.rows, self._cti(), promises=self.promise(chunk.promises), files=chunk.files)

    def promise(self, promises: Promises) -> Promises:
        return promises.moved(self.progress) if len(promises) else promises

    def _cti(self) -> int:
        if self.cti in (INF, MIN):
            return self.cti
        return int(self.progress(np.array([self.cti], dtype=np.int64))[0])
