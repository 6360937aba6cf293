"""A query on Spark from the user's side: sources, restarts, refusals, late rows, metrics."""

import socket
import sys
import threading
import time

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import cedr
from cedr.api import source_of_keys
from cedr.runtime.spark.shard.inspection import Inspection
from cedr.temporal import QueryError, TimeError
from cedr.temporal.time import INF

ALL_THERE = {"availableNow": True}


def readings(**options):
    return source_of_keys("readings", {"k": str, "v": int}, vs="ts", **{"delay": 5, **options})


def totals(**options):
    return readings(**options).tumbling(10).group_by("k").agg(n=cedr.count(), v=cedr.sum("v"))


def table(*rows) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"ts": pl.Int64, "k": pl.String, "v": pl.Int64}, orient="row")


class Run:
    """A query over a folder of Parquet files, with its checkpoint."""

    def __init__(self, spark, folder) -> None:
        self.spark, self.folder = spark, folder
        (folder / "in").mkdir()
        self.written = 0

    def write(self, frame: pl.DataFrame) -> None:
        """Under its name only when it is complete: a query may be looking."""
        path = self.folder / "in" / f"{self.written:04d}.parquet"
        frame.write_parquet(path.with_suffix(".tmp"))
        path.with_suffix(".tmp").rename(path)
        self.written += 1

    def start(self, query, sink, **options):
        files = cedr.files(self.folder / "in", "parquet", max_files=1)
        settings = {"checkpoint": str(self.folder / "checkpoint"), "trigger": ALL_THERE, **options}
        return query.start(self.spark, files, sink=sink, **settings)

    def all(self, query, sink, **options):
        running = self.start(query, sink, **options)
        running.await_termination()
        return running


@pytest.fixture
def run(spark, tmp_path):
    return Run(spark, tmp_path)


def test_a_restart_goes_on_where_the_query_stopped(run):
    first, second = table((1, "a", 1), (12, "a", 2)), table((3, "a", 4), (25, "b", 8))
    run.write(first)
    run.all(totals(delay=20), cedr.sinks.parquet(run.folder / "out"))
    run.write(second)
    running = run.all(totals(delay=20), cedr.sinks.parquet(run.folder / "out"))
    run.write(table((40, "a", 1)))
    running = run.all(totals(delay=20), cedr.sinks.parquet(run.folder / "out"))
    expected = totals(delay=20).run(pl.concat([first, second, table((40, "a", 1))]), close=False, chunk_size=2).table()
    assert_frame_equal(running.table(), expected)
    assert running.table().rows() == [(0, 10, "a", 2, 5), (10, 20, "a", 1, 2), (20, 30, "b", 1, 8)]


def test_the_state_in_a_checkpoint_is_listed_and_verified(run):
    """A query that ends takes a snapshot. With logs only, as after a crash, the metrics name the operators."""
    for n in range(3):
        run.write(table((10 * n, "a", 1), (10 * n + 5, "b", 2)))
    run.all(totals(), cedr.sinks.memory())
    found = Inspection(str(run.folder / "checkpoint"))
    assert found.damaged == []
    assert {(s.batch, s.snapshot) for s in found.shards} == {(2, 2)}
    for snapshot in (run.folder / "checkpoint").rglob("snapshot-*"):
        snapshot.unlink()
    found = Inspection(str(run.folder / "checkpoint"))
    assert found.damaged == []
    assert {(s.batch, s.snapshot) for s in found.shards} == {(2, None)}
    assert any(o["operator"] == "Aggregate" and o["rows"] for s in found.shards for o in s.operators)
    log = sorted((run.folder / "checkpoint").rglob("log-*"))[-1]
    log.write_bytes(log.read_bytes()[:-1])
    (text,) = Inspection(str(run.folder / "checkpoint")).damaged
    assert str(log) in text


def test_another_query_may_not_use_the_checkpoint(run):
    run.write(table((1, "a", 1)))
    run.all(totals(), cedr.sinks.memory())
    other = readings().tumbling(20).group_by("k").agg(n=cedr.count(), v=cedr.sum("v"))
    with pytest.raises(QueryError, match=r"belongs to another query(.|\n)*Tumbling 10(.|\n)*Tumbling 20"):
        run.start(other, cedr.sinks.memory())


def test_the_number_of_shards_stays_that_of_the_last_start(run):
    run.write(table((1, "a", 1)))
    sink = cedr.sinks.memory()
    run.all(totals(), sink, shards=3)
    assert run.all(totals(), sink).job.shards == 3
    assert run.all(totals(), sink, shards=1).job.shards == 1
    assert run.all(totals(), sink).job.shards == 1


def test_a_table_and_a_checkpoint_of_different_runs_are_refused(run):
    run.write(table((1, "a", 1)))
    run.write(table((2, "a", 1)))
    run.all(totals(), cedr.sinks.parquet(run.folder / "out"))
    with pytest.raises(cedr.CedrError, match="has no batch yet, but the checkpoint has reached batch 1"):
        run.start(totals(), cedr.sinks.parquet(run.folder / "other"))
    with pytest.raises(cedr.CedrError, match="out belongs to another query or checkpoint"):
        run.start(totals(), cedr.sinks.parquet(run.folder / "out"), checkpoint=str(run.folder / "new"))


def test_closing_emits_every_result(run):
    run.write(table((1, "a", 1), (2, "b", 2)))
    running = run.all(totals(), cedr.sinks.memory(), close=True)
    assert running.table().rows() == [(0, 10, "a", 1, 1), (0, 10, "b", 1, 2)]
    with pytest.raises(QueryError, match="availableNow"):
        run.start(totals(), cedr.sinks.memory(), close=True, trigger={"processingTime": "1 second"})


def test_files_close_in_one_run_and_dataframes_in_a_second_one(run):
    rows = table((1, "a", 1), (12, "a", 2), (3, "b", 4))
    run.write(rows[:2])
    run.write(rows[2:])
    of_files = run.all(totals(), cedr.sinks.memory(), close=True)
    frame = run.spark.readStream.schema("ts long, k string, v long").parquet(str(run.folder / "in"))
    other = {"sink": cedr.sinks.memory(), "checkpoint": str(run.folder / "other"), "trigger": ALL_THERE, "close": True}
    of_frames = totals().start(run.spark, frame, **other)
    of_frames.await_termination()
    expected = totals().run(rows).table()
    assert_frame_equal(of_files.table(), expected)
    assert_frame_equal(of_frames.table(), expected)
    assert len({progress.runId for progress in of_files.progress}) == 1
    assert [progress.batchId for progress in of_files.progress if progress.numInputRows] == [0, 1, 2]
    assert len({progress.runId for progress in of_frames.progress}) == 2


def test_after_closing_all_rows_are_late(run):
    run.write(table((1, "a", 1)))
    sink = cedr.sinks.parquet(run.folder / "out")
    run.all(totals(), sink, close=True)
    assert run.all(totals(), sink, close=True).table().rows() == [(0, 10, "a", 1, 1)]
    run.write(table((50, "b", 7)))
    running = run.all(totals(), sink, close=True)
    assert running.table().rows() == [(0, 10, "a", 1, 1)]
    assert running.late().select("k", "v", "reason").rows() == [("b", 7, "below_cti")]


def test_without_any_file_closing_answers_with_an_empty_table(run):
    typed = cedr.source("readings", {"ts": int, "k": str, "v": int}, vs="ts", delay=10)
    running = run.all(typed.tumbling(10).group_by("k").agg(n=cedr.count()), cedr.sinks.memory(), close=True)
    assert running.table().rows() == []
    assert running.progress[-1].observedMetrics["cedr"].cti == INF


def test_sources_close_one_by_one(run):
    """The first ends while the second goes on."""
    left, right = (cedr.source(name, {"k": str, "v": int}, vs="ts", duration=10) for name in ("left", "right"))
    query = left.join(right, on="k")
    for name in ("left", "right"):
        (run.folder / name).mkdir()
    rows = table((1, "a", 1), (4, "a", 2), (30, "a", 3))
    rows[:1].write_parquet(run.folder / "left" / "0.parquet")
    for number in range(3):
        rows[number : number + 1].write_parquet(run.folder / "right" / f"{number}.parquet")
    data = {name: cedr.files(run.folder / name, "parquet", max_files=1) for name in ("left", "right")}
    running = query.start(
        run.spark,
        data,
        sink=cedr.sinks.memory(),
        checkpoint=str(run.folder / "checkpoint"),
        trigger=ALL_THERE,
        close=True,
    )
    running.await_termination()
    assert_frame_equal(running.table(), query.run({"left": rows[:1], "right": rows}).table())
    assert len(running.progress) == 4
    assert running.late().is_empty()


def test_late_rows_and_rows_without_a_lifetime_are_kept_with_the_reason(run):
    run.write(table((1, "a", 1), (40, "a", 2), (None, "a", 3)))
    run.write(table((2, "a", 4)))
    with pytest.warns(cedr.LateWarning, match=r"2 rows could not be used \(\w+: 1, \w+: 1\)"):
        running = run.all(totals(), cedr.sinks.memory())
    late = running.late().sort("v")
    assert late["v"].to_list() == [3, 4]
    assert late["reason"].to_list() == ["no_lifetime", "below_cti"]
    assert sum(p.observedMetrics["cedr"].late for p in running.progress) == 2


def test_files_of_a_micro_batch_come_one_after_the_other(run):
    """The first file has a late row, after which its rows are worked in later than those before it. The promise of the
    second file is about none of them; nor is the end, which comes in the next micro-batch."""
    schema = {"ts": pl.Int64, "k": pl.String, "v": pl.Int64, "cti": pl.Int64}
    first = [(1, "a", 1, None), (12, "a", 2, None), (None, None, None, 10), (5, "a", 9, None), (13, "b", 5, None)]
    second = [(25, "a", 2, None), (None, None, None, 20), (26, "b", 4, None)]
    files = [pl.DataFrame(rows, schema=schema, orient="row") for rows in (first, second)]
    for file in files:
        run.write(file)
    query = totals(cti="cti", delay=None)
    data = cedr.files(run.folder / "in", "parquet")
    options = {"checkpoint": str(run.folder / "checkpoint"), "trigger": ALL_THERE, "close": True}
    running = query.start(run.spark, data, sink=cedr.sinks.memory(), **options)
    running.await_termination()
    assert running.late()["v"].to_list() == [9]
    assert_frame_equal(running.table(), query.run(pl.concat(files)).table())


def test_an_error_in_a_task_reaches_the_user_without_tracebacks(run):
    run.write(table((40, "a", 2)))
    run.write(table((1, "a", 1)))
    with pytest.raises(cedr.CedrError, match=r"^element 2, insert .* cti 30 promised that nothing before it"):
        run.all(totals(late="raise"), cedr.sinks.memory())


def test_metrics_are_in_sparks_progress_and_by_operator(run):
    run.write(table((1, "a", 1), (2, "b", 2), (30, "a", 1)))
    running = run.all(totals(), cedr.sinks.memory())
    (progress,) = running.progress
    observed = progress.observedMetrics["cedr"].asDict()
    assert observed["rows_in"] == 3
    assert observed["rows_out"] == 2
    assert observed["cti"] == 20
    metrics = running.metrics()
    assert set(metrics["operator"]) == {"Finalize", "Aggregate"}
    assert metrics.filter(operator="Aggregate")["rows_in"].sum() == 3


def test_a_changelog_goes_to_any_of_sparks_sinks(run):
    run.write(table((1, "a", 1), (25, "b", 2)))
    run.write(table((24, "a", 4)))
    eager = readings().tumbling(10).group_by("k").agg(v=cedr.sum("v")).with_latency("eager")
    run.all(eager, cedr.sinks.changelog("parquet", str(run.folder / "log")), close=True)
    log = pl.read_parquet(run.folder / "log" / "*.parquet")
    assert log.columns == ["change", "vs", "ve", "ve_new", "k", "v", "shard"]
    changes = log.filter(pl.col("change") != "cti").sort("vs", "k")
    assert changes.select("change", "vs", "ve", "k", "v").rows() == [
        ("insert", 0, 10, "a", 1),
        ("insert", 20, 30, "a", 4),
        ("insert", 20, 30, "b", 2),
    ]
    assert log.filter(change="cti")["shard"].n_unique() == 2


def test_timestamps_stay_timestamps(run):
    stamps = table((1, "a", 1), (12, "a", 2)).with_columns(ts=pl.from_epoch("ts").dt.cast_time_unit("us"))
    run.write(stamps)
    query = readings(delay="5s").tumbling("10s").group_by("k").agg(v=cedr.sum("v"))
    running = run.all(query, cedr.sinks.memory(), close=True)
    assert_frame_equal(running.table(), query.run(stamps).table())


def test_a_silent_partition_holds_results_back_until_its_idle_time_is_over(run):
    """The second of the first two partitions falls silent; with an idle time the others' results go on."""

    def rows(*pairs):
        return table(*((ts, k, 1) for ts, k in pairs)).with_columns(p=pl.col("k"))

    for options, reached in (({}, -10), ({"idle": "1us"}, 40)):
        place = run.folder / f"idle-{reached}"
        place.mkdir()
        other = Run(run.spark, place)
        other.write(rows((1, "a"), (1, "b")))
        other.write(rows((50, "a")))
        query = totals(partition="p", **options).with_consistency("strong")
        running = other.all(query, cedr.sinks.memory())
        cti = running.progress[-1].observedMetrics["cedr"].cti
        assert cti == reached
        assert running.table().height == (2 if reached > 0 else 0)


def test_skewed_keys_do_not_break_it(run):
    rows = pl.DataFrame({"ts": range(20_000), "k": ["hot"] * 19_990 + list("abcdefghij"), "v": [1] * 20_000})
    run.write(rows)
    running = run.all(totals(), cedr.sinks.memory(), close=True)
    assert_frame_equal(running.table(), totals().run(rows).table())


def test_a_source_without_promises_is_warned_about(run):
    run.write(table((1, "a", 1)))
    with pytest.warns(UserWarning, match="makes no promise about progress"):
        running = run.start(totals(delay=None), cedr.sinks.memory())
    running.await_termination()


SLOW_ONCE = """#!/bin/bash
if [[ "$*" == *python_streaming_source_runner* ]] && mkdir "{mark}" 2>/dev/null; then sleep 11; fi
exec "{python}" "$@"
"""


def test_a_python_that_starts_too_slowly_for_spark_is_started_again(run, tmp_path, monkeypatch):
    """Spark waits ten seconds."""
    python = tmp_path / "python"
    python.write_text(SLOW_ONCE.format(mark=tmp_path / "was slow", python=sys.executable))
    python.chmod(0o755)
    monkeypatch.setattr(run.spark.sparkContext, "pythonExec", str(python))
    run.write(table((1, "a", 1), (12, "a", 2)))
    running = run.all(totals(), cedr.sinks.memory(), close=True)
    assert (tmp_path / "was slow").exists()
    assert running.table().rows() == [(0, 10, "a", 1, 1), (10, 20, "a", 1, 2)]


def test_graceful_stop_ends_between_micro_batches(run, tmp_path):
    run.write(table((1, "a", 1)))
    running = run.start(totals(), cedr.sinks.parquet(tmp_path / "out"), trigger={"processingTime": "0 seconds"})
    wait_for(lambda: reached(running) is not None)
    run.write(table((50, "a", 1)))
    wait_for(lambda: reached(running) == 40)
    running.stop()
    assert not running.is_active
    assert running.table().rows() == [(0, 10, "a", 1, 1)]


def reached(running):
    """The highest CTI so far. A waiting query also sends progress events, without our figures."""
    observed = [progress.observedMetrics.get("cedr") for progress in running.progress]
    return max((found.cti for found in observed if found), default=None)


def wait_for(condition, seconds=600):
    """The limit is there only for it not to hang."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)


def test_sparks_rate_source(spark, tmp_path):
    rate = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
    source = cedr.source("rate", {"value": int}, vs="timestamp", delay="1s")
    query = source.tumbling("1s").agg(n=cedr.count(), first=cedr.min("value"))
    running = query.start(spark, rate, sink=cedr.sinks.memory(), checkpoint=str(tmp_path / "c"))
    wait_for(lambda: running.table().height > 2)
    running.stop()
    full = running.table()["n"].to_list()[1:]
    assert all(n == 50 for n in full)


def test_sparks_socket_source(spark, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def send_lines():
            connection, _ = server.accept()
            with connection:
                for line in ("1 a", "3 b", "30 a", "60 a"):
                    connection.sendall(f"{line}\n".encode())
                done.wait()

        done = threading.Event()
        sender = threading.Thread(target=send_lines)
        sender.start()
        lines = spark.readStream.format("socket").option("host", "127.0.0.1").option("port", port).load()
        columns = lines.selectExpr("CAST(split(value, ' ')[0] AS BIGINT) AS ts", "split(value, ' ')[1] AS k", "1L AS v")
        running = totals().start(spark, columns, sink=cedr.sinks.memory(), checkpoint=str(tmp_path / "c"))
        try:
            wait_for(lambda: running.table().height == 3)
        finally:
            running.stop()
            done.set()
            sender.join()
    assert running.table().rows() == [(0, 10, "a", 1, 1), (0, 10, "b", 1, 1), (30, 40, "a", 1, 1)]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda df: df.drop("v"), QueryError, "'v'"),
        (lambda df: df.selectExpr("CAST(ts AS STRING) AS ts", "k", "v"), TimeError, "is text; declare its format"),
        (lambda df: {"reading": df}, QueryError, "no source 'reading'"),
        (lambda df: 5, QueryError, "cannot read a int on Spark"),
    ],
)
def test_mistakes_are_named_before_anything_runs(spark, tmp_path, change, error, message):
    df = spark.readStream.format("rate").load().selectExpr("value AS ts", "'a' AS k", "value AS v")
    with pytest.raises(error, match=message):
        totals().start(spark, change(df), sink=cedr.sinks.memory(), checkpoint=str(tmp_path / "c"))


def test_static_and_streaming_dataframes_are_not_confused(spark, tmp_path):
    static = spark.createDataFrame([(1, "a", 1)], "ts bigint, k string, v bigint")
    with pytest.raises(QueryError, match=r"is static; start\(\) takes streaming"):
        totals().start(spark, static, sink=cedr.sinks.memory(), checkpoint=str(tmp_path / "c"))
    streaming = spark.readStream.format("rate").load().selectExpr("value AS ts", "'a' AS k", "value AS v")
    with pytest.raises(QueryError, match="is streaming"):
        totals().batch(spark, streaming)


def test_batch_refuses_bad_rows_or_writes_them_down(spark, tmp_path):
    rows = spark.createDataFrame([(1, "a", 1), (None, "a", 2)], "ts bigint, k string, v bigint")
    with pytest.raises(Exception, match="1 rows cannot be used; the first: element "):
        totals().batch(spark, rows).collect()
    answer = totals().batch(spark, rows, late=str(tmp_path / "late"))
    assert [tuple(row) for row in answer.collect()] == [(0, 10, "a", 1, 1)]
    assert pl.read_parquet(tmp_path / "late" / "*.parquet")["v"].to_list() == [2]
