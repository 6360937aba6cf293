"""Databases that are away for a while: the query waits, goes on when they are back, and every batch counts once."""

import logging
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import polars as pl
import psycopg
import pytest
from job.files import JOB, put
from sinks.places import SCHEMA, in_shard

import cedr
from cedr import sinks
from cedr.cli.run.spark import show_trouble
from cedr.columnar.chunk import chunk_of
from cedr.job.job import read
from cedr.job.stores import table_sink
from cedr.sinks.base import SinkError, SinkTable
from cedr.sinks.retry import Retry, UnreachableError
from cedr.temporal import Cti, Insert, QueryError, Row

PASSWORD = "not-for-others"


def rows(batch):
    return chunk_of([Insert(10 * batch, 10 * batch + 5, Row(m=batch, v=1)), Cti(10 * batch)], SCHEMA)


def send(sink, batch):
    sink.commit(batch, [in_shard(sink).prepare(0, batch, rows(batch))])


def batches(sink):
    return sink.read()["m"].to_list()


@pytest.fixture
def postgres_sink(postgres):
    def make(**settings):
        made = sinks.postgres(postgres.dsn, f"{postgres.fresh_schema()}.answers", PASSWORD, **settings)
        made.open(SinkTable("query", SCHEMA))
        return made

    yield make
    postgres.start()


def when_in_trouble(sink, action):
    """Do something as soon as the sink waits for its store."""

    def run():
        while sink.trouble is None:
            time.sleep(0.01)
        action()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_commit_waits_for_a_server_that_is_away(postgres, postgres_sink, caplog):
    sink = postgres_sink()
    send(sink, 0)
    postgres.stop()
    with caplog.at_level(logging.INFO, "cedr"):
        thread = when_in_trouble(sink, postgres.start)
        send(sink, 1)
        thread.join()
    assert sink.trouble is None
    assert batches(sink) == [0, 1]
    assert "the server is not reachable" in caplog.text
    assert "retrying for up to 1m" in caplog.text
    assert PASSWORD not in caplog.text


def test_after_a_while_it_gives_up_and_names_the_remedy(postgres, postgres_sink):
    sink = postgres_sink(retry="200ms")
    send(sink, 0)
    postgres.stop()
    with pytest.raises(
        SinkError, match=r"not reachable: .*; retried for 200ms\. Nothing is lost: restart the query"
    ) as e:
        send(sink, 1)
    assert PASSWORD not in str(e.value)
    assert e.value.__cause__ is None
    postgres.start()
    send(sink, 1)
    assert batches(sink) == [0, 1]


def test_a_start_does_not_wait_for_a_server_that_may_have_another_name(postgres):
    sink = sinks.postgres("host=127.0.0.1 port=1 dbname=x user=me", "answers", PASSWORD)
    with pytest.raises(SinkError, match="the server is not reachable") as e:
        sink.open(SinkTable("query", SCHEMA))
    assert "tried for" not in str(e.value)
    with pytest.raises(SinkError, match="not reachable"):
        sinks.postgres(f"{postgres.dsn} dbname=nothing", "answers").check_place()


@pytest.mark.parametrize("committed", [True, False])
def test_a_connection_that_is_lost_at_the_commit_counts_once(postgres, postgres_sink, monkeypatch, committed):
    """The client cannot know whether the server has committed; the number of the batch does."""
    sink, real, lost = postgres_sink(), psycopg.Connection.commit, []

    def commit(connection):
        if not lost:
            lost.append(connection.info.backend_pid)
            if committed:
                real(connection)
            postgres.execute(f"SELECT pg_terminate_backend({lost[0]})")
            connection.execute(b"SELECT 1")  # finds out
        real(connection)

    send(sink, 0)
    monkeypatch.setattr(psycopg.Connection, "commit", commit)
    send(sink, 1)
    send(sink, 2)
    assert lost
    assert batches(sink) == [0, 1, 2]


def test_other_errors_are_not_tried_again(postgres, postgres_sink):
    sink = postgres_sink()
    send(sink, 0)
    postgres.execute(f"DROP TABLE {sink._place}")
    with pytest.raises(SinkError, match="does not exist") as e:
        send(sink, 1)
    assert "tried for" not in str(e.value)


LOCKS = "import duckdb, sys, time; held = duckdb.connect(sys.argv[1]); print('held', flush=True); time.sleep(1000)"


def test_a_commit_waits_for_a_file_that_another_program_has_open(tmp_path):
    sink = sinks.duckdb(tmp_path / "out.duckdb", "answers")
    sink.open(SinkTable("query", SCHEMA))
    send(sink, 0)
    with subprocess.Popen([sys.executable, "-c", LOCKS, sink.path], stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(SinkError, match=r"is open in another program: .*; retried for 100ms"):
            send(with_table(sinks.duckdb(sink.path, "answers", retry="100ms"), sink), 1)
        thread = when_in_trouble(sink, other.kill)
        send(sink, 1)
        thread.join()
    assert batches(sink) == [0, 1]


def with_table(new, opened):
    new.table, new._types = opened.table, opened._types
    return new


def test_pauses_grow_and_end_when_somebody_stops(monkeypatch):
    retry, pauses = Retry("1h"), []

    def wait(until):
        pauses.append(round(until - time.monotonic(), 2))
        retry.stopped = len(pauses) == 9

    def away():
        raise UnreachableError("away")

    monkeypatch.setattr(retry, "_wait", wait)
    with pytest.raises(SinkError, match="away; retried for 1h"):
        retry(away)
    assert pauses == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0], abs=0.03)
    with pytest.raises(SinkError, match=r"^away$"):
        Retry("0s")(away)
    with pytest.raises(QueryError, match="retry"):
        Retry("soon")


def test_a_job_file_sets_how_long(tmp_path):
    (sink,) = read(put(tmp_path, JOB.replace('parquet = "out/hot"', 'duckdb = "d"\nretry = "2 hours"'))).sinks.values()
    assert table_sink(sink).retry.limit == 7_200_000_000


def write(folder, number):
    folder.mkdir(exist_ok=True)
    pl.DataFrame({"ts": [10 * number], "m": [number], "v": [1]}).write_parquet(folder / f".{number}")
    (folder / f".{number}").rename(folder / f"{number}.parquet")


def test_a_query_goes_on_when_its_database_is_back_and_else_ends_with_our_error(
    spark, postgres, postgres_sink, tmp_path
):
    query = cedr.source("readings", {"m": int, "v": int}, vs="ts", delay=0).where("v = 1")
    write(tmp_path / "in", 0)
    table = f"{postgres.fresh_schema()}.answers"

    def started(retry):
        files = cedr.files(tmp_path / "in", max_files=1)
        sink = sinks.postgres(postgres.dsn, table, PASSWORD, retry=retry)
        return query.start(spark, files, sink=sink, checkpoint=str(tmp_path / "checkpoint"))

    def wait_until(condition):
        while not condition():
            assert running.is_active or condition(), running.spark_query.exception()
            time.sleep(0.02)

    running = started("10m")
    wait_until(lambda: running.table().height == 1)
    postgres.stop()
    write(tmp_path / "in", 1)
    wait_until(lambda: running.trouble is not None)
    postgres.start()
    wait_until(lambda: running.table().height == 2)
    postgres.stop()
    write(tmp_path / "in", 2)
    wait_until(lambda: running.trouble is not None)
    running.stop()  # does not wait for the database
    with pytest.raises(cedr.CedrError, match="not reachable"):
        started("10m")
    postgres.start()
    running = started("100ms")
    wait_until(lambda: running.table().height == 3)
    postgres.stop()
    write(tmp_path / "in", 3)
    with pytest.raises(cedr.CedrError, match=r"^PostgreSQL table .* not reachable: .*; retried for 100ms") as e:
        running.await_termination()
    assert PASSWORD not in str(e.value)
    assert "Traceback" not in str(e.value)
    postgres.start()
    running = started("10m")
    wait_until(lambda: running.table().height == 4)
    running.stop()
    assert running.table()["m"].to_list() == [0, 1, 2, 3]


def test_the_view_shows_what_a_sink_waits_for():
    shown = []
    view = SimpleNamespace(message=lambda event, text, **data: shown.append((event, text, data)))
    running = SimpleNamespace(trouble="away", is_active=True)
    answer = SimpleNamespace(running=running, sink=SimpleNamespace(name="alerts"))
    before = show_trouble(answer, None, view)
    before = show_trouble(answer, before, view)
    running.trouble = None
    show_trouble(answer, before, view)
    assert shown == [
        ("waiting", "alerts: away", {"sink": "alerts"}),
        ("reached", "alerts: the sink is reachable again", {"sink": "alerts"}),
    ]
