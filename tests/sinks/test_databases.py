"""PostgreSQL and DuckDB: the tables others see, and the errors when something is in the way."""

import socket
import subprocess
import sys
import threading

import duckdb
import pytest
from sinks.places import SCHEMA, opened, send

from cedr import sinks
from cedr.columnar.chunk import chunk_of
from cedr.sinks.base import SinkError, SinkTable
from cedr.temporal import INF, CedrError, Cti, Insert, Row

A, B = Row(m=1, v=1), Row(m=2, v=None)
TABLE = SinkTable("q", SCHEMA)


def chunk(*elements):
    return [chunk_of(elements, SCHEMA)]


def test_the_table_others_see_in_postgres(postgres, postgres_place):
    here = postgres_place()
    sink = opened(here, TABLE)
    send(sink, 0, chunk(Insert(1, 5, A), Insert(1, 5, A), Insert(2, INF, B), Cti(3)))
    rows = postgres.execute(f"SELECT vs, ve, m, v, copies FROM {here.schema}.answers ORDER BY vs")
    assert rows == [(1, 5, 1, 1, 2), (2, None, 2, None, 1)]
    assert postgres.execute(f"SELECT table_name, batch, cti FROM {here.schema}.cedr_batches") == [("answers", 0, 3)]


def test_the_table_others_see_in_duckdb(tmp_path):
    sink = sinks.duckdb(tmp_path / "file.duckdb", "answers")
    sink.open(TABLE)
    send(sink, 0, chunk(Insert(1, 5, A), Insert(1, 5, A), Insert(2, INF, B), Cti(3)))
    with duckdb.connect(str(tmp_path / "file.duckdb"), read_only=True) as reader:
        rows = reader.execute("SELECT vs, ve, m, v, copies FROM answers ORDER BY vs").fetchall()
        assert rows == [(1, 5, 1, 1, 2), (2, None, 2, None, 1)]
        assert reader.execute("SELECT table_name, batch, cti FROM cedr_batches").fetchall() == [("answers", 0, 3)]


def test_the_progress_is_the_slowest_shards_and_never_falls(postgres, postgres_place):
    here = postgres_place()
    sink = opened(here, SinkTable("q", SCHEMA, shards=2))
    ctis = []
    for batch, (one, other) in enumerate([(7, 4), (8, 9), (3, 3)]):
        send(sink, batch, [chunk_of([Cti(one)], SCHEMA), chunk_of([Cti(other)], SCHEMA)])
        ctis += postgres.execute(f"SELECT cti FROM {here.schema}.cedr_batches")
    assert ctis == [(4,), (8,), (8,)]


def test_two_drivers_at_once_add_a_batch_once(postgres_place):
    here = postgres_place()
    drivers = [opened(here, TABLE) for _ in range(4)]
    both = threading.Barrier(len(drivers))

    def drive(sink):
        both.wait()
        send(sink, 0, chunk(Insert(1, 5, A)))

    threads = [threading.Thread(target=drive, args=(sink,)) for sink in drivers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert here.sink().read().rows() == [(1, 5, 1, 1)]


def test_several_queries_share_a_schema(postgres, postgres_place):
    here = postgres_place()
    for name in ("one", "two"):
        sink = sinks.postgres(postgres.dsn, f"{here.schema}.{name}")
        sink.open(SinkTable(name, SCHEMA))
        send(sink, 0, chunk(Insert(1, 5, A)))
    assert postgres.execute(f"SELECT count(*) FROM {here.schema}.cedr_batches") == [(2,)]


def test_a_table_without_schema(postgres):
    sink = sinks.postgres(postgres.dsn, 'odd "name"')
    sink.open(TABLE)
    send(sink, 0, chunk(Insert(1, 5, A)))
    assert sink.read().rows() == [(1, 5, 1, 1)]
    sink.open(TABLE)


def test_a_server_that_is_not_there():
    with socket.socket() as taken:  # nobody listens there, and nobody else can meanwhile
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        sink = sinks.postgres(f"host=127.0.0.1 port={port} user=me password=secret dbname=x", "answers")
        with pytest.raises(
            SinkError, match=r"host=127.0.0.1 port=\d+ dbname=x user=me: the server is not reachable"
        ) as error:
            sink.open(TABLE)
    assert "secret" not in str(error.value)


def test_a_connection_string_nobody_can_read():
    with pytest.raises(SinkError, match="the connection string cannot be read"):
        sinks.postgres("what is this", "answers").open(TABLE)


def test_a_table_needs_a_name(tmp_path):
    with pytest.raises(SinkError, match="is not a table name"):
        sinks.duckdb(tmp_path / "x", "")


def statement(here, text: str) -> None:
    """As somebody else would change the table."""
    if hasattr(here, "server"):
        here.server.execute(text.replace("answers", f"{here.schema}.answers").replace("cedr_", f"{here.schema}.cedr_"))
    else:
        with duckdb.connect(here.sink().path) as other:
            other.execute(text)


def test_a_table_that_is_not_ours(sql_place):
    here = sql_place()
    statement(here, "CREATE TABLE answers (a int)")
    with pytest.raises(SinkError, match="was not created by cedr"):
        opened(here, TABLE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("DROP TABLE answers", "was dropped, but cedr_batches still has its row"),
        ("ALTER TABLE answers RENAME COLUMN m TO k", "no longer has the column 'm'"),
    ],
)
def test_a_table_that_was_changed(sql_place, change, message):
    here = sql_place()
    opened(here, TABLE)
    statement(here, change)
    with pytest.raises(SinkError, match=message):
        opened(here, TABLE)


def test_a_lost_row_of_batches(sql_place):
    here = sql_place()
    sink = opened(here, TABLE)
    statement(here, "DELETE FROM cedr_batches")
    with pytest.raises(SinkError, match="has lost its row in cedr_batches"):
        send(sink, 0, chunk(Insert(1, 5, A)))
    with pytest.raises(SinkError, match="has lost its row in cedr_batches"):
        sink.last_batch()


def test_a_database_that_drops_rows_is_found_out(postgres, postgres_place):
    """A trigger swallows every other insert; without a look at the counts nobody would know."""
    here = postgres_place()
    sink = opened(here, TABLE)
    postgres.execute(
        f"CREATE FUNCTION {here.schema}.swallow() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN IF NEW.m = 2 THEN RETURN NULL; END IF; RETURN NEW; END'"
    )
    postgres.execute(
        f"CREATE TRIGGER swallow BEFORE INSERT ON {here.schema}.answers "
        f"FOR EACH ROW EXECUTE FUNCTION {here.schema}.swallow()"
    )
    with pytest.raises(
        SinkError, match="2 tuples were to change, but the database deleted 0, updated 0 and inserted 1"
    ):
        send(sink, 0, chunk(Insert(1, 5, A), Insert(1, 5, B)))
    assert sink.last_batch() is None
    assert sink.read().height == 0


def test_columns_of_the_users_own_do_not_disturb(sql_place):
    here = sql_place()
    sink = opened(here, TABLE)
    statement(here, "ALTER TABLE answers ADD COLUMN note text")
    send(opened(here, TABLE), 0, chunk(Insert(1, 5, A)))
    assert sink.read().rows() == [(1, 5, 1, 1)]


HOLD = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('held', flush=True); sys.stdin.read()"


def test_a_file_that_another_program_has_open(tmp_path):
    sink = sinks.duckdb(tmp_path / "file.duckdb", "answers")
    sink.open(TABLE)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, sink.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline()
        sink.patience = 0.1
        with pytest.raises(SinkError, match="lock on file"):
            send(sink, 0, chunk(Insert(1, 5, A)))
        sink.patience = 600
        threading.Timer(0.3, other.stdin.close).start()
        send(sink, 0, chunk(Insert(1, 5, A)))  # waits until the other lets go
    assert sink.read().rows() == [(1, 5, 1, 1)]


@pytest.mark.parametrize(("module", "make"), [("psycopg", sinks.postgres), ("duckdb", sinks.duckdb)])
def test_a_package_that_is_not_installed_is_named(monkeypatch, module, make):
    extra = make.__name__
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, f"cedr.sinks.{extra}_table", raising=False)
    with pytest.raises(
        CedrError, match=rf"cedr.sinks.{extra} needs the package {module}: pip install 'cedr\[{extra}\]'"
    ):
        make("x", "answers")


def test_the_public_module_is_light():
    code = "import sys, cedr.sinks; print([m for m in ('polars', 'duckdb', 'psycopg', 'pyspark') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
