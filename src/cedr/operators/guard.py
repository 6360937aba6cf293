"""The cheapest check of a stream: a row that comes below a CTI, or is about what a punctuation has settled, breaks a
promise and is put aside.

It keeps no rows, so it is used only where nothing is adjusted and nothing above keeps state.
"""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk
from cedr.columnar.promises import PromiseIndex, Promises
from cedr.columnar.state import NUMBER, PART, TRANSIENT, fields
from cedr.operators.base import Operator
from cedr.operators.feedback import PassesFeedback
from cedr.operators.late import Late, LateStream, Reason, broken_promises
from cedr.temporal.time import show

Mask = np.ndarray[Any, np.dtype[np.bool_]]


class GuardOperator(PassesFeedback, Operator):
    same_times = False
    judges = True
    keeps_files = True

    state = fields(_late=PART, _arrived=NUMBER, _before_chunk=TRANSIENT)

    def __init__(self, schema: Mapping[str, pl.DataType], late: Literal["collect", "raise"] = "collect") -> None:
        super().__init__()
        self.schema, self.late = dict(schema), late
        self._late = LateStream(schema)
        self._arrived = 0
        self._before_chunk = PromiseIndex()
        """What was promised before the chunk at hand."""

    @property
    def passes_feedback(self) -> bool:
        return True

    def process(self, port: int, chunk: Chunk) -> Chunk:
        """Rows are judged by what was promised before their chunk, whose own progress is about what comes after it."""
        self._before_chunk = self.promised[port].copy()
        return super().process(port, chunk)

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        first, self._arrived = self._arrived, self._arrived + len(chunk)
        late = self._late_rows(chunk, first)
        if not late:
            return chunk.without_files()
        if self.late == "raise":
            raise self._late.error(late)
        for found in late:
            self._late.add(found)
        broken = np.zeros(len(chunk), dtype=np.bool_)
        for found in late:
            broken[found.positions - first] = True
        return chunk.with_rows(chunk.rows.filter(pl.Series(~broken))).without_files()

    def _late_rows(self, chunk: Chunk, first: int) -> list[Late]:
        sync = chunk.sync
        below = sync < self.cti_out
        late = []
        if below.any():
            cti = show(self.cti_out)
            promise = f"lies before {cti}, but cti {cti} promised that nothing before it would come"
            late.append(self._as_late(chunk, below, first, "below_cti", promise))
        if self._before_chunk and len(chunk):
            before = self._before_chunk.of(chunk.rows)
            broken = (sync < before) & ~below
            if broken.any():
                promises = broken_promises(
                    self._before_chunk.all(), chunk.rows.filter(pl.Series(broken)), before[broken]
                )
                late.append(self._as_late(chunk, broken, first, "below_punctuation", promises))
        return late

    def _as_late(self, chunk: Chunk, which: Mask, first: int, reason: Reason, promise: str | pl.Series) -> Late:
        rows = chunk.rows.filter(pl.Series(which)).select(*self._late.schema)
        places = np.flatnonzero(which)
        return Late(rows, first + places, reason, promise).in_files(chunk.file_names(places))

    def current_promises(self) -> Promises:
        """All promises about parts of the stream that hold in addition to the CTI."""
        return self.promised[0].all().after(self.cti_out)

    @property
    def late_counts(self) -> dict[str, int]:
        return dict(self._late.counts)

    def take_late(self) -> pl.DataFrame:
        """The rows put aside since the last call."""
        return self._late.take()
