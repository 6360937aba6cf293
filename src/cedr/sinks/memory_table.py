"""A table in the driver's memory, for notebooks and tests. It does not outlive the driver."""

from typing import Any

import polars as pl

from cedr.columnar.chunk import Chunk
from cedr.columnar.tally import Tally
from cedr.sinks.base import PreparedChanges, SinkError, SinkTable, TableSink, joined, never_there


class MemorySink(TableSink):
    def __init__(self) -> None:
        self._batch: int | None = None
        self._tally: Tally | None = None

    def __str__(self) -> str:
        return "the table in memory"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_tally": None}

    def open(self, table: SinkTable) -> None:
        if self._tally is None or (self._batch is None and table.later):
            self.table, self._tally = table, Tally(table.columns)
        table.check_same(self.table, str(self))

    def last_batch(self) -> int | None:
        return self._batch

    def prepare(self, shard: int, batch: int, changes: Chunk) -> bytes:
        return PreparedChanges(shard, changes.cti, changes.rows).to_bytes()

    def commit(self, batch: int, prepared: list[bytes]) -> None:
        if self._is_new(batch, self._batch):
            after = self._opened().copy()
            after.add(Chunk(joined(prepared)[0]))
            if self.table.later:
                after.drop_unknown()
            elif (missing := after.unknown()).height:
                raise never_there(missing.row(0, named=True), missing.height, str(self))
            self._batch, self._tally = batch, after

    def read(self) -> pl.DataFrame:
        tally = self._opened()
        return self.table.ordered(tally.table())

    def _opened(self) -> Tally:
        if self._tally is None:
            raise SinkError(f"{self} does not exist yet; a query creates it when it starts")
        return self._tally
