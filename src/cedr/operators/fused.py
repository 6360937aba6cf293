"""Several row-by-row operators as one: a single lazy query over the payload, then the times.

Predicates and expressions see the payload, changes of lifetime the times, so the two do not disturb each other and
each is done in one go; polars then reads only the columns that are needed. A row whose end no longer changes under
one lifetime would not change under the next either, so such rows are dropped at the end.

Expressions may be dear, so rows that feedback calls useless are left out before any is evaluated; where lifetimes
change, by a look at the times that rows will have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from cedr.columnar.chunk import TIMES, Chunk, Times
from cedr.columnar.promises import Promises
from cedr.columnar.state import PARTS, fields
from cedr.operators.base import Operator
from cedr.operators.feedback import PassesFeedback, Skipping
from cedr.operators.stateless import AlterLifetimeOperator, ProjectOperator, SelectOperator, file_column


class FusedOperator(PassesFeedback, Operator):
    keeps_files = True

    state = fields(payload=PARTS, lifetimes=PARTS)

    def __init__(self, schema: Mapping[str, pl.DataType], steps: Sequence[Operator]) -> None:
        super().__init__()
        self.payload = [step for step in steps if isinstance(step, SelectOperator | ProjectOperator)]
        self.lifetimes = [step for step in steps if isinstance(step, AlterLifetimeOperator)]
        assert len(self.payload) + len(self.lifetimes) == len(steps)
        self.same_times = not self.lifetimes
        self.schema = dict(steps[-1].schema) if steps else dict(schema)

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        if self.payload and self.lifetimes and self.skipping and self.skipping.may_skip(chunk, self.promised):
            chunk = self._useful_rows(chunk, self.skipping)
        rows = self._payload(chunk.rows) if self.payload else chunk.rows
        changed = replace(chunk, rows=rows, promises=self._promise(chunk.promises))
        return self._lifetimes(changed) if self.lifetimes else changed

    def _promise(self, promises: Promises) -> Promises:
        for step in (*self.payload, *self.lifetimes):
            promises = step.promise(promises)
        return promises

    def _payload(self, rows: pl.DataFrame) -> pl.DataFrame:
        query = rows.lazy()
        for step in self.payload:
            if isinstance(step, SelectOperator):
                query = query.filter(step.predicate)
            else:
                query = query.select(*TIMES, *file_column(rows), *step.expressions)
        return query.collect()

    def _useful_rows(self, chunk: Chunk, skipping: Skipping) -> Chunk:
        useful = skipping.useful(*self._images(chunk), self.cti_out)
        return chunk if useful.all() else chunk.with_rows(chunk.rows.filter(pl.Series(useful)))

    def _images(self, chunk: Chunk) -> tuple[Times, Times, Times]:
        times = chunk.vs, chunk.old, chunk.new
        for step in self.lifetimes:
            times = moved(step, *times)
        return times

    def _lifetimes(self, chunk: Chunk) -> Chunk:
        cti = self.cti
        for step in self.lifetimes:
            step.ctis = [cti]
            cti = step._cti()
        return Chunk(chunk.with_times(*self._images(chunk)).rows, cti, promises=chunk.promises, files=chunk.files)


def moved(step: AlterLifetimeOperator, vs: Times, old: Times, new: Times) -> tuple[Times, Times, Times]:
    """An end at the start means there is nothing, before as after."""
    start = step.start(vs)
    return start, np.where(old == vs, start, step.end(vs, old)), np.where(new == vs, start, step.end(vs, new))
