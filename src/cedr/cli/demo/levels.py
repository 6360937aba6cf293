"""The demo's query at one level of consistency: runs on Spark, and everything it says is kept and measured."""

import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

import cedr
import cedr.sinks
from cedr.cli.demo.alerts import Alerts, brought_forward, overloaded, repaired
from cedr.cli.demo.reports import COLUMNS, Piece

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEVELS = {
    "strong": cedr.STRONG,
    "middle": cedr.MIDDLE,
    "weak (remembers 45 s)": cedr.Consistency(block=0, remember="45s"),
    "weak (forgets at once)": cedr.WEAK,
}


class Batch(NamedTuple):
    """What Spark observed of a micro-batch: how long it took, and cedr's own counts."""

    seconds: float
    counts: Mapping[str, int]

    @property
    def final(self) -> datetime:
        """Nothing before this time changes any more."""
        cti = self.counts["cti"]
        return datetime.min if cti is None else datetime(1970, 1, 1) + timedelta(microseconds=cti)


class Telling:
    """A level at work. `said` holds the alerts after each micro-batch; each works in one piece of the input."""

    def __init__(self, name: str, stop: threading.Event) -> None:
        self.name, self.level, self.stop = name, LEVELS[name], stop
        self.said: list[Alerts] = [frozenset()]
        self.batches: dict[int, Batch] = {}

    def start(self, spark: "SparkSession", folder: Path, trigger: Mapping[str, Any]) -> None:
        files = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(folder / "reports"))
        self.running = (
            overloaded()
            .with_consistency(self.level)
            .start(
                spark,
                files,
                sink=cedr.sinks.foreach(self.hear),
                checkpoint=str(folder / self.name),
                trigger=trigger,
                shards=1,  # forty machines are not much work
            )
        )

    def hear(self, batch: int, changes: pl.DataFrame) -> None:
        self.said.append(brought_forward(self.said[-1], changes))

    def wait_for(self, number: int) -> Batch:
        """The micro-batch with this number, when it is done."""
        while number not in self.batches:
            active = self.running.is_active
            for report in self.running.progress:
                if "cedr" in report.observedMetrics:
                    counts = report.observedMetrics["cedr"].asDict()
                    self.batches[report.batchId] = Batch(report.durationMs["triggerExecution"] / 1000, counts)
            if number not in self.batches:
                if not active:
                    self.running.await_termination()
                    raise cedr.CedrError(f"the query at level {self.name!r} ended before micro-batch {number}")
                if self.stop.wait(0.1):
                    raise KeyboardInterrupt
        return self.batches[number]


class Figures(NamedTuple):
    """What a level gives and costs.

    waits     for each alert, the seconds of the stream from its beginning to the first word about it
    repairs   how often something else was said about the past of a machine than before
    state     rows held after a micro-batch, at most
    """

    answer: Alerts
    waits: list[float]
    repairs: int
    state: int
    rows: int
    given_up: int


def measured(telling: Telling, pieces: list[Piece]) -> Figures:
    batches = [telling.wait_for(number) for number in range(len(pieces))]
    block = telling.level.block
    reach = [p.reached if block == 0 else b.final for p, b in zip(pieces, batches, strict=True)]
    spoken = zip(telling.said[1:-1], telling.said[2:], reach, strict=False)
    return Figures(
        answer=telling.said[-1],
        waits=waits(telling.said, pieces),
        repairs=sum(len(repaired(*step)) for step in spoken),
        state=max(batch.counts["state_rows"] for batch in batches),
        rows=sum(batch.counts["rows_out"] for batch in batches),
        given_up=telling.running.late().height,
    )


def waits(said: list[Alerts], pieces: list[Piece]) -> list[float]:
    """For each alert of the last answer, how far the stream had come when it was first told."""
    found = []
    for alert in said[-1]:
        first = next(n for n, alerts in enumerate(said) if any(alert.overlaps(other) for other in alerts))
        found.append((pieces[first - 1].reached - alert.since).total_seconds())
    return found
