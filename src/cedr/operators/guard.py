"""The cheapest check of a stream: a row that comes below a CTI breaks a promise and is put aside.

It keeps no rows, so it stands only where nothing is adjusted and nothing above keeps state.
"""

from collections.abc import Mapping
from typing import Literal

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk
from cedr.operators.base import Operator, State
from cedr.operators.late import Late, LateStream
from cedr.temporal.time import show


class Guard(Operator):
    def __init__(self, schema: Mapping[str, pl.DataType], late: Literal["collect", "raise"] = "collect") -> None:
        super().__init__()
        self.schema, self.late = dict(schema), late
        self._late = LateStream(schema)
        self._arrived = 0

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        """The promise is the one made before this chunk: its own CTI speaks about what comes after it."""
        broken = chunk.sync < self.cti_out
        first, self._arrived = self._arrived, self._arrived + len(chunk)
        if not broken.any():
            return chunk
        cti = show(self.cti_out)
        promise = f"lies before {cti}, but cti {cti} promised that nothing before it would come"
        rows = chunk.rows.filter(pl.Series(broken))
        late = Late(rows.select(*self._late.schema), first + np.flatnonzero(broken), "below_cti", promise)
        if self.late == "raise":
            raise self._late.error([late])
        self._late.add(late)
        return chunk.with_rows(chunk.rows.filter(pl.Series(~broken)))

    @property
    def late_counts(self) -> dict[str, int]:
        return dict(self._late.counts)

    def take_late(self) -> pl.DataFrame:
        """The rows put aside since the last call."""
        return self._late.take()

    def save(self) -> State:
        return {"late": self._late.save(), "arrived": self._arrived}

    def load(self, state: State) -> None:
        self._late.load(state["late"])
        self._arrived = state["arrived"]
