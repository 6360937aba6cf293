"""A query over streaming DataFrames.

    source --pack--> packets --by shard--> stage 1 --> packets --by shard--> stage 2 ... --> sink

For Spark this is a stateless query: each micro-batch goes through the tasks from left to right. cedr's state lives in
the shards and is versioned by the number of the micro-batch, which Spark passes to its tasks. Spark logs the contents
of a batch before it runs and repeats it after a crash; shards and sinks recognize a batch they have seen.
"""

import json
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import StreamingQueryException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from cedr.columnar.mapped import memory_size
from cedr.plan.analysis import analyse
from cedr.plan.analysis.warning import warn_of_findings
from cedr.plan.nodes.level import Level
from cedr.plan.optimizer import optimize
from cedr.plan.partitioning import StagedPlan, staged
from cedr.runtime.spark.driver import answers
from cedr.runtime.spark.driver.answers import answer_schema
from cedr.runtime.spark.driver.executors import check_executors
from cedr.runtime.spark.driver.inputs import Inputs
from cedr.runtime.spark.driver.job import PackedJob, SparkJob, description, fingerprint, record_of
from cedr.runtime.spark.driver.late_files import late_folder, read_late
from cedr.runtime.spark.driver.placement import Placement, has_executors
from cedr.runtime.spark.driver.remote import check_connector, share_settings
from cedr.runtime.spark.driver.starting import start_until_running
from cedr.runtime.spark.driver.upgrading import PLAN, ChangedQuery, Checkpoint, KeptPlan, first_difference
from cedr.runtime.spark.driver.waiting import why_query_waits
from cedr.runtime.spark.reader.batch_time import check_notes, numbers, spark_checkpoint, sweep_notes
from cedr.runtime.spark.reader.packer import closing
from cedr.runtime.spark.shard.cells import SPACE, Layout
from cedr.runtime.spark.shard.client import announce_query_end, request_answer, unguessable_name
from cedr.runtime.spark.shard.errors import cedr_error_inside, kind_of, task_error
from cedr.runtime.spark.shard.packet import BATCH_ID, SPARK_SCHEMA, Packet, from_batch, to_batches
from cedr.runtime.spark.shard.worker import in_worker
from cedr.runtime.why_waiting import WhyWaiting
from cedr.sinks.base import SinkTable, TableSink
from cedr.sinks.changelog_rows import Changelog
from cedr.sources.late_rows import counted, in_user_times, warn_of_late
from cedr.storage.epoch import Epoch, ReplacedError, take_over
from cedr.storage.folder import Folder, checkpoint_folder
from cedr.storage.lock import InUseError, Lock
from cedr.storage.remote import for_spark
from cedr.temporal.errors import CedrError, CedrWarning, QueryError

Trigger = Mapping[str, Any]
SETTING = threading.RLock()
WATCH_SECONDS = 5.0
QUICK = {"spark.sql.adaptive.enabled": "false"}
"""Adaptive plans would run a batch in several jobs, with nothing to adapt. Decision 10."""
QUICK_PACKETS = {"spark.sql.codegen.factoryMode": "NO_CODEGEN", "spark.sql.codegen.wholeStage": "false"}
"""Where Spark only moves packets, a few rows per task, generating Java code takes longer than interpretation. Where it
reads or writes user rows, it does generate code. Decision 27."""
QUICK_LOCAL = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}
"""It is faster on a local disk. Both write a file under another name and then rename it; our lock keeps a second query
away. Decision 10."""


def start(
    query: Level,
    spark: SparkSession,
    data: Any,
    *,
    sink: TableSink | Changelog,
    checkpoint: str,
    shards: int | None = None,
    state_memory: str | int | None = None,
    trigger: Trigger | None = None,
    close: bool = False,
    late: str | None = None,
    name: str | None = None,
    feedback: str | None = None,
    upgrade: bool = False,
) -> "RunningQuery":
    """See `Stream.start`."""
    plan = staged(query)
    if close and not (trigger or {}).get("availableNow"):
        raise QueryError('close=True declares the end of the input; it requires trigger={"availableNow": True}')
    memory = None if state_memory is None else memory_size(state_memory)
    storage = share_settings(spark)
    check_connector(spark, str(checkpoint))
    folder, run = checkpoint_folder(str(checkpoint)), uuid.uuid4().hex
    with Lock(folder) as lock:
        folder.sweep()
        sweep_notes(folder)
        before = CheckpointIdentity.read(folder)
        check_notes(folder)
        inputs = Inputs(spark, plan, data, True, before.time_type if before else None)
        wanted = shards
        first = before.shards if before else shards or spark.sparkContext.defaultParallelism
        layout = Layout.read(folder) if before else None
        lines = [*description(plan, first), f"close: {close}"]
        lines += ["each source closes after its last file"] if close and inputs.packed else []
        created = before or CheckpointIdentity(lines, first, inputs.time_type, uuid.uuid4().hex)
        reached = last_committed(folder)
        kept, changed = plan_for(folder, before, plan, lines, layout or Layout.first(first, len(plan.stages)))
        if changed is not None:
            changed.check_accepted(upgrade)
        table = SinkTable(created.name, dict(plan.schema), inputs.time_type, first)
        if upgrade and reached is not None:
            table = replace(table, first_batch=reached + 1, later=True)
        sink.check(table)
        if before is None or changed is not None:
            inputs.check_lengths(query)
        epoch = take_over(folder, run)
        if epoch is not None and (CheckpointIdentity.read(folder), last_committed(folder)) != (before, reached):
            raise InUseError(f"the checkpoint {folder.place} is used by another driver; it stops now, so start again")
        if before is None:
            created.write(folder)
        check_executors(spark, folder)
        if not close:
            warn_of_findings(query, stacklevel=3)
        sink.open(table)
        if isinstance(sink, TableSink):
            sink.check_reached(reached)
            if changed is not None:
                changed.check_table(sink, sink.last_batch() is not None)
        if not folder.has(f"{PLAN}{kept.version}"):
            kept.write(folder)
        job = SparkJob(
            plan,
            layout.shards if layout else first,
            run,
            unguessable_name(str(spark.sparkContext.applicationId)),
            folder.place,
            late or folder.sub("late").place,
            inputs.time_type,
            "table" if isinstance(sink, TableSink) else "changelog",
            sink if isinstance(sink, TableSink) else None,
            feedback=feedback,
            layout=layout,
            upgrade=kept.upgrade,
            state_memory=memory,
            storage=storage,
            epoch=epoch,
        )
        late_folder(job.late).sweep()
        if layout is not None:
            layout.remove_unused(folder)
            if isinstance(sink, TableSink):
                sink.split_shards = job.split_cells
        running = RunningQuery(spark, job, inputs, sink, folder, dict(trigger or {}), close, name, lock, query)
        if wanted is not None and wanted != job.shards:
            running.rescale(wanted)
        running.begin()
        return running


@dataclass(frozen=True)
class CheckpointIdentity:
    """What all runs with one checkpoint have in common; its state fits nothing else. Nor does its table: with another
    checkpoint the batches of the same query have other rows, so each checkpoint gets a random name."""

    plan: list[str]
    shards: int
    time_type: pl.DataType
    checkpoint: str

    @property
    def name(self) -> str:
        return f"query {fingerprint(self.plan)} with checkpoint {self.checkpoint}"

    @staticmethod
    def read(folder: Folder) -> "CheckpointIdentity | None":
        content = folder.find("query.json")
        if content is None and folder.sub("state").path_is_there:
            raise folder.damaged("query.json", "it is missing, and only it records to which query the state belongs")
        if content is None:
            return None
        stored = json.loads(content)
        zone = stored["zone"]
        time_type = pl.Datetime("us", zone) if stored["timestamps"] else pl.Int64()
        return CheckpointIdentity(stored["plan"], stored["shards"], time_type, stored["checkpoint"])

    def write(self, folder: Folder) -> None:
        folder.make()
        timestamps = isinstance(self.time_type, pl.Datetime)
        zone = self.time_type.time_zone if isinstance(self.time_type, pl.Datetime) else None
        content = {"plan": self.plan, "shards": self.shards, "timestamps": timestamps, "zone": zone}
        folder.write_once("query.json", json.dumps({**content, "checkpoint": self.checkpoint}, indent=1).encode())

    def check(self, lines: list[str], folder: Folder) -> None:
        """In a checkpoint of an earlier version, which has not recorded its operators."""
        if self.plan != lines:
            old, new = first_difference(self.plan, lines)
            raise QueryError(
                f"the checkpoint {folder.place} belongs to another query. It has:\n  {old}\nthis query has:\n  {new}\n"
                "Use a new checkpoint, or run the query it belongs to. An earlier version of cedr wrote it: once that "
                "query has run with this version, some changes are possible (docs/upgrading.md)"
            )


def plan_for(
    folder: Folder, before: CheckpointIdentity | None, plan: StagedPlan, lines: list[str], layout: Layout
) -> tuple[KeptPlan, ChangedQuery | None]:
    """The plan that the checkpoint has from this start on; and how it has changed, if it has."""
    record = record_of(plan, lines)
    kept = KeptPlan.read(folder) if before else None
    if before is None or kept is None:
        if before is not None:
            before.check(lines, folder)
        return KeptPlan(record), None
    if kept.record.lines == record.lines:
        return kept, None
    changed = Checkpoint(folder, layout, last_committed(folder), last_planned(folder)).changed(kept, record)
    return changed.plan, changed


def last_committed(folder: Folder) -> int | None:
    """The newest micro-batch that Spark has committed."""
    return max(numbers(Folder(f"{spark_checkpoint(folder)}/commits")), default=None)


def last_planned(folder: Folder) -> int | None:
    """The newest micro-batch that Spark has begun."""
    return max(numbers(Folder(f"{spark_checkpoint(folder)}/offsets")), default=None)


# --- the tasks ----------------------------------------------------------------------------------------------------


def pipeline(job: SparkJob, packed: PackedJob, packets: DataFrame, placement: Placement | None = None) -> DataFrame:
    """Packets through all stages; the result has the columns of the answer, and the metrics."""
    for stage in job.plan.stages:
        if placement is None:
            arrived = packets.repartitionById(job.shards, shard_of_packet(job))
        else:
            arrived = placement.bring(packets, shard_of_packet(job))
        if stage.number < job.last:
            packets = arrived.mapInArrow(stage_task(packed, stage.number), SPARK_SCHEMA)
    return arrived.mapInArrow(last_task(packed, job.last), answer_schema(job))


def shard_of_packet(job: SparkJob) -> Column:
    """The shard that works on the cell to which a packet goes."""
    if job.layout is None:
        return sf.col("shard")
    shards = {(stage.number, c.number): c.shard for stage in job.plan.stages for c in job.cells(stage.number)}
    pairs = [sf.lit(n) for (stage, cell), shard in shards.items() for n in (stage * SPACE + cell, shard)]
    return sf.element_at(sf.create_map(*pairs), sf.col("stage") * sf.lit(SPACE) + sf.col("shard"))


Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def stage_task(job: PackedJob, number: int) -> Task:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        mine, passing = sorted_out(batches, number)
        yield from to_batches(passing)
        shard, batch = shard_and_batch()
        for cell in job.open().cells_of(number, shard):
            answer = request_answer(job, number, cell, batch, [p for p in mine if p.shard == cell], shard)
            yield from to_batches(answer.packets)
            yield from to_batches([answers.metrics_packet(job.open(), answer.metrics)])

    return lambda batches: in_worker(run(batches))


def last_task(job: PackedJob, number: int) -> Task:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        mine, _ = sorted_out(batches, number)
        shard, batch = shard_and_batch()
        opened = job.open()
        yield from answers.metrics_batches(opened, [p for p in mine if p.kind == "metrics"])
        for cell in opened.cells_of(number, shard):
            given = [p for p in mine if p.shard == cell and p.kind != "metrics"]
            yield from answers.batches(opened, cell, request_answer(job, number, cell, batch, given, shard), batch)

    return lambda batches: in_worker(run(batches))


def sorted_out(batches: Iterator[pa.RecordBatch], number: int) -> tuple[list[Packet], list[Packet]]:
    """The packets for this stage, and those for later ones."""
    packets = [packet for batch in batches for packet in from_batch(batch)]
    return [p for p in packets if p.stage == number], [p for p in packets if p.stage != number]


def shard_and_batch() -> tuple[int, int]:
    """The shard this task is for, and the micro-batch it belongs to."""
    context = TaskContext.get()
    assert context is not None
    batch = context.getLocalProperty(BATCH_ID)
    assert batch is not None
    return context.partitionId(), int(batch)


# --- the running query --------------------------------------------------------------------------------------------


class RunningQuery:
    """A running query. `spark_query` is Spark's own handle."""

    spark_query: StreamingQuery

    def __init__(
        self,
        spark: SparkSession,
        job: SparkJob,
        inputs: Inputs,
        sink: TableSink | Changelog,
        folder: Folder,
        trigger: dict[str, Any],
        close: bool,
        name: str | None,
        lock: Lock,
        query: Level,
    ) -> None:
        self.spark, self.job, self.inputs, self.sink = spark, job, inputs, sink
        self.folder, self.trigger, self.close, self.name, self.lock = folder, trigger, close, name, lock
        self.control, self.query = folder.sub("control"), query
        self._earlier: list[Any] = []
        self.placement: Placement | None = None
        """Where shards are, if there are several executors."""
        self.ended = threading.Event()
        self.replaced: CedrError | None = None
        """Why it was stopped, if another driver has taken over its checkpoint."""
        if job.epoch is not None:
            threading.Thread(target=self._watch, args=(job.epoch,), daemon=True).start()

    def _watch(self, epoch: Epoch) -> None:
        """A query that has nothing to do would not notice that it was replaced."""
        while not self.ended.wait(WATCH_SECONDS):
            try:
                epoch.check()
            except ReplacedError as e:
                self.replaced = e
                self.spark_query.stop()
                return
            except CedrError:
                continue  # the store does not answer now

    def begin(self) -> None:
        try:
            self.spark_query = start_until_running(self._begin)
        except Exception as e:  # Java found damaged files of its own
            if (ours := cedr_error_inside(e)) is not None:
                raise ours from None
            raise
        self.lock.in_use = lambda: self.spark_query.isActive
        if self.placement is not None:
            self.placement.watch(lambda: self.spark_query.isActive, self.ended)

    def rescale(self, shards: int) -> None:
        """Before it begins: another number of shards. A micro-batch that was interrupted is finished before."""
        from cedr.runtime.spark.shard.rescale import rescale, whole_stages  # loads all operators

        if shards < 1:
            raise QueryError(f"shards={shards}: there must be at least one shard")
        last = last_committed(self.folder)
        if last_planned(self.folder) != last:
            self._finish_batch()
            last = last_committed(self.folder)
        self.job = rescale(self.job, shards, -1 if last is None else last)
        for stage, why in whole_stages(self.job):
            has = len(self.job.cells(stage.number))
            warnings.warn(
                f"stage {stage.number} does not use more than {has} of the {shards} shards, as its state cannot be "
                f"split: {why}",
                CedrWarning,
                stacklevel=4,
            )
        if isinstance(self.sink, TableSink):
            self.sink.split_shards = self.job.split_cells

    def _finish_batch(self) -> None:
        """Its rows are logged by the cells that there were, and maybe committed by the sink."""
        trigger, self.trigger = self.trigger, {"once": True}
        try:
            self.begin()
            self.spark_query.awaitTermination()
        except StreamingQueryException as e:
            self._end()
            if (ours := cedr_error_inside(e)) is not None:
                raise in_user_times(ours, self.job.time_type) from None
            raise
        self.trigger = trigger
        self.job = replace(self.job, run=uuid.uuid4().hex)

    def _begin(self) -> StreamingQuery:
        packed = self.job.packed()
        packets = self.inputs.packets(self.job, packed, self.close and not self.closes_apart)
        if self.closes_apart:
            self.control.make()
            lines = self.spark.readStream.schema("value string").text(for_spark(self.control.place))
            packets = packets.unionAll(lines.mapInArrow(closing_task(packed), SPARK_SCHEMA))
        with settings_for(self.spark, self._settings()):
            self._place()
            answer = answers.observed(pipeline(self.job, packed, packets, self.placement), self.job)
            if isinstance(self.sink, Changelog):
                answer = self.sink.shape(answer)
            writer = answer.writeStream.option("checkpointLocation", for_spark(spark_checkpoint(self.folder)))
            if self.trigger:
                writer = writer.trigger(**self.trigger)
            if self.name:
                writer = writer.queryName(self.name)
            if isinstance(self.sink, TableSink):
                return writer.foreachBatch(committer(self.sink, self.job.epoch)).start()
            return self.sink.start(writer)

    def _place(self) -> None:
        """Choose executors for the shards, if there are several."""
        if not has_executors(self.spark) or (self.placement and self.placement.shards == self.job.shards):
            return
        if self.placement is not None:
            self.placement.end()
        self.placement = Placement(self.spark, self.job.shards, self.job.run)

    def _settings(self) -> dict[str, str]:
        only_packets = self.inputs.packed and isinstance(self.sink, TableSink)
        return {**QUICK, **(QUICK_PACKETS if only_packets else {}), **(QUICK_LOCAL if self.folder.local else {})}

    def await_termination(self, timeout: int | None = None) -> bool:
        """Wait until the query has ended; False after `timeout` seconds. Raises the error that stopped it."""
        try:
            if not self.spark_query.awaitTermination(timeout) and timeout is not None:
                return False
            if self.closes_apart and not self.control.names() and self.replaced is None:
                self._close()
        except StreamingQueryException as e:
            self._end()
            if (ours := self.replaced or cedr_error_inside(e)) is not None:
                raise in_user_times(ours, self.job.time_type) from None
            raise
        self._end()
        if self.replaced is not None:
            raise self.replaced
        self._warn_of_late(stacklevel=2)
        return True

    @property
    def closes_apart(self) -> bool:
        """Spark does not report when it has read all of a DataFrame, so the query is restarted to close it."""
        return self.close and not self.inputs.packed

    def _close(self) -> None:
        """After all input has been read: declare its end, in a separate micro-batch."""
        self.control.write_plain("close", b"close\n")
        self._earlier += self.spark_query.recentProgress
        self.begin()
        self.spark_query.awaitTermination()

    @property
    def is_active(self) -> bool:
        return self.spark_query.isActive

    def stop(self, timeout: float = 60.0) -> None:
        """Stop after the current micro-batch, or after `timeout` seconds in the middle of it."""
        deadline = time.monotonic() + timeout
        while self.spark_query.isActive and self.spark_query.status["isTriggerActive"] and time.monotonic() < deadline:
            if not self.spark_query.status["isDataAvailable"] or self.trouble is not None:
                break
            time.sleep(0.02)
        if self.trouble is not None:
            self.sink.close()  # Spark waits for the commit, which waits for the store
        self.spark_query.stop()
        self._end()

    def _end(self) -> None:
        self.sink.close()
        self.ended.set()
        if self.placement is not None:
            self.placement.end()
        announce_query_end(self.job.application, self.job.run)
        self.lock.release()

    @property
    def trouble(self) -> str | None:
        """What the sink waits for, if its store is unreachable; the query continues when it is reachable again."""
        return self.sink.trouble if isinstance(self.sink, TableSink) else None

    @property
    def progress(self) -> list[Any]:
        """Spark's reports of the last micro-batches; `observedMetrics["cedr"]` contains ours."""
        return [*self._earlier, *self.spark_query.recentProgress]

    def metrics(self) -> pl.DataFrame:
        """One row per stage, shard and operator: its input, output and state."""
        return answers.read_metrics(self.folder.sub("metrics"))

    def why_waiting(self) -> WhyWaiting:
        """What holds the query back after the last micro-batch: a source, partition or key, or a promise."""
        missing = [text for finding in analyse(optimize(self.query).plan) for text in finding.missing]
        return why_query_waits(self.job, missing)

    def _warn_of_late(self, stacklevel: int) -> None:
        observed = (progress.observedMetrics.get("cedr") for progress in self.progress)
        if any(metrics and metrics["late"] for metrics in observed):
            warn_of_late(counted(self.late()), stacklevel + 1)

    def late(self) -> pl.DataFrame:
        """All late rows so far, with the reason."""
        return read_late(late_folder(self.job.late))

    def table(self) -> pl.DataFrame:
        """The contents of the sink."""
        if not isinstance(self.sink, TableSink):
            raise QueryError("a changelog is not a table; read the output of its sink")
        return self.sink.read()


@contextmanager
def settings_for(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings for a query that is started meanwhile, which keeps a copy; the session's own are restored. Starts in
    other threads wait, or one would take the other's settings for the session's own."""
    with SETTING:
        before = {name: spark.conf.get(name, None) for name in settings}
        for name, value in settings.items():
            spark.conf.set(name, value)
        try:
            yield
        finally:
            for name, old in before.items():
                if old is None:
                    spark.conf.unset(name)
                else:
                    spark.conf.set(name, old)


def closing_task(job: PackedJob) -> Task:
    """Declares the end of all sources."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if sum(batch.num_rows for batch in batches):
            opened = job.open()
            for source in opened.plan.sources:
                yield from to_batches(closing(opened, source))

    return run


def committer(sink: TableSink, epoch: Epoch | None) -> Callable[[DataFrame, int], None]:
    def commit(frame: DataFrame, batch: int) -> None:
        prepared = frame.toArrow().column("blob").to_pylist()
        try:
            if epoch is not None:
                epoch.check()
            sink.commit(batch, [blob for blob in prepared if blob is not None])
        except CedrError as e:
            raise task_error(kind_of(e), str(e)) from None

    return commit
