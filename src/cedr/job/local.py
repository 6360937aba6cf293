"""Runs a job in this process over the existing files: the same answer as on Spark, without Java.

A run starts from scratch each time. A table sink is updated to the new answer in one commit; a changelog and late rows
are rewritten.
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import polars as pl

from cedr.columnar.chunk import NEW, OLD, VS, Chunk
from cedr.columnar.mapped import LOCAL, MEMORY, limit_of
from cedr.columnar.tally import VE
from cedr.job.job import Job
from cedr.job.reports import StepReport, lag_of, progress_of
from cedr.job.rows import Rows
from cedr.job.sinks import JobSink
from cedr.job.stores import table_sink
from cedr.recording.changelog import changelog_rows, check_not_of_spark, write_changelog
from cedr.runtime.local import LocalRun
from cedr.runtime.result import Result
from cedr.sinks.base import SinkTable, TableSink
from cedr.sources.ingest import wall_clock
from cedr.temporal.errors import QueryError

LATE = "late.parquet"
ALL = 2**40
"""A micro-batch is one chunk: as on Spark, its rows are judged late or not when all of it has arrived."""


class LocalAnswer:
    """One answer of a job. `steps` runs it; afterwards `result` is all of it."""

    def __init__(self, job: Job, sink: JobSink) -> None:
        if sink.place == "kafka":
            assert sink.section is not None
            raise sink.section.mistake("only Spark writes to Kafka; run it without --local", "kafka")
        self.job, self.sink = job, sink
        self.stream = job.stream(sink)
        MEMORY.allow(LOCAL, limit_of(job.spark.state_memory))
        self.run = LocalRun(self.stream.fragment(), chunk_size=ALL)
        self.rows = {made.name: Rows.of(made) for made in job.read_by(self.stream) if made.name in self.run.ingests}
        for name, rows in self.rows.items():  # the type in the files, even if they have no rows yet
            self.run.ingests[name].time_type = rows.time_type()
        self.time_type = self.run.time_type()
        self.table = SinkTable(f"local run of {job.file}", dict(self.stream.schema), self.time_type)
        self.store = table_sink(sink) if sink.is_table and sink.place != "memory" else None
        self.fed = 0
        self.emitted: list[tuple[int, Chunk]] = []
        self.result: Result | None = None

    def check(self) -> None:
        """Raise if the sink cannot be used. Nothing is created yet."""
        if self.store is not None:
            self.store.check(self.table)
            self.store.check_place(self.table)
        if self.sink.place == "changelog":
            check_not_of_spark(self.sink.path)

    def steps(self) -> Iterator[StepReport]:
        if self.store is not None:
            self.store.open(self.table)
        late, started = 0, time.monotonic()
        for number, chunk in enumerate(self.run.steps(self._arrivals(), close=True)):
            fed, self.fed = self.fed, 0
            if self.sink.place == "changelog":
                self.emitted.append((wall_clock(), chunk))
            before, late = late, sum(frame.height for frame in self.run.late)
            metrics, kind = self.run.engine.metrics(), self.time_type
            yield StepReport(
                self.sink.name,
                number,
                fed,
                len(chunk),
                int((~chunk.is_insert).sum()),
                late - before,
                int(metrics["state_rows"].sum()),
                int(metrics["state_bytes"].sum()),
                progress_of(chunk.cti, kind),
                lag_of(metrics, kind),
                (now := time.monotonic()) - started,
            )
            started = now
        self.result = self.run.result([])
        self._write()

    def _arrivals(self) -> Iterator[dict[str, pl.DataFrame]]:
        """The rows that each micro-batch would read from the sources."""
        feeds = {name: rows.batches() for name, rows in self.rows.items()}
        while feeds:
            arrived: dict[str, pl.DataFrame] = {}
            for name in list(feeds):
                frame = next(feeds[name], None)
                self.run.late += self.rows[name].late
                self.rows[name].late = []
                if frame is None:
                    del feeds[name]
                else:
                    arrived[name] = frame
            self.fed += sum(frame.height for frame in arrived.values())
            yield arrived

    # --- results ------------------------------------------------------------------------------------------------------

    def _write(self) -> None:
        if self.sink.place == "changelog":
            write_changelog(self.sink.path, (changelog_rows(chunk, at, self.time_type) for at, chunk in self.emitted))
        if self.store is not None:
            self._write_table(self.store)
        if self.sink.late is not None:
            self._write_late(Path(self.sink.late))

    def _write_table(self, sink: TableSink) -> None:
        """Write the difference between the sink's contents and the new answer as one batch."""
        table = self.table
        try:
            last = sink.last_batch()
            old = table.inner(sink.read()).select(VS, pl.col(VE).alias(OLD), pl.col(VS).alias(NEW), *table.columns)
            rows = self.run.tally.table()
            new = rows.select(VS, pl.col(VS).alias(OLD), pl.col(VE).alias(NEW), *table.columns)
            batch = table.first_batch if last is None else last + 1
            sink.commit(batch, [sink.prepare(0, batch, Chunk(pl.concat([old, new])))])
        finally:
            sink.close()

    def _write_late(self, folder: Path) -> None:
        assert self.result is not None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                (folder / LATE).unlink()
            if (late := self.result.late()).height:
                late.write_parquet(folder / LATE)
        except OSError as e:
            raise QueryError(f"{folder} is not writable: {e.strerror}") from None
