"""R2: no adjusts, starts never fall; events with equal starts may come in any order, and more than once.

The events emitted at the highest start are kept with how often each input has sent them. An input that has sent one
more often than the output has sends something new. The paper's R2 requires payloads that differ; counting relaxes it.
"""

from collections.abc import Mapping

import numpy as np
import polars as pl

from cedr.columnar.chunk import NEW, Chunk, Times
from cedr.columnar.index import RowIndex
from cedr.columnar.state import PART, array, counted, fields
from cedr.kernels.merge_counts import more_often
from cedr.operators.merge.base import InOrder
from cedr.plan.merge_policy import Policy


class R2(InOrder):
    algorithm = "R2"

    state = fields(events=PART, counts=counted(array(ndim=2, in_place=True)))

    def __init__(self, schema: Mapping[str, pl.DataType], ports: int = 2, policy: Policy | str = "first") -> None:
        super().__init__(schema, ports, policy)
        self._clear()

    def _clear(self) -> None:
        self.events = RowIndex({NEW: pl.Int64(), **self.schema})
        """The different events at the highest start."""
        self.counts = np.zeros((0, self.ports + 1), dtype=np.int64)
        """How often each input has sent them, and in the last column the output."""

    def take_in_order(self, port: int, chunk: Chunk, vs: Times) -> None:
        ties = int(np.searchsorted(vs, self.highest, side="right")) if vs[0] == self.highest else 0
        if ties:
            new = self._new(port, chunk.rows[:ties])
            if not new.all():
                keep = np.ones(len(vs), dtype=np.bool_)
                keep[:ties] = new
                self.emit(Chunk(chunk.rows.filter(pl.Series(keep))))
            else:
                self.emit(chunk)
        else:
            self.emit(chunk)
        if ties < len(vs):
            self.highest = int(vs[-1])
            self._clear()
            self._new(port, chunk.rows[int(np.searchsorted(vs, self.highest, side="left")) :])

    def _new(self, port: int, rows: pl.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which of these rows, all at the highest start, the input has sent more often than the output."""
        numbers = self.events.ids(rows)
        grown = np.zeros((len(self.events) - len(self.counts), self.ports + 1), dtype=np.int64)
        self.counts = np.concatenate((self.counts, grown))
        return more_often(numbers, self.counts, port)

    def forget(self, port: int) -> None:
        super().forget(port)
        self.counts[:, port] = 0
