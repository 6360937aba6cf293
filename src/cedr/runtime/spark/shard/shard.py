"""One shard of one stage: the engine that holds its state, and the version it is at.

The version is the number of the last micro-batch that was processed. The next batch is processed while it is logged,
and answered when the log is on disk; a repeated batch gets the same answer again; for any other the shard is rebuilt
from its snapshot and log. So a task that runs twice, on two machines or after a crash, changes nothing.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, groupby, pairwise
from typing import Any, NamedTuple

import polars as pl

from cedr.columnar.chunk import Chunk, concat, concat_rows, empty
from cedr.columnar.promises import Promises
from cedr.columnar.stored import incremental
from cedr.operators.align import AlignOperator
from cedr.operators.finalize.finalize import FinalizeOperator
from cedr.operators.late import Late, LateStream
from cedr.plan.changes import FIRST_VERSION
from cedr.plan.fragment import Input
from cedr.plan.partitioning import Exchange
from cedr.runtime.change_level import OUTPUT, Place
from cedr.runtime.described import described
from cedr.runtime.engine import Engine
from cedr.runtime.spark.driver.job import SparkJob
from cedr.runtime.spark.driver.late_files import late_folder, write_late
from cedr.runtime.spark.reader.batch_time import sync_notes
from cedr.runtime.spark.reader.packer import highest_of, highest_packets, row_packets
from cedr.runtime.spark.shard.packet import Highest, Packet, from_blob, from_header, to_blob, to_header
from cedr.runtime.spark.shard.state import SOURCE_STATUS, SpillFile, StateStore, state_folder
from cedr.runtime.spark.shard.upgrade import plan_version, take_over
from cedr.runtime.spark.shard.upstream import Upstream
from cedr.sinks.readable import readable
from cedr.sources.progress import SourceProgress
from cedr.sources.source_status import source_status
from cedr.storage.folder import Folder
from cedr.storage.plain import allowed
from cedr.storage.snapshots import SNAPSHOT, file_name
from cedr.temporal.time import INF, MIN


@allowed
class ShardMetrics(NamedTuple):
    """Metrics of a shard for one micro-batch, and its state after it."""

    stage: int
    shard: int
    rows_in: int
    rows_out: int
    adjusts_out: int
    late: int
    state_rows: int
    state_bytes: int
    cti: int
    replayed: int
    """Rows of earlier micro-batches that were processed again, because another executor had processed them."""
    moved: int
    """Whether the engine had to be rebuilt from a snapshot, or had missed micro-batches: 0 or 1."""


class Answer(NamedTuple):
    """`blob` is for the sink: the result of its `prepare`, or the rows of the changelog."""

    packets: list[Packet]
    blob: bytes
    metrics: ShardMetrics


class Shard:
    def __init__(self, job: SparkJob, stage: int, shard: int) -> None:
        self.job, self.number, self.shard = job, stage, shard
        self.stage, self.is_last = job.stage(stage), stage == job.last
        folder = Folder(job.folder)
        self.store = StateStore(state_folder(job.folder, stage, shard))
        self.late_folder, self.metrics_folder = late_folder(job.late), folder.sub("metrics")
        self.status_folder = folder.sub(SOURCE_STATUS)
        for written in (self.late_folder, self.metrics_folder, self.status_folder):
            written.make()
        self.core: Core | None = None
        self.version: int | None = None
        self.answer: Answer | None = None
        self.replayed = self.moved = 0

    def process(self, batch: int, packets: list[Packet]) -> Answer:
        """Process a micro-batch, once, and return the answer."""
        if self.version == batch and self.answer is not None:
            return self.answer
        self.replayed = self.moved = 0
        try:
            answer = self._processed(batch, sorted(packets, key=lambda p: p.place))
        except BaseException:
            self.core, self.version, self.answer = None, None, None  # the state in memory may be incomplete
            raise
        self.version, self.answer = batch, answer
        return answer

    def _processed(self, batch: int, packets: list[Packet]) -> Answer:
        """What is written before the log is published has names of its own, and counts only if the batch does."""
        self.job.check_newest()
        if not self.store.has(batch):
            core = self.core_after(batch - 1)
            self.version = None
            with self.store.logging(batch, packets, lambda: self._sync_notes(batch)) as is_logged:
                worked = self._work(core, batch, packets)
                if is_logged():
                    return self._answer(core, batch, packets, worked)
            self.core = None  # another process was first, with the same rows in other packets
        core, packets = self.core_after(batch - 1), self.store.logged_again(batch)
        self.version = None
        return self._answer(core, batch, packets, self._work(core, batch, packets))

    def _sync_notes(self, batch: int) -> None:
        if self.number == 1:  # later stages run after all shards of the first
            sync_notes(self.job, batch)

    def tidy(self, ending: bool = False) -> None:
        """Deferred work, done after the answer was sent: a snapshot, when one is due. When the query is `ending`, one
        is due if anything was logged since the last: a changed query can only start from a snapshot."""
        due = self.store.due or (ending and self.store.log_batches > 0)
        if self.core is not None and self.version is not None and due:
            self.job.check_newest()
            core = self.core
            self.store.snapshot(self.version, core.increment(), core.described(), lambda: core.increment(afresh=True))

    def core_after(self, version: int) -> "Core":
        """The shard after a batch; -1 is before the first."""
        if self.core is None or self.version is None or not self._is_on_the_way(version):
            self._rebuild(version)
        assert self.core is not None
        assert self.version is not None
        for batch in range(self.version + 1, version + 1):
            packets = self.store.logged(batch)
            self.core.work(packets)
            self.replayed, self.moved = self.replayed + self._rows(self.core, packets), 1
        self.version = version
        return self.core

    def _is_on_the_way(self, version: int) -> bool:
        """Whether the state in memory only lacks batches that another process has processed and logged."""
        assert self.version is not None
        return self.version == version or (self.version < version and self.store.has(self.version + 1))

    def _rebuild(self, version: int) -> None:
        """From the newest snapshot that is not after this version, if there is one."""
        self.core = Core(self.job, self.number, self.shard, self.store)
        self.moved = int(version >= 0)
        self.version, state = self.store.newest_snapshot(version + 1) or (-1, None)
        self._check_plan(self.version, state)
        if state is not None:
            try:
                self.core.load(state)
            except Exception as error:  # its checksum is right, but nothing else is known of it
                raise self.store.unreadable(self.version, error) from error

    def _check_plan(self, version: int, state: Any) -> None:
        """The packets between the last snapshot of the query before and its change cannot be processed by this one."""
        change = self.job.upgrade
        if change is not None and version != change.batch and plan_version(state) < change.version:
            file = file_name(SNAPSHOT, change.batch)
            raise self.store.folder.damaged(file, "it is missing, and the changed query starts from it")

    def _work(self, core: "Core", batch: int, packets: list[Packet]) -> "ShardOutput":
        worked = core.work(packets)
        spill = SpillFile(self.job.folder, batch)
        leaving = [p for number, to in self.stage.outputs for p in core.leaving(number, to, worked, spill)]
        out = worked.outputs[self.stage.fragment.output]
        blob = self._blob(batch, out, core.ctis_out[self.stage.fragment.output]) if self.is_last else b""
        return ShardOutput(out if self.is_last else empty({}), worked.late, leaving, blob)

    def _answer(self, core: "Core", batch: int, packets: list[Packet], output: "ShardOutput") -> Answer:
        late = self._write_late(batch, output.late)
        rows = self._rows(core, packets)
        operators = core.engine.metrics()
        self._write_metrics(batch, operators)
        self._write_status(core)
        emitted = output.emitted
        metrics = ShardMetrics(
            self.number,
            self.shard,
            rows,
            len(emitted),
            len(emitted) - int(emitted.is_insert.sum()),
            late,
            int(operators["state_rows"].sum()),
            int(operators["state_bytes"].sum()),
            core.ctis_out[self.stage.fragment.output],
            self.replayed,
            self.moved,
        )
        return Answer(output.packets, output.blob, metrics)

    @staticmethod
    def _rows(core: "Core", packets: list[Packet]) -> int:
        return sum(p.rows for p in packets if f"#{p.exchange}" not in core.reported_elsewhere)

    def _blob(self, batch: int, out: Chunk, cti: int) -> bytes:
        if self.job.sink is None:
            return to_blob(out.rows)
        return self.job.sink.prepare(self.shard, batch, Chunk(out.rows, cti))

    def _write_late(self, batch: int, frames: list[pl.DataFrame]) -> int:
        """To a file named after their origin, so that a second attempt replaces the first."""
        if not frames:
            return 0
        rows = readable(pl.concat(frames, how="diagonal_relaxed"), self.job.time_type, self.job.plan.schema)
        write_late(self.late_folder, f"{batch:012d}-{self.number}-{self.shard}", rows)
        return rows.height

    def _write_metrics(self, batch: int, operators: pl.DataFrame) -> None:
        where = {"batch": batch, "stage": self.number, "shard": self.shard}
        frame = operators.select(*(pl.lit(value).alias(name) for name, value in where.items()), pl.all())
        self.metrics_folder.write(f"{self.number}-{self.shard}", to_blob(frame), sync="none")

    def _write_status(self, core: "Core") -> None:
        """Every shard knows the progress of the sources, so it is enough that one writes it."""
        if self.shard == self.job.cells(self.number)[0].number and core.progress:
            found = [source_status(progress) for progress in core.progress.values()]
            self.status_folder.write(str(self.number), to_header(found), sync="none")


class ShardOutput(NamedTuple):
    """What a shard made of a micro-batch; `emitted` are the changes of the last stage."""

    emitted: Chunk
    late: list[pl.DataFrame]
    packets: list[Packet]
    blob: bytes


class Worked(NamedTuple):
    outputs: dict[Input, Chunk]
    late: list[pl.DataFrame]


class Core:
    """The state of a shard: the engine, the progress of the sources, and the progress of earlier stages."""

    def __init__(self, job: SparkJob, number: int, shard: int, store: StateStore) -> None:
        self.job, self.shard, self.store = job, shard, store
        self.stage = job.stage(number)
        self.engine = Engine(self.stage.fragment)
        first = job.cells(number)[0].number
        self.reported_elsewhere = self.stage.reported_elsewhere(int(shard != first))
        self.paths = [(path, Engine(path.fragment)) for path in job.paths_into(number)]
        names = {path.source for path, _ in self.paths}
        sources = job.plan.sources
        self.progress = {name: SourceProgress(sources[name], counts=sources[name].external) for name in sorted(names)}
        self.upstream: dict[str, Upstream] = {}
        self.ctis_in: dict[str, int] = defaultdict(lambda: MIN)
        self.ctis_out: dict[Input, int] = defaultdict(lambda: MIN)
        self.entering: dict[Place, Chunk] = {}
        """Rows that operators of the query before held back, to be processed with the next micro-batch."""

    def work(self, packets: list[Packet]) -> Worked:
        """Process the packets of a micro-batch, round by round; they are sorted."""
        assert all(a.place <= b.place for a, b in pairwise(packets)), "packets are not sorted"
        outputs: dict[Input, list[Chunk]] = defaultdict(list)
        late = [from_blob(p.blob) for p in packets if p.kind == "late"]
        needed: set[Input] = {self.stage.fragment.output, *(number for number, _ in self.stage.outputs)}
        rounds = groupby((p for p in packets if p.kind != "late"), key=lambda p: p.seq)
        for arrived in chain(self._released(outputs), (self._arrived(list(round_)) for _, round_ in rounds)):
            emitted = self.engine.feed(arrived, self.entering)
            self.entering = {}
            for number in needed & emitted.keys():
                outputs[number].append(emitted[number].without_files())
                self.ctis_out[number] = max(self.ctis_out[number], emitted[number].cti)
            late += [self.engine.take_late(self.reported_elsewhere), *self._broken()]
        schemas = {number: self._schema(number) for number in needed}
        return Worked(
            {number: concat(outputs[number]) if outputs[number] else empty(schemas[number]) for number in needed},
            [frame for frame in late if frame.height],
        )

    def _released(self, outputs: dict[Input, list[Chunk]]) -> list[dict[str, Chunk]]:
        """A round of its own, without input, if operators of the query before held rows back."""
        if not self.entering:
            return []
        if (rows := self.entering.pop(OUTPUT, None)) is not None:
            outputs[self.stage.fragment.output].append(rows)
        return [{}]

    def leaving(self, number: Input, exchange: Exchange, worked: Worked, spill: SpillFile) -> Iterator[Packet]:
        """Packets for a later stage: the rows by shard, and our progress for every shard."""
        cells = self.job.cells(exchange.stage)
        yield from row_packets(worked.outputs[number].rows, exchange, cells, self.shard, 0, spill)
        yield from highest_packets(highest_of(worked.outputs[number]), exchange, cells, self.shard, 0)
        header = to_header((self.ctis_out[number], worked.outputs[number].promises))
        for cell in cells:
            yield Packet(exchange.stage, cell.number, "cti", exchange.number, self.shard, 0, header)

    def _arrived(self, packets: list[Packet]) -> dict[str, Chunk]:
        """The rows of each exchange in this round and the progress after them."""
        rows: dict[str, list[tuple[pl.DataFrame, tuple[str, ...]]]] = defaultdict(list)
        reports: dict[str, list[Any]] = defaultdict(list)
        for packet in packets:
            match packet.kind:
                case "rows":
                    rows[f"#{packet.exchange}"].append(self.store.rows_of_files(packet))
                case "progress":
                    source, new = from_header(packet.header)
                    reports[source] += new
                case "cti":
                    upstream = self._upstream(f"#{packet.exchange}")
                    upstream.update(packet.origin, *from_header(packet.header))
                case "highest":
                    self._note_highest(f"#{packet.exchange}", from_header(packet.header))
                case "close":
                    # Without a name it is from a log of an earlier version, when all sources closed at once.
                    for source in [from_header(packet.header)] if packet.header else self.progress:
                        self.progress[source].cti = INF
                case "feedback":
                    self.engine.skip_before(from_header(packet.header))
        for source, new in reports.items():
            self.progress[source].update(new)
        promised = {source: progress.take_promises() for source, progress in self.progress.items()}
        return {name: self._chunk(name, rows[name], promised) for name in self.stage.fragment.sources}

    def _upstream(self, name: str) -> Upstream:
        """The progress of the earlier stage in an exchange."""
        if name not in self.upstream:
            origin = self.job.origin_of(name)
            within = partial(self.job.cells_within, origin)
            self.upstream[name] = Upstream(len(self.job.cells(origin)), within)
        return self.upstream[name]

    def _note_highest(self, name: str, highest: Highest) -> None:
        """Finalize and Align measure from the highest time in the whole stream; most of it is in other shards."""
        after: Input = name
        for number, step in enumerate(self.engine.fragment.steps):
            operator = self.engine.operators[number]
            if step.inputs == (after,) and isinstance(operator, FinalizeOperator | AlignOperator):
                operator.note_highest(highest.sync if isinstance(operator, FinalizeOperator) else highest.start)
                after = number

    def _chunk(
        self, name: str, parts: list[tuple[pl.DataFrame, tuple[str, ...]]], promised: Mapping[str, Promises]
    ) -> Chunk:
        """`promised` are the new promises about parts of each source."""
        schema = self.stage.fragment.sources[name].schema
        rows, files = concat_rows(parts) if parts else (empty(schema).rows, ())
        for path, engine in self.paths:
            if path.exchange.name == name:
                source = self.job.plan.sources[path.source]
                progress = empty(source.schema, self.progress[path.source].cti)
                emitted = engine.push(path.source, replace(progress, promises=promised[path.source]))
                self.ctis_in[name] = max(self.ctis_in[name], emitted.cti)
                return Chunk(rows, self.ctis_in[name], promises=emitted.promises, files=files)
        upstream = self.upstream.get(name)
        return Chunk(rows, upstream.cti, promises=upstream.take_promises()) if upstream else Chunk(rows)

    def _broken(self) -> Iterator[pl.DataFrame]:
        """External CTIs that cannot be right."""
        for name, progress in self.progress.items():
            late = LateStream(self.job.plan.sources[name].schema)
            for cti, reason, promise in progress.take_broken():
                late.add(Late.of_external(cti, 0, reason, promise, late.schema))
            yield late.take()

    def _schema(self, number: Input) -> dict[str, pl.DataType]:
        fragment = self.stage.fragment
        return fragment.sources[number].schema if isinstance(number, str) else fragment.steps[number].node.schema

    def described(self) -> list[dict[str, Any]]:
        """The operators, for the list in a snapshot."""
        names = self.job.identities[self.stage.number]
        found = described(f"stage {self.stage.number}", self.engine, names)
        for path, engine in self.paths:
            found += described(f"path {path.source} -> {path.exchange.name}", engine)
        return found

    def save(self) -> dict[str, Any]:
        """The state as plain data, which shares what never changes."""
        assert not self.entering, "rows of the query before are not processed yet"
        return {
            "plan": self.job.upgrade.version if self.job.upgrade else FIRST_VERSION,
            "engine": self.engine.snapshot(),
            "paths": [engine.snapshot() for _, engine in self.paths],
            "progress": {name: progress.snapshot() for name, progress in self.progress.items()},
            "upstream": {name: upstream.snapshot() for name, upstream in self.upstream.items()},
            "ctis_in": dict(self.ctis_in),
            "ctis_out": dict(self.ctis_out),
        }

    def increment(self, afresh: bool = False) -> dict[str, Any]:
        """The same, to be written at once: it refers to tables that are stored already, unless it is made afresh."""
        with incremental(afresh):
            return self.save()

    def load(self, state: dict[str, Any]) -> None:
        change = self.job.upgrade
        if change is not None and plan_version(state) < change.version:
            take_over(self, state, change)
            return
        self.engine.restore(state["engine"])
        for (_, engine), saved in zip(self.paths, state["paths"], strict=True):
            engine.restore(saved)
        self.load_progress(state)
        self.ctis_out.update(state["ctis_out"])

    def load_progress(self, state: dict[str, Any]) -> None:
        """How far sources and earlier stages are."""
        for name, saved in state["progress"].items():
            self.progress[name].restore(saved)
        for name, saved in state["upstream"].items():
            self._upstream(name).restore(saved)
        self.ctis_in.update(state["ctis_in"])
