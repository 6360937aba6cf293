"""Drivers that are killed, and drivers that come twice: nothing is lost, nothing counts twice.

The benchmark `./cedr bench crash` does the same with many kills at random moments.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import cedr
from cedr.storage.folder import Folder
from cedr.storage.lock import Lock
from cedr.storage.processes import birth
from cedr.temporal import CedrError, QueryError
from cedr.temporal.errors import DamagedFileError

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from crash import disagreement
from crashes.kills import Moment, Trial
from crashes.workload import QUERIES, Size, tables


def test_killed_drivers_lose_nothing_and_repeat_nothing(tmp_path):
    """The first kill comes between the shards' logs and the commit, the second between the table and Spark's note that
    the batch is done, the third while the query closes."""
    size = Size(files=4, rows=200)
    given = tables(QUERIES["sites"](), size)
    given.write(tmp_path / "in")
    moments = [Moment("last stage", 0, 0.0), Moment("in the table", 2, 0.0), Moment("first stage", size.files, 0.0)]
    trial = Trial(tmp_path, "sites", "parquet")
    try:
        kills = list(trial.run_with_kills(moments))
        # Not before their moments; a killer that has to wait for a core comes a batch later.
        assert all(kill.batch >= moment.batch for kill, moment in zip(kills, moments, strict=True))
        assert disagreement("sites", "parquet", given, tmp_path) is None
        assert trial.left() == []
    finally:
        trial.end()


def start(spark, folder, **how):
    query = cedr.source("readings", {"v": int}, vs="ts", delay=5).tumbling(10).agg(v=cedr.sum("v"))
    files = cedr.files(folder / "in", max_files=1)
    return query.start(
        spark, files, sink=cedr.sinks.parquet(folder / "out"), checkpoint=str(folder / "checkpoint"), **how
    )


def write(folder, number, *rows):
    (folder / "in").mkdir(exist_ok=True)
    pl.DataFrame(rows, {"ts": pl.Int64, "v": pl.Int64}, orient="row").write_parquet(folder / "in" / f"{number}.parquet")


def test_a_checkpoint_serves_one_query_at_a_time(spark, tmp_path):
    write(tmp_path, 0, (1, 1), (20, 2))
    first = start(spark, tmp_path)
    with pytest.raises(QueryError, match=rf"is in use by a query that runs in process {os.getpid()} on .*; stop that"):
        start(spark, tmp_path)
    first.stop()
    second = start(spark, tmp_path)
    second.spark_query.stop()  # not by our own stop: the lock must give way all the same
    start(spark, tmp_path).stop()


def test_what_a_killed_spark_was_writing_does_not_prevent_a_start(spark, tmp_path):
    write(tmp_path, 0, (1, 1), (20, 2))
    unfinished = [
        tmp_path / "checkpoint" / "spark" / name
        for name in (
            ".metadata.3f0c6a52-7f5e-4c50-8f63-0d8f1a6e4b11.tmp",
            "offsets/.0.9d1f6a8e-51f0-4b7e-9a39-6f0c5a7d2e42.tmp",
            "offsets/..0.9d1f6a8e-51f0-4b7e-9a39-6f0c5a7d2e42.tmp.crc",
            "commits/.0.1c2b3a49-58e7-4d6f-8a9b-0c1d2e3f4a5b.TID7.tmp",
        )
    ]
    for path in unfinished:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"v")
    query = start(spark, tmp_path, trigger={"availableNow": True}, close=True)
    query.await_termination()
    assert query.table()["v"].to_list() == [1, 2]
    assert not [path for path in unfinished if path.exists()]


def test_a_start_that_fails_does_not_keep_the_checkpoint(tmp_path):
    folder = Folder(str(tmp_path))
    with pytest.raises(ValueError, match="no"), Lock(folder):
        raise ValueError("no")
    Lock(folder).release()


def test_a_process_is_known_by_its_birth():
    """A number may be given to another process, and a dead one is listed until its parent takes note."""
    assert birth(os.getpid()) == birth(os.getpid())
    assert birth(os.getpid()) != birth(1)
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert Path(f"/proc/{child.pid}").exists()
    assert birth(child.pid) is None
    child.wait()
    assert birth(child.pid) is None


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def test_damage_reaches_the_user_as_one_error(spark, tmp_path):
    """Found by a shard, by the source, on the driver, and by Spark in notes of its own."""
    kept = tmp_path / "kept"
    kept.mkdir()
    for number in range(2):
        write(kept, number, (10 * number + 1, 1), (10 * number + 20, 2))
    query = start(spark, kept, trigger={"availableNow": True})
    query.await_termination()
    assert spark.read.parquet(str(kept / "out")).count() == query.table().height > 0
    write(kept, 2, (50, 1))
    damages = [
        ("checkpoint/cedr/state/1/0/snapshot-*", flip),
        ("checkpoint/cedr/files/readings/2.json", empty),
        ("checkpoint/cedr/query.json", empty),
        ("out/open-*", flip),
        ("checkpoint/spark/offsets/1", flip),
        ("checkpoint/spark/metadata", flip),
        ("checkpoint/spark/metadata", empty),
    ]
    for number, (name, damage) in enumerate(damages):
        shutil.copytree(kept, place := tmp_path / str(number))
        (path,) = place.glob(name)
        damage(path)
        with pytest.raises(DamagedFileError, match=rf"^damaged file {path}: it.* new checkpoint$"):
            start(spark, place, trigger={"availableNow": True}).await_termination()


def test_a_table_does_not_go_on_with_another_checkpoint(spark, tmp_path):
    """Its first batch would be taken for the one that the table has already, and its rows would be lost."""
    write(tmp_path, 0, (1, 1), (20, 2))
    start(spark, tmp_path).stop()
    shutil.rmtree(tmp_path / "checkpoint")
    with pytest.raises(CedrError, match=r"created by 'query .* with checkpoint .*', this is 'query .* with checkpoint"):
        start(spark, tmp_path)
