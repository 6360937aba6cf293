"""A table in a DuckDB file. The changes of a batch go in as Arrow, in one transaction with the batch's number.

DuckDB lets one process at a time open a file for writing. So the file is open only while something is done with it, and
others can read the table between two batches.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

from cedr.runtime.spark.sinks.base import SinkError, Table
from cedr.runtime.spark.sinks.sql import CHANGE, SqlSink, quoted
from cedr.temporal.errors import QueryError

ARRIVED = "cedr_arrived"


class DuckdbSink(SqlSink):
    def __init__(self, path: str | os.PathLike[str], table: str, patience: float = 10.0) -> None:
        """`patience`: for so many seconds we wait for another program that has the file open."""
        super().__init__(table)
        self.path = os.path.abspath(path)
        self.patience = patience

    def __str__(self) -> str:
        return f"DuckDB table {self._place} in {self.path}"

    def _is_there(self) -> bool:
        return os.path.exists(self.path)

    def open(self, table: Table) -> None:
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
        except OSError as e:
            raise SinkError(f"{self}: its folder cannot be made: {e.strerror}") from None
        super().open(table)

    @contextmanager
    def _transaction(self) -> Iterator["Transaction"]:
        try:
            connection = self._connected()
            try:
                connection.begin()
                yield Transaction(connection)
                connection.commit()
            finally:
                connection.close()  # takes back what is not committed
        except duckdb.Error as e:
            raise SinkError(f"{self}: {' '.join(str(e).split())}") from None

    def _connected(self) -> duckdb.DuckDBPyConnection:
        until = time.monotonic() + self.patience
        while True:
            try:
                return duckdb.connect(self.path)
            except duckdb.IOException as e:
                if "lock" not in str(e) or time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def _type(self, name: str, kind: pl.DataType) -> str:
        """DuckDB knows Arrow's types; it says itself what it makes of one."""
        with duckdb.connect() as scratch:
            try:
                scratch.register(ARRIVED, pl.DataFrame(schema={name: kind}))
                described: list[tuple[str, ...]] = scratch.execute(f"DESCRIBE SELECT * FROM {ARRIVED}").fetchall()
            except (duckdb.Error, pl.exceptions.PolarsError, pa.ArrowException) as e:
                raise QueryError(
                    f"column {name!r} is of type {kind}, for which DuckDB has no type ({e}); cast it in the query"
                ) from None
        return "VARCHAR" if kind == pl.Null else described[0][1]

    def _fill(self, db: "Transaction", rows: pl.DataFrame) -> None:
        db.connection.register(ARRIVED, rows)
        db.execute(f"INSERT INTO {CHANGE} SELECT * FROM {ARRIVED}")

    def _fetch(self, db: "Transaction", columns: dict[str, pl.DataType]) -> pl.DataFrame:
        wanted = [
            f"epoch_us({quoted(name)}) AS {quoted(name)}" if isinstance(kind, pl.Duration) else quoted(name)
            for name, kind in columns.items()
        ]
        return db.connection.sql(f"SELECT {', '.join(wanted)} FROM {self._place}").pl()


class Transaction:
    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.connection.execute(statement, list(values)).fetchall()

    def change(self, statement: str) -> int:
        ((count,),) = self.execute(statement)
        return int(count)
