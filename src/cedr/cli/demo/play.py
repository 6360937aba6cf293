"""The demo from the first line to the last: Spark starts, the query is watched, the levels are compared."""

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
from cedr.cli.demo.levels import LEVELS, Telling, measured
from cedr.cli.demo.reports import Piece, pieces, write
from cedr.cli.demo.screen import Lines, Step, screen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WATCHED = "middle"
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java compiles less: for a run of a minute that halves the work."""
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
                print(f"the demo failed; what Spark said is in {kept}", file=sys.stderr)
            raise


def perform(shown: Lines, folder: Path, pace: float, stop: threading.Event) -> int:
    arriving = pieces()
    write(arriving, folder / "reports")
    tellings = {name: Telling(name, stop) for name in LEVELS}
    with local_spark(shown, folder, stop) as spark:
        watch(shown, spark, folder, tellings[WATCHED], arriving, pace)
        compare(shown, spark, folder, [t for name, t in tellings.items() if name != WATCHED], len(arriving))
        found = {name: measured(telling, arriving) for name, telling in tellings.items()}
        shown.console.print(verdict.table(found), verdict.LEGEND)
        for sentence in verdict.sentences(found):
            shown.console.print(sentence)
    return 0 if found["strong"].answer == found["middle"].answer else 1


@contextmanager
def local_spark(shown: Lines, folder: Path, stop: threading.Event) -> Iterator["SparkSession"]:
    with shown.waiting("Spark starts; a few seconds"):
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
    shown: Lines, spark: "SparkSession", folder: Path, telling: Telling, arriving: list[Piece], pace: float
) -> None:
    """Show every micro-batch; the first takes longest, as everything is loaded and compiled for it."""
    with shown.waiting("the query starts, with the first reports; a few seconds"):
        telling.start(spark, folder, {"processingTime": f"{round(pace * 1000)} milliseconds"})
        telling.wait_for(0)
    with shown.watching():
        for number, piece in enumerate(arriving):
            batch = telling.wait_for(number)
            shown.show(Step(number, len(arriving), piece, batch, *telling.said[number : number + 2]))
    telling.running.stop()


def compare(shown: Lines, spark: "SparkSession", folder: Path, tellings: list[Telling], total: int) -> None:
    for telling in tellings:
        telling.start(spark, folder, {"availableNow": True})
    with shown.comparing(tellings, total):
        for number in range(total):
            for telling in tellings:
                telling.wait_for(number)
                shown.advance(telling)
