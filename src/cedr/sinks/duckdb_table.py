"""A table in a DuckDB file. The changes of a batch go in as Arrow, in one transaction with the batch's number.

DuckDB lets one process at a time open a file for writing. So the file is opened only when needed, and others
can read the table between two batches.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

from cedr.sinks.base import SinkError, SinkTable
from cedr.sinks.retry import UnreachableError
from cedr.sinks.sql import CHANGE, RETRY, SqlSink, quoted
from cedr.temporal.duration import Duration
from cedr.temporal.errors import QueryError

ARRIVED = "cedr_arrived"


class DuckdbSink(SqlSink):
    opening = 10.0
    """Another program has the file open for a moment."""

    def __init__(self, path: str | os.PathLike[str], table: str, retry: Duration = RETRY) -> None:
        super().__init__(table, retry)
        self.path = os.path.abspath(path)

    def __str__(self) -> str:
        return f"DuckDB table {self._place} in {self.path}"

    def _is_there(self) -> bool:
        return os.path.exists(self.path)

    def open(self, table: SinkTable) -> None:
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
        except OSError as e:
            raise SinkError(f"{self}: its folder cannot be created: {e.strerror}") from None
        super().open(table)

    @contextmanager
    def _transaction(self) -> Iterator["DuckdbTransaction"]:
        try:
            connection = self._connected()
            try:
                connection.begin()
                yield DuckdbTransaction(connection)
                connection.commit()
            finally:
                connection.close()  # rolls back
        except duckdb.Error as e:
            raise SinkError(f"{self}: {' '.join(str(e).split())}") from None

    def _connected(self) -> duckdb.DuckDBPyConnection:
        try:
            return duckdb.connect(self.path)
        except duckdb.IOException as e:
            if "lock" not in str(e):
                raise
            raise UnreachableError(f"{self} is open in another program: {' '.join(str(e).split())}") from None

    def _type(self, name: str, kind: pl.DataType) -> str:
        """DuckDB knows Arrow's types; it is asked for its own type."""
        if kind.is_nested() and has_lengths(kind):
            raise QueryError(
                f"column {name!r} is of type {kind}, but polars cannot read durations inside lists and structs from "
                "DuckDB; use whole numbers instead: dt.total_microseconds()"
            )
        with duckdb.connect() as scratch:
            try:
                scratch.register(ARRIVED, pl.DataFrame(schema={name: kind}))
                described: list[tuple[str, ...]] = scratch.execute(f"DESCRIBE SELECT * FROM {ARRIVED}").fetchall()
            except (duckdb.Error, pl.exceptions.PolarsError, pa.ArrowException) as e:
                raise QueryError(
                    f"column {name!r} is of type {kind}, for which DuckDB has no type ({e}); cast it in the query"
                ) from None
        return "VARCHAR" if kind == pl.Null else described[0][1]

    def _fill(self, db: "DuckdbTransaction", rows: pl.DataFrame) -> None:
        db.connection.register(ARRIVED, rows)
        db.execute(f"INSERT INTO {CHANGE} SELECT * FROM {ARRIVED}")

    def _fetch(self, db: "DuckdbTransaction", columns: dict[str, pl.DataType]) -> pl.DataFrame:
        wanted = [
            f"epoch_us({quoted(name)}) AS {quoted(name)}" if isinstance(kind, pl.Duration) else quoted(name)
            for name, kind in columns.items()
        ]
        found = db.connection.sql(f"SELECT {', '.join(wanted)} FROM {self._place}").pl()
        lengths = {name: kind.time_unit for name, kind in columns.items() if isinstance(kind, pl.Duration)}
        in_micros = pl.Duration("us")
        return found.with_columns(
            pl.col(name).cast(in_micros).dt.cast_time_unit(unit) for name, unit in lengths.items()
        )


def has_lengths(kind: Any) -> bool:
    """Whether a type, or one inside it, is a duration."""
    if isinstance(kind, pl.Struct):
        return any(has_lengths(field.dtype) for field in kind.fields)
    return has_lengths(kind.inner) if isinstance(kind, pl.List | pl.Array) else kind == pl.Duration


class DuckdbTransaction:
    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.connection.execute(statement, list(values)).fetchall()

    def change(self, statement: str) -> int:
        ((count,),) = self.execute(statement)
        return int(count)
