"""`state_memory` on Spark: it reaches the processes of the shards, and a mistake is reported before anything starts."""

import errno
import os
import re
from types import SimpleNamespace

import pytest
from in_files import use_files
from polars.testing import assert_frame_equal
from runtime.spark.small_run import BATCHES, LATE, SmallRun, expected
from runtime.spark.test_rescale_on_spark import ROWS, sums
from runtime.spark.test_streaming import Run, table

import cedr
from cedr.columnar import blocks, mapped
from cedr.columnar.mapped import MEMORY, SpillError, default_limit
from cedr.operators import layout
from cedr.runtime.spark.shard import server
from cedr.temporal import QueryError


def test_a_query_with_little_memory(spark, tmp_path):
    run = Run(spark, tmp_path)
    for part in (ROWS[:20], ROWS[20:]):
        run.write(table(*part))
        running = run.all(sums(), cedr.sinks.parquet(run.folder / "out"), state_memory="1k", shards=2)
        assert running.job.state_memory == 1024
    assert_frame_equal(running.table(), sums().run(table(*ROWS), close=False).table())


def test_a_full_disk_ends_the_query_and_it_goes_on_after_a_restart(monkeypatch, tmp_path):
    """In each batch: every start finds room for some more files than the one before, until the batch is done."""
    use_files(monkeypatch, tmp_path)
    monkeypatch.setattr(layout, "MUCH_STATE", 0)
    monkeypatch.setattr(blocks, "BLOCK", 4)
    room = Room(monkeypatch)
    for batch in range(BATCHES + 1):
        for files in range(0, 1000, 9):
            room.files = files
            run = SmallRun(tmp_path, batch - 1 if batch else None)
            try:
                run.run(batch)
                break
            except SpillError as error:
                found = str(error)
        assert files > 0
        assert re.search(rf"into the folder {tmp_path}: No space left on device.*TMPDIR", found)
    assert (run.table(), run.late_rows()) == (expected(), LATE)


class Room:
    """A disk with room for some more files."""

    def __init__(self, monkeypatch):
        self.files, self.allocate = 0, os.posix_fallocate
        monkeypatch.setattr(mapped.os, "posix_fallocate", self)

    def __call__(self, number, offset, nbytes):
        if not self.files:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.files -= 1
        self.allocate(number, offset, nbytes)


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
