"""Shared by SQL stores: a row per tuple, with the number of copies, and its identity as key.

    vs, ve, payload..., copies bigint, cedr_id uuid primary key

`cedr_batches` contains one row per table: its newest batch, its progress and its definition. Both change in one
transaction. The statements use the SQL that PostgreSQL and DuckDB share; `$1` marks a value.
"""

import json
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import polars as pl

from cedr.columnar.chunk import Chunk
from cedr.columnar.tally import COUNT, net_changes, repeated
from cedr.sinks.base import (
    ID,
    PreparedChanges,
    SinkError,
    SinkTable,
    TableSink,
    joined,
    never_there,
)
from cedr.sinks.identity import tuple_ids
from cedr.sinks.retry import Retry
from cedr.temporal.duration import Duration
from cedr.temporal.errors import QueryError

BATCHES, CHANGE = "cedr_batches", "cedr_change"
RETRY = "60s"


class Database(Protocol):
    """An open transaction."""

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The result rows of a statement, if any."""

    def change(self, statement: str) -> int:
        """The number of rows that a statement has changed."""


class SqlSink(TableSink):
    opening = 0.0
    """Seconds to wait for the store at the start, when its name may be wrong; in a running query it is `retry`."""

    def __init__(self, table: str, retry: Duration = RETRY) -> None:
        """`table` is a name, or `schema.name`; `retry` is how long to retry when the store cannot be reached."""
        self.retry = Retry(retry)
        self.schema, _, self.name = table.rpartition(".")
        if not self.name:
            raise SinkError(f"{table!r} is not a table name; use a name such as 'answers' or 'reports.answers'")

    # --- what each store adds --------------------------------------------------------------------------------------

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[Any]:
        """A context that gives a `Database`; leaving it commits, an error in it rolls back. It raises
        `UnreachableError` when the store is unreachable, even if it may have committed."""

    @abstractmethod
    def _type(self, name: str, kind: pl.DataType) -> str:
        """The store's type for a column; raises if there is none."""

    @abstractmethod
    def _fill(self, db: Any, rows: pl.DataFrame) -> None:
        """Put these rows into the temporary table `cedr_change`."""

    @abstractmethod
    def _fetch(self, db: Any, columns: dict[str, pl.DataType]) -> pl.DataFrame:
        """These columns of all rows."""

    def _is_there(self) -> bool:
        """Whether there is a database that can be queried without creating one."""
        return True

    # --- the sink --------------------------------------------------------------------------------------------------

    def check(self, table: SinkTable) -> None:
        self._column_types(table)

    @property
    def trouble(self) -> str | None:
        return self.retry.trouble

    def close(self) -> None:
        """Stop waiting for the store."""
        self.retry.stopped = True

    def check_place(self, table: SinkTable | None = None) -> None:
        self.retry(lambda: self._check_place(table), self.opening)

    def _check_place(self, table: SinkTable | None) -> None:
        if self._is_there():
            with self._transaction() as db:
                if table is None:
                    self._columns(db)  # any query will do
                else:
                    self._check_same(db, table, self._column_types(table))

    def open(self, table: SinkTable) -> None:
        self.retry.stopped = False
        columns = self._column_types(table)
        self.table, self._types = self.retry(lambda: self._open(table, columns), self.opening), columns

    def _open(self, table: SinkTable, columns: dict[str, str]) -> SinkTable:
        with self._transaction() as db:
            db.execute(
                f"CREATE TABLE IF NOT EXISTS {self._qualified(BATCHES)} (table_name text PRIMARY KEY, batch bigint, "
                "cti bigint, definition text NOT NULL)"
            )
            if not self._check_same(db, table, columns):
                copies, key = quoted(table.public[COUNT]), quoted(table.public[ID])
                rules = f"CHECK ({copies} > 0), PRIMARY KEY ({key})"
                db.execute(f"CREATE TABLE {self._place} ({declared(columns)}, {rules})")
                db.execute(
                    f"INSERT INTO {self._qualified(BATCHES)} (table_name, definition) VALUES ($1, $2)",
                    [self.name, str(table)],
                )
            elif table.later:
                db.execute(
                    f"UPDATE {self._qualified(BATCHES)} SET definition = $1 WHERE table_name = $2 AND batch IS NULL",
                    [str(table), self.name],
                )
            stored = self._stored(db)
            return table.begun_as(stored) if stored else table

    def _check_same(self, db: Database, table: SinkTable, columns: dict[str, str]) -> bool:
        """Whether the table already exists; raises if it belongs to something else."""
        stored, there = self._stored(db), self._columns(db)
        if stored is None and there:
            raise SinkError(f"{self} was not created by cedr; use the name of a table that does not exist yet")
        if stored is not None:
            table.check_same(stored, f"{self}")
            self._check_complete(there, columns)
        return stored is not None

    def last_batch(self) -> int | None:
        return self.retry(self._last_batch)

    def _last_batch(self) -> int | None:
        with self._transaction() as db:
            return self._last(db)

    def prepare(self, shard: int, batch: int, changes: Chunk) -> bytes:
        net = net_changes(changes.rows, self.table.columns)
        return PreparedChanges(shard, changes.cti, net.with_columns(tuple_ids(net.drop(COUNT)).alias(ID))).to_bytes()

    def commit(self, batch: int, prepared: list[bytes]) -> None:
        self.retry(lambda: self._commit(batch, prepared))

    def _commit(self, batch: int, prepared: list[bytes]) -> None:
        with self._transaction() as db:
            if self._is_new(batch, self._last_locked(db)):
                changes, cti = joined(prepared)
                net = one_per_tuple(changes)
                if net.height:
                    self._apply(db, self.table.shown(net))
                db.execute(
                    f"UPDATE {self._qualified(BATCHES)} SET batch = $1, cti = greatest(cti, $2) WHERE table_name = $3",
                    [batch, cti, self.name],
                )

    def read(self) -> pl.DataFrame:
        return self.retry(self._read, self.opening)

    def _read(self) -> pl.DataFrame:
        with self._transaction() as db:
            if (stored := self._stored(db)) is None:
                raise SinkError(f"{self} does not exist yet; a query creates it when it starts")
            schema = dict(stored.shown(pl.DataFrame(schema=stored.inner_schema)).schema)
            rows = self._fetch(db, schema)
        return stored.ordered(repeated(stored.inner(rows)))

    # --- statements ------------------------------------------------------------------------------------------------

    def _apply(self, db: Database, net: pl.DataFrame) -> None:
        """Apply a net change, which contains each tuple once."""
        table, copies, key = self._place, quoted(self.table.public[COUNT]), quoted(self.table.public[ID])
        names = ", ".join(map(quoted, net.columns))
        # Declared, not made AS SELECT from the table: DuckDB 2.0.0 assumes in that case that it stays empty when it
        # gets a whole row group (122,880 rows) in the same transaction.
        db.execute(f"CREATE TEMPORARY TABLE {CHANGE} ({declared({name: self._types[name] for name in net.columns})})")
        self._fill(db, net)
        if self.table.later:
            net = net.head(net.height - self._forget_missing(db))
        missing = db.execute(
            f"SELECT c.* FROM {CHANGE} c LEFT JOIN {table} t ON t.{key} = c.{key} "
            f"WHERE c.{copies} < 0 AND coalesce(t.{copies}, 0) + c.{copies} < 0"
        )
        if missing:
            raise never_there(dict(zip(net.columns, missing[0], strict=True)), len(missing), str(self))
        changed = [
            db.change(f"DELETE FROM {table} t USING {CHANGE} c WHERE t.{key} = c.{key} AND t.{copies} = -c.{copies}"),
            db.change(
                f"UPDATE {table} t SET {copies} = t.{copies} + c.{copies} FROM {CHANGE} c "
                f"WHERE t.{key} = c.{key} AND c.{copies} < 0"
            ),
            db.change(
                f"INSERT INTO {table} AS t ({names}) SELECT {names} FROM {CHANGE} c WHERE c.{copies} > 0 "
                f"ON CONFLICT ({key}) DO UPDATE SET {copies} = t.{copies} + excluded.{copies}"
            ),
        ]
        if sum(changed) != net.height:
            deleted, updated, inserted = changed
            raise SinkError(
                f"{self}: {net.height} tuples were to change, but the database deleted {deleted}, updated {updated} "
                f"and inserted {inserted}; the batch was rolled back. The database or a trigger in it is the cause"
            )
        db.execute(f"DROP TABLE {CHANGE}")

    def _forget_missing(self, db: Database) -> int:
        """Of what is removed, leave what is not there as it is; returns the number of such tuples that are not there at
        all."""
        table, copies, key = self._place, quoted(self.table.public[COUNT]), quoted(self.table.public[ID])
        db.execute(
            f"UPDATE {CHANGE} c SET {copies} = -t.{copies} FROM {table} t "
            f"WHERE t.{key} = c.{key} AND t.{copies} + c.{copies} < 0"
        )
        there = f"SELECT 1 FROM {table} t WHERE t.{key} = c.{key}"
        return db.change(f"DELETE FROM {CHANGE} c WHERE c.{copies} < 0 AND NOT EXISTS ({there})")

    def _last(self, db: Database) -> int | None:
        found = db.execute(f"SELECT batch FROM {self._qualified(BATCHES)} WHERE table_name = $1", [self.name])
        return self._the_batch(found)

    def _last_locked(self, db: Database) -> int | None:
        """The newest batch, locked until the end of the transaction."""
        batches = self._qualified(BATCHES)
        return self._the_batch(
            db.execute(f"UPDATE {batches} SET cti = cti WHERE table_name = $1 RETURNING batch", [self.name])
        )

    def _the_batch(self, found: list[tuple[Any, ...]]) -> int | None:
        if not found:
            raise SinkError(f"{self} has lost its row in {BATCHES}, which records its batches")
        batch: int | None = found[0][0]
        return batch

    def _stored(self, db: Database) -> SinkTable | None:
        """The definition of the table; None if cedr has not created it."""
        if not self._columns(db, BATCHES):
            return None
        found = db.execute(f"SELECT definition FROM {self._qualified(BATCHES)} WHERE table_name = $1", [self.name])
        return SinkTable.from_json(json.loads(found[0][0])) if found else None

    def _columns(self, db: Database, name: str | None = None) -> set[str]:
        """The columns of a table; none if it does not exist."""
        schema, values = ("$2", [self.schema]) if self.schema else ("current_schema()", [])
        found = db.execute(
            f"SELECT column_name FROM information_schema.columns WHERE table_name = $1 AND table_schema = {schema}",
            [name or self.name, *values],
        )
        return {row[0] for row in found}

    def _check_complete(self, there: set[str], columns: dict[str, str]) -> None:
        if not there:
            raise SinkError(
                f"{self} was dropped, but {BATCHES} still has its row; delete the row and the checkpoint to start again"
            )
        if lost := [name for name in columns if name not in there]:
            raise SinkError(f"{self} no longer has the column {lost[0]!r}; cedr requires every column it has created")

    def _column_types(self, table: SinkTable) -> dict[str, str]:
        """All columns of the stored table with the store's types."""
        shown = table.shown_schema
        if fine := [name for name, kind in shown.items() if finer_than_microseconds(kind)]:
            raise QueryError(
                f"column {fine[0]!r} is of type {shown[fine[0]]}; {self} has microseconds: "
                f'use pl.col("{fine[0]}").dt.cast_time_unit("us") in the query'
            )
        types = {name: self._type(name, kind) for name, kind in shown.items()}
        return {**types, table.public[COUNT]: "bigint", table.public[ID]: "uuid"}

    @property
    def _place(self) -> str:
        return self._qualified(self.name)

    def _qualified(self, name: str) -> str:
        return f"{quoted(self.schema)}.{quoted(name)}" if self.schema else quoted(name)


def one_per_tuple(changes: pl.DataFrame) -> pl.DataFrame:
    """Shards may emit equal tuples; their counts are added."""
    if not changes[ID].is_duplicated().any():
        return changes
    sums = changes.group_by(ID, maintain_order=True).agg(pl.exclude(COUNT).first(), pl.col(COUNT).sum())
    return sums.filter(pl.col(COUNT) != 0).select(changes.columns)


def finer_than_microseconds(kind: Any) -> bool:
    """Whether a type, or one inside it, counts nanoseconds."""
    if isinstance(kind, pl.Struct):
        return any(finer_than_microseconds(field.dtype) for field in kind.fields)
    if isinstance(kind, pl.List | pl.Array):
        return finer_than_microseconds(kind.inner)
    return isinstance(kind, pl.Datetime | pl.Duration) and kind.time_unit == "ns"


def declared(columns: dict[str, str]) -> str:
    return ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())


def quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
