"""No table: a user function gets the changes of every batch, at least once.

A batch may be repeated, with the same number and the same changes, when the query was stopped or failed before the
batch was committed. A function that writes somewhere should also write the number, and skip batches it already has.
"""

from collections.abc import Callable
from typing import Any

import polars as pl

from cedr.columnar.chunk import Chunk
from cedr.sinks.base import PreparedChanges, SinkError, SinkTable, TableSink, joined
from cedr.sinks.readable import changes
from cedr.temporal.time import MIN

Function = Callable[[int, pl.DataFrame], Any]


class ForeachSink(TableSink):
    keeps = False

    def __init__(self, function: Function) -> None:
        """`function(batch, changes)` with the columns of `Result.changelog()`; it runs in the driver."""
        self.function: Function | None = function
        self._batch: int | None = None

    def __str__(self) -> str:
        return f"foreach({getattr(self.function, '__name__', self.function)})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "function": None}  # it stays in the driver, so it need not be picklable

    def open(self, table: SinkTable) -> None:
        self.table = table

    def last_batch(self) -> int | None:
        return self._batch

    def prepare(self, shard: int, batch: int, changes: Chunk) -> bytes:
        return PreparedChanges(shard, changes.cti, changes.rows).to_bytes()

    def commit(self, batch: int, prepared: list[bytes]) -> None:
        if self._batch is not None and batch <= self._batch:
            return
        assert self.function is not None, "a sink commits in the driver"
        self.function(batch, changes(joined(prepared)[0], MIN, self.table.time_type, self.table.columns))
        self._batch = batch

    def read(self) -> pl.DataFrame:
        raise SinkError(f"{self} has no table; read the output of the function, or use cedr.sinks.memory()")
