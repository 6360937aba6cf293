"""A query with files, state, late rows and a table, driven batch by batch in this process as Spark would drive it."""

from collections import defaultdict
from pathlib import Path

import polars as pl

import cedr
from cedr.plan.nodes.level import Level
from cedr.plan.partitioning import staged
from cedr.runtime.spark.driver.job import SparkJob, description
from cedr.runtime.spark.driver.late_files import late_folder, read_late
from cedr.runtime.spark.driver.streaming import CheckpointIdentity
from cedr.runtime.spark.reader.packer import Packer, closing
from cedr.runtime.spark.shard.cells import Layout
from cedr.runtime.spark.shard.packet import Packet
from cedr.runtime.spark.shard.rescale import rescale
from cedr.runtime.spark.shard.shard import Shard
from cedr.runtime.spark.shard.state import SpillFile
from cedr.sinks.base import SinkTable
from cedr.sinks.parquet_table import ParquetSink
from cedr.sources.files.entry import BatchFiles, InputFile, cut
from cedr.sources.files.listing import Stamp
from cedr.sources.files.log import FileLog
from cedr.storage.folder import Folder
from cedr.stream import Stream

BATCHES, ROWS = 6, 12
QUERY = (
    cedr.source("readings", {"k": int, "v": int}, vs="ts", delay=5)
    .tumbling(10)
    .group_by("k")
    .agg(v=cedr.sum("v"))
    .agg(most=cedr.max("v"), n=cedr.count())
)


def rows_of(batch: int) -> pl.DataFrame:
    """Each batch has a row that is late, and goes back a little behind the one before."""
    times = [batch * ROWS + n - (3 if n % 4 == 0 else 0) for n in range(ROWS)]
    if batch > 2:
        times[-1] = 0
    return pl.DataFrame({"ts": times, "k": [t % 3 for t in times], "v": [7 * t % 11 for t in times]})


def expected() -> list[tuple[int, ...]]:
    return QUERY.run(pl.concat(rows_of(batch) for batch in range(BATCHES))).table().rows()


LATE = BATCHES - 3


class SmallRun:
    """One start of the query. `done` is the last batch that Spark has noted as done before it."""

    def __init__(self, place: Path, done: int | None = None, shards: int = 2, query: Stream = QUERY) -> None:
        plan = staged(Level(query.plan))
        self.folder = Folder(str(place / "checkpoint" / "cedr"))
        self.folder.sweep()
        agreed = CheckpointIdentity.read(self.folder)
        if agreed is None:
            agreed = CheckpointIdentity(description(plan, shards), shards, pl.Int64(), "only")
            agreed.write(self.folder)
        assert agreed.plan == description(plan, shards)
        self.sink = ParquetSink(place / "out")
        self.sink.open(SinkTable(agreed.name, dict(plan.schema), pl.Int64(), shards))
        self.sink.check_reached(done)
        self.late = late_folder(self.folder.sub("late").place)
        layout = Layout.read(self.folder)
        now = layout.shards if layout else shards
        places = self.folder.place, self.late.place
        self.job = SparkJob(plan, now, "run", "app", *places, pl.Int64(), "table", sink=self.sink, layout=layout)
        self.sink.split_shards = self.job.split_cells
        self.log = FileLog(Folder(self.folder.sub("files/readings").place, label="files/readings"))
        self.log.check_reached(0 if done is None else done + 1)
        self.work: dict[tuple[int, int], Shard] = {}

    def rescale(self, shards: int, done: int | None) -> None:
        """Go on with another number of shards after the last batch that is done."""
        self.job = rescale(self.job, shards, -1 if done is None else done)
        self.sink.split_shards = self.job.split_cells
        self.work = {}

    def run(self, batch: int, parts: int = 1) -> None:
        """As the micro-batch goes: the files are planned, packed, worked in, and the answer is committed."""
        if self.log.length == batch:
            self.log.append(entry(batch))
        assert self.log.entry(batch + 1) == entry(batch)
        waiting = defaultdict(list)
        for packet in self._packets(batch, parts):
            waiting[packet.stage, packet.shard].append(packet)
        prepared = []
        for stage in range(1, self.job.last + 1):
            for number in [cell.number for cell in self.job.cells(stage)]:
                shard = self.work.setdefault((stage, number), Shard(self.job, stage, number))
                answer = shard.process(batch, waiting[stage, number])
                for packet in answer.packets:
                    waiting[packet.stage, packet.shard].append(packet)
                if stage == self.job.last:
                    prepared.append(answer.blob)
        self.sink.commit(batch, [blob for blob in prepared if blob])
        for shard in self.work.values():
            shard.tidy()

    def _packets(self, batch: int, parts: int) -> list[Packet]:
        if batch == BATCHES:
            return closing(self.job, "readings")
        rows, made = rows_of(batch), []
        size = -(-rows.height // parts)
        for origin, piece in enumerate(rows.iter_slices(size)):
            made += Packer(self.job, "readings", origin, SpillFile(self.job.folder, batch)).packets([piece])
        return made

    def run_from(self, batch: int, parts: int = 1) -> None:
        for number in range(batch, BATCHES + 1):
            self.run(number, parts)

    def table(self) -> list[tuple[int, ...]]:
        return self.sink.read().rows()

    def late_rows(self) -> int:
        return read_late(self.late).height


def entry(batch: int) -> BatchFiles:
    found = (InputFile(f"{batch}.csv", Stamp(1, 1)),)
    return BatchFiles(found, cut(found, 2, by_row_group=False), "number")
