"""`state_memory` on Spark: it reaches the processes of the shards, and a mistake is reported before anything starts."""

from types import SimpleNamespace

import pytest
from polars.testing import assert_frame_equal
from runtime.spark.test_rescale_on_spark import ROWS, sums
from runtime.spark.test_streaming import Run, table

import cedr
from cedr.columnar.mapped import MEMORY, default_limit
from cedr.runtime.spark.shard import server
from cedr.temporal import QueryError


def test_a_query_with_little_memory(spark, tmp_path):
    run = Run(spark, tmp_path)
    for part in (ROWS[:20], ROWS[20:]):
        run.write(table(*part))
        running = run.all(sums(), cedr.sinks.parquet(run.folder / "out"), state_memory="1k", shards=2)
        assert running.job.state_memory == 1024
    assert_frame_equal(running.table(), sums().run(table(*ROWS), close=False).table())


def test_what_is_not_a_size(spark, tmp_path):
    run = Run(spark, tmp_path)
    run.write(table(*ROWS))
    with pytest.raises(QueryError, match="state_memory is 'much', which is not a size"):
        run.all(sums(), cedr.sinks.parquet(run.folder / "out"), state_memory="much")
    assert not (run.folder / "checkpoint").exists()


def test_the_limit_of_a_process_is_that_of_its_queries(monkeypatch, tmp_path):
    jobs = {"one": (100, 1), "two": (None, 4)}
    opened = {run: SimpleNamespace(state_memory=memory, shards=shards) for run, (memory, shards) in jobs.items()}
    monkeypatch.setattr(MEMORY, "limits", {})
    monkeypatch.setattr(server, "find_job", lambda home, run, digest: SimpleNamespace(open=lambda: opened[run]))
    monkeypatch.setattr(server, "Shard", lambda job, stage, shard: SimpleNamespace())
    made = server.Server(tmp_path)
    for run, stage in (("one", 1), ("one", 2), ("two", 1)):
        made._work(server.ShardId(run, stage, 0), "", 0, [], [])
    assert MEMORY.limit == 100 + default_limit(4)
    made._forget([server.ShardId("one", 1, 0)])
    assert set(MEMORY.limits) == {"one", "two"}
    made._forget([server.ShardId("one", 2, 0)])
    assert set(MEMORY.limits) == {"two"}
