"""Places: every event with its position among the events of its key. See `cedr.plan.nodes.places`.

A late event goes between two others; the later one is then emitted again, with another place before its own.
"""

from collections.abc import Mapping

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, assemble
from cedr.columnar.index import RowIndex
from cedr.columnar.state import PART, array, counted, fields
from cedr.kernels.automata import numbering as nu
from cedr.kernels.automata import places as pl_
from cedr.kernels.sorting import argsort_by_group_and_time
from cedr.operators.base import Operator
from cedr.plan.automata.compiled import ADDED
from cedr.temporal.time import INF

Rows = np.ndarray


class PlacesOperator(Operator):
    state = fields(groups=PART, contents=PART, rows=counted(array(ndim=2, in_place=True)))

    def __init__(self, schema: Mapping[str, pl.DataType], by: tuple[str, ...], order: str | None, linked: bool) -> None:
        super().__init__()
        self.schema = {**schema, **ADDED}
        self.by, self.order, self.linked = by, order, linked
        self.contents = RowIndex(dict(schema))
        self.groups = RowIndex({name: schema[name] for name in by})
        self.rows: Rows = np.empty((0, nu.WIDTH), dtype=np.int64)

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        if not len(chunk):
            changes = np.empty((0, 4), dtype=np.int64)
        else:
            self.rows = nu.worked_in(self.rows, self._changes(chunk))
            changes = nu.unemitted(self.rows, self.linked)
        row, old, new, after = changes.T
        mine = self.rows[row]
        added = (mine[:, pl_.AT], after, mine[:, nu.RANK])
        columns = [pl.Series(name, column) for name, column in zip(ADDED, added, strict=True)]
        payload = self.contents.take(mine[:, pl_.CONTENT]).hstack(columns)
        out = assemble(mine[:, pl_.VS], old, new, payload, self.cti)
        self._forget(chunk)
        return out

    def _changes(self, chunk: Chunk) -> Rows:
        rows = chunk.rows
        needed = [*self.by, *([self.order] if self.order else [])]
        if needed and any(rows[name].null_count() for name in needed):
            rows = rows.drop_nulls(needed)
            chunk = chunk.with_rows(rows)
        g, content, vs = self.groups.ids(rows), self.contents.ids(rows), chunk.vs
        at = vs if self.order is None else rows[self.order].cast(pl.Int64).to_numpy()
        changes = np.column_stack((g, at, vs, chunk.old, chunk.new, content))
        return changes[argsort_by_group_and_time(g, at)]

    def _forget(self, chunk: Chunk) -> None:
        """Forget what is gone, and what has ended; but an event that later ones follow is still needed."""
        rows = self.rows
        if self.linked:
            keep = pl_.still_needed(rows, np.array([self.cti]))
        else:
            keep = (rows[:, pl_.VE] >= self.cti) & (self.cti != INF)
        keep &= rows[:, pl_.VE] > rows[:, pl_.VS]
        if keep.all():
            return
        self.rows = rows[keep]
        for index, column in ((self.contents, pl_.CONTENT), (self.groups, pl_.G)):
            numbers = index.compact(self.rows[:, column])
            if numbers is not None:
                self.rows[:, column] = numbers[self.rows[:, column]]
