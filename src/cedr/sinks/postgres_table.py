"""A table in PostgreSQL. The changes of a batch go there by COPY, in one transaction with the batch's number.

Every transaction has its own connection: it costs little compared to a batch, and no connection can be stale.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import polars as pl
import psycopg

from cedr.secret import Secret
from cedr.sinks.base import SinkError
from cedr.sinks.conninfo import connection, one_line, parsed, server
from cedr.sinks.postgres_types import as_csv, as_series, selected, type_of
from cedr.sinks.retry import UnreachableError
from cedr.sinks.sql import CHANGE, RETRY, SqlSink, quoted
from cedr.temporal.duration import Duration

Connection = psycopg.Connection[tuple[Any, ...]]
AWAY = ("08", "57P", "53300", "40001", "40P01")
"""Codes of errors that are retried: the connection, a server that starts or stops or has too many connections,
conflicting transactions. Without a server there is no code."""


LIMITS = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""Without these settings it takes hours to notice a dead machine. The user's settings take precedence."""


class PostgresSink(SqlSink):
    def __init__(
        self, dsn: str | Secret, table: str, password: str | Secret | None = None, retry: Duration = RETRY
    ) -> None:
        super().__init__(table, retry)
        self.dsn: Secret | None = connection(dsn, password)
        self.server = server(self.dsn)

    def __str__(self) -> str:
        return f"PostgreSQL table {self._place} at {self.server}"

    @contextmanager
    def _transaction(self) -> Iterator["PostgresTransaction"]:
        try:
            assert self.dsn is not None, "a sink connects in the driver"
            with psycopg.connect(self.dsn.reveal(), cursor_factory=psycopg.RawCursor, **self._limits()) as connection:
                yield PostgresTransaction(connection)
        except (psycopg.OperationalError, psycopg.InterfaceError) as e:
            if e.sqlstate is not None and not e.sqlstate.startswith(AWAY):
                raise SinkError(f"{self}: {one_line(e)}") from None
            raise UnreachableError(f"{self}: the server is not reachable: {one_line(e)}") from None
        except psycopg.Error as e:
            raise SinkError(f"{self}: {one_line(e)}") from None

    def __getstate__(self) -> dict[str, Any]:
        """Shards only prepare batches: the connection string stays in the driver, out of tasks and files."""
        return {**self.__dict__, "dsn": None}

    def _limits(self) -> dict[str, Any]:
        assert self.dsn is not None
        return {name: value for name, value in LIMITS.items() if name not in parsed(self.dsn)}

    def _type(self, name: str, kind: pl.DataType) -> str:
        return type_of(name, kind)

    def _fill(self, db: "PostgresTransaction", rows: pl.DataFrame) -> None:
        names = ", ".join(map(quoted, rows.columns))
        with db.cursor().copy(f"COPY {CHANGE} ({names}) FROM STDIN (FORMAT csv)".encode()) as copy:
            copy.write(as_csv(rows))
        db.execute(f"ANALYZE {CHANGE}")

    def _fetch(self, db: "PostgresTransaction", columns: dict[str, pl.DataType]) -> pl.DataFrame:
        wanted = ", ".join(selected(quoted(name), kind) for name, kind in columns.items())
        rows = db.execute(f"SELECT {wanted} FROM {self._place}")
        values = zip(*rows, strict=True) if rows else [()] * len(columns)
        return pl.DataFrame(
            [as_series(name, found, kind) for (name, kind), found in zip(columns.items(), values, strict=True)]
        )


class PostgresTransaction:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def cursor(self) -> psycopg.Cursor[tuple[Any, ...]]:
        return self.connection.cursor()

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        done = self.cursor().execute(statement.encode(), values or None)
        return done.fetchall() if done.description else []

    def change(self, statement: str) -> int:
        return self.cursor().execute(statement.encode()).rowcount
