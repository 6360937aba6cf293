"""Queries on Spark whose checkpoint, parked rows and table are in a bucket of a real S3 server."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import polars as pl
from runtime.spark.remote_driver import query
from s3_server import SECRET

import cedr
from cedr.sinks.manifest import Manifest
from cedr.storage.folder import Folder

ROWS = 20_000
TESTS = Path(__file__).parents[2]


class Driver:
    """A driver in a process of its own."""

    def __init__(self, tmp_path: Path, bucket: str, spark: dict[str, str], once: bool = True, **more) -> None:
        self.log = tmp_path / f"log-{len(list(tmp_path.glob('log-*')))}"
        given = {
            "bucket": bucket,
            "files": str(tmp_path / "in"),
            "spark": spark,
            "once": once,
            **more,
            "log": str(self.log),
        }
        with (tmp_path / "errors").open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "runtime.spark.remote_driver", json.dumps(given)],
                cwd=TESTS,
                env={**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent / 'src'}"},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        self.steps: list[dict] = []
        self.said = threading.Condition()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                with self.said:
                    self.steps.append(json.loads(line))
                    self.said.notify_all()
        with self.said:
            self.steps.append({"step": "end"})
            self.said.notify_all()

    def wait_for(self, step: str, seconds: float = 300.0) -> dict:
        def found():
            return next((s for s in self.steps if s["step"] in (step, "end")), None)

        with self.said:
            assert self.said.wait_for(found, seconds), f"no {step!r} in {seconds} s: {self.steps}"
        assert found()["step"] == step, f"{self.steps}: {self.log.read_text()[-3000:] if self.log.exists() else ''}"
        return found()

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def drivers(*some: Driver):
    try:
        yield
    finally:
        for driver in some:
            if driver.process.poll() is None:
                driver.kill()
            driver.reader.join()
            driver.process.wait()


def write_files(folder: Path, first: int, number: int, rows: int = ROWS) -> None:
    (folder / "in").mkdir(exist_ok=True)
    for n in range(first, first + number):
        ts = pl.Series("ts", range(n * 100, n * 100 + 100), dtype=pl.Int64)
        frame = pl.DataFrame({"ts": ts}).join(pl.DataFrame({"k": range(rows // 100)}), how="cross")
        hidden = folder / "in" / f".{n}"
        frame.with_columns(v=pl.col("ts") % 7).write_parquet(hidden)
        hidden.rename(folder / "in" / f"{n}.parquet")


def expected(folder: Path) -> list[list]:
    """What the query gives in this process."""
    table = query().run(pl.read_parquet(folder / "in" / "*.parquet")).table()
    return [list(row) for row in table.rows()]


def test_a_query_in_a_bucket(s3, bucket, tmp_path):
    write_files(tmp_path, 0, 1, rows=1_000_000)
    write_files(tmp_path, 1, 2)
    driver = Driver(tmp_path, bucket.replace("s3a", "s3"), s3.spark, shards=1)
    with drivers(driver):
        done = driver.wait_for("done")
    assert done["rows"] == expected(tmp_path)
    assert [list(row) for row in cedr.sinks.read_parquet(f"{bucket}/table").rows()] == expected(tmp_path)
    folder = Folder(f"{bucket}/checkpoint")
    assert {"cedr", "spark"} <= set(folder.subfolders())
    files = folder.store.below(folder.path)
    assert any("/spilled-" in path for path in files), "rows of the large file cross the store"
    for path in files:
        assert SECRET.encode() not in (folder.find_plain(path) or b"")
    assert SECRET not in driver.log.read_text()


def batches_in(bucket: str) -> int:
    """How many micro-batches are in the table."""
    manifest = Manifest.newest(Folder(f"{bucket}/table"))
    return 0 if manifest is None or manifest.batch is None else manifest.batch + 1


def wait_until(true, seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_killed_driver_and_its_successor(s3, bucket, tmp_path):
    """It is killed at some moment after its second micro-batch. The next one sees no lock, and does the rest."""
    write_files(tmp_path, 0, 6)
    first = Driver(tmp_path, bucket, s3.spark)
    with drivers(first):
        first.wait_for("ready")
        wait_until(lambda: batches_in(bucket) >= 2 or first.process.poll() is not None)
        first.kill()
    second = Driver(tmp_path, bucket, s3.spark)
    with drivers(second):
        assert second.wait_for("done")["rows"] == expected(tmp_path)


def test_a_driver_stops_when_another_one_takes_over(s3, bucket, tmp_path):
    write_files(tmp_path, 0, 2)
    older = Driver(tmp_path, bucket, s3.spark, once=False)
    with drivers(older):
        wait_until(lambda: batches_in(bucket) >= 2 or older.process.poll() is not None)
        newer = Driver(tmp_path, bucket, s3.spark, once=False)
        with drivers(newer):
            newer.wait_for("ready")
            write_files(tmp_path, 2, 3)
            error = older.wait_for("error")
            assert "was taken over by another driver (process" in error["text"]
            assert older.process.wait(60) == 1
            wait_until(lambda: batches_in(bucket) >= 5 or newer.process.poll() is not None)
            found = cedr.sinks.read_parquet(f"{bucket}/table")
    alone = query().run(pl.read_parquet(tmp_path / "in" / "*.parquet"), close=False).table()
    assert [list(row) for row in found.rows()] == [list(row) for row in alone.rows()]
