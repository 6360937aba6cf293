"""The demo from start to end: start Spark, watch the query, compare the levels."""

import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cedr.cli.demo import verdict
from cedr.cli.demo.levels import LEVELS, LevelRun, measured
from cedr.cli.demo.reports import ArrivedRows, pieces, write
from cedr.cli.demo.screen import DemoLines, WatchedBatch, screen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WATCHED = "middle"
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java compiles less, which halves the work of a one-minute run."""
INTERRUPTED = 130


def play(pace: float) -> int:
    """The exit code."""
    shown, stop = screen(), threading.Event()
    signal.signal(signal.SIGINT, lambda *_: stop.set())  # an exception in a call to Java would leave Java running
    shown.introduce()
    with tempfile.TemporaryDirectory(prefix="cedr-demo-") as name:
        try:
            return perform(shown, Path(name), pace, stop)
        except KeyboardInterrupt:
            shown.line("stopped")
            return INTERRUPTED
        except Exception:
            if (log := Path(name) / "spark.log").exists():
                kept = shutil.copy(log, f"{name}.log")
                print(f"the demo failed; see Spark's log: {kept}", file=sys.stderr)
            raise


def perform(shown: DemoLines, folder: Path, pace: float, stop: threading.Event) -> int:
    arriving = pieces()
    write(arriving, folder / "reports")
    runs = {name: LevelRun(name, stop) for name in LEVELS}
    with local_spark(shown, folder, stop) as spark:
        watch(shown, spark, folder, runs[WATCHED], arriving, pace)
        compare(shown, spark, folder, [r for name, r in runs.items() if name != WATCHED], len(arriving))
        found = {name: measured(run, arriving) for name, run in runs.items()}
        shown.console.print(verdict.table(found), verdict.LEGEND)
        for sentence in verdict.sentences(found):
            shown.console.print(sentence)
    return 0 if found["strong"].answer == found["middle"].answer else 1


@contextmanager
def local_spark(shown: DemoLines, folder: Path, stop: threading.Event) -> Iterator["SparkSession"]:
    with shown.waiting("Starting Spark (takes a few seconds)"):
        from cedr.runtime.spark.driver.session import spark_session

        log, here = folder / "spark.log", "127.0.0.1"
        settings = {"spark__driver__host": here, "spark__driver__bindAddress": here}
        settings["spark__driver__extraJavaOptions"] = QUICK_START
        with ThreadPoolExecutor(1) as elsewhere:  # in the main thread Spark would put its own handler in place of ours
            spark = elsewhere.submit(spark_session, "local[2]", log=log, **settings).result()
    try:
        if stop.is_set():
            raise KeyboardInterrupt
        yield spark
    finally:
        for query in spark.streams.active:
            query.stop()
        spark.stop()


def watch(
    shown: DemoLines, spark: "SparkSession", folder: Path, run: LevelRun, arriving: list[ArrivedRows], pace: float
) -> None:
    """Show every micro-batch. The first takes longest, because everything is loaded and compiled for it."""
    with shown.waiting("Starting the query (takes a few seconds)"):
        run.start(spark, folder, {"processingTime": f"{round(pace * 1000)} milliseconds"})
        run.wait_for(0)
    with shown.watching():
        for number, piece in enumerate(arriving):
            batch = run.wait_for(number)
            shown.show(WatchedBatch(number, len(arriving), piece, batch, *run.states[number : number + 2]))
    run.running.stop()


def compare(shown: DemoLines, spark: "SparkSession", folder: Path, runs: list[LevelRun], total: int) -> None:
    for run in runs:
        run.start(spark, folder, {"availableNow": True})
    with shown.comparing(runs, total):
        for number in range(total):
            for run in runs:
                run.wait_for(number)
                shown.advance(run)
