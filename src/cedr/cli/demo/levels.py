"""The demo's query at one level of consistency, on Spark: everything it emits is kept and measured."""

import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

import cedr
import cedr.sinks
from cedr.cli.demo.alerts import Alerts, overloaded, repaired, updated
from cedr.cli.demo.reports import COLUMNS, ArrivedRows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEVELS = {
    "strong": cedr.STRONG,
    "middle": cedr.MIDDLE,
    "weak (remembers 45 s)": cedr.Consistency(block=0, remember="45s"),
    "weak (forgets at once)": cedr.WEAK,
}


class Batch(NamedTuple):
    """Metrics of a micro-batch: how long it took, and cedr's own counters."""

    seconds: float
    counts: Mapping[str, int]

    @property
    def final(self) -> datetime:
        """Nothing before this time changes any more."""
        cti = self.counts["cti"]
        return datetime.min if cti is None else datetime(1970, 1, 1) + timedelta(microseconds=cti)


class LevelRun:
    """The query running at one level. `states` holds the alerts after each micro-batch, one per piece of the input."""

    def __init__(self, name: str, stop: threading.Event) -> None:
        self.name, self.level, self.stop = name, LEVELS[name], stop
        self.states: list[Alerts] = [frozenset()]
        self.batches: dict[int, Batch] = {}

    def start(self, spark: "SparkSession", folder: Path, trigger: Mapping[str, Any]) -> None:
        files = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(folder / "reports"))
        self.running = (
            overloaded()
            .with_consistency(self.level)
            .start(
                spark,
                files,
                sink=cedr.sinks.foreach(self.update),
                checkpoint=str(folder / self.name),
                trigger=trigger,
                shards=1,  # forty machines are not much work
            )
        )

    def update(self, batch: int, changes: pl.DataFrame) -> None:
        self.states.append(updated(self.states[-1], changes))

    def wait_for(self, number: int) -> Batch:
        """The micro-batch with this number, once it is done."""
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
    """The quality of a level's answer, and its cost.

    waits     for each alert, stream seconds from its start until it was first emitted
    repairs   how often the past of a machine was changed after it had been emitted
    state     maximum number of rows held after a micro-batch
    """

    answer: Alerts
    waits: list[float]
    repairs: int
    state: int
    rows: int
    dropped: int


def measured(run: LevelRun, pieces: list[ArrivedRows]) -> Figures:
    batches = [run.wait_for(number) for number in range(len(pieces))]
    block = run.level.block
    reach = [p.reached if block == 0 else b.final for p, b in zip(pieces, batches, strict=True)]
    steps = zip(run.states[1:-1], run.states[2:], reach, strict=False)
    return Figures(
        answer=run.states[-1],
        waits=waits(run.states, pieces),
        repairs=sum(len(repaired(*step)) for step in steps),
        state=max(batch.counts["state_rows"] for batch in batches),
        rows=sum(batch.counts["rows_out"] for batch in batches),
        dropped=run.running.late().height,
    )


def waits(states: list[Alerts], pieces: list[ArrivedRows]) -> list[float]:
    """For each alert of the final answer, how far the stream had advanced past its start when it was first emitted."""
    found = []
    for alert in states[-1]:
        first = next(n for n, alerts in enumerate(states) if any(alert.overlaps(other) for other in alerts))
        found.append((pieces[first - 1].reached - alert.since).total_seconds())
    return found
