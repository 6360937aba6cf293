"""A query over static DataFrames: the canonical table.

Static rows cannot be late, so they are summed up to tuples, sorted, and sent through the same stages with the progress
that this order allows. A shard needs memory for its input, and for state only what a perfectly ordered stream needs.
"""

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from cedr.columnar.chunk import NEW, OLD, TIMES, VS, Chunk
from cedr.columnar.tally import VE, Tally
from cedr.plan.fragment import Input
from cedr.plan.nodes.level import Level
from cedr.plan.partitioning import staged
from cedr.runtime.engine import Engine
from cedr.runtime.result import unknown_tuples
from cedr.runtime.spark.driver.answers import as_batches
from cedr.runtime.spark.driver.executors import check_executors
from cedr.runtime.spark.driver.inputs import Inputs
from cedr.runtime.spark.driver.job import PackedJob, SparkJob
from cedr.runtime.spark.driver.late_files import late_folder, write_late
from cedr.runtime.spark.driver.remote import share_settings
from cedr.runtime.spark.reader.packer import row_packets
from cedr.runtime.spark.shard.packet import SPARK_SCHEMA, Packet, from_batch, from_blob, to_batches
from cedr.runtime.spark.shard.worker import in_worker
from cedr.sinks.readable import readable, table_of
from cedr.sinks.spark_types import spark_schema
from cedr.sources.ingest import wall_clock
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF

ROWS_AT_ONCE = 200_000


def batch(
    query: Level, spark: SparkSession, data: Any, *, shards: int | None = None, late: str | None = None
) -> DataFrame:
    """See `Stream.batch`."""
    plan, storage = staged(query), share_settings(spark)
    inputs = Inputs(spark, plan, data, streaming=False)
    inputs.check_lengths(query)
    check_executors(spark)
    job = SparkJob(
        plan,
        shards or spark.sparkContext.defaultParallelism,
        uuid.uuid4().hex,
        "",
        "",
        late or "",
        inputs.time_type,
        at=wall_clock(),
        storage=storage,
    )
    if late:
        late_folder(late).make()
    packed = job.packed()
    packets = inputs.packets(job, packed)
    for stage in plan.stages:
        arrived = packets.repartitionById(job.shards, "shard")
        if stage.number < job.last:
            packets = arrived.mapInArrow(task(packed, stage.number), SPARK_SCHEMA)
    return arrived.mapInArrow(task(packed, job.last), spark_schema(no_table(job).schema))


def no_table(job: SparkJob) -> pl.DataFrame:
    return table_of(Tally(job.plan.schema), job.time_type)


def task(job: PackedJob, number: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        packets = [packet for batch in batches for packet in from_batch(batch)]
        shard = BatchShard(job.open(), number, context.partitionId())
        yield from to_batches(packet for packet in packets if packet.stage != number)
        yield from shard.work([packet for packet in packets if packet.stage == number])

    return lambda batches: in_worker(run(batches))


class BatchShard:
    def __init__(self, job: SparkJob, number: int, shard: int) -> None:
        self.job, self.number, self.shard = job, number, shard
        self.stage = job.stage(number)
        self.engine = Engine(self.stage.fragment)
        self.reported_elsewhere = self.stage.reported_elsewhere(shard)
        self.late: list[pl.DataFrame] = []

    def work(self, packets: list[Packet]) -> Iterator[pa.RecordBatch]:
        """The answer to all packets: packets for later stages, or the rows of the table."""
        self.late += [from_blob(packet.blob) for packet in packets if packet.kind == "late"]
        tallies: dict[Input, Tally] = {number: self._tally(number) for number, _ in self.stage.outputs}
        is_last = self.number == self.job.last
        if is_last:
            tallies[self.stage.fragment.output] = Tally(self.job.plan.schema, patience=INF)
        for arrived in slices(self._inputs(packets)):
            outputs = self.engine.feed(arrived)
            for number in tallies.keys() & outputs.keys():
                tallies[number].add(outputs[number])
            self.late.append(self.engine.take_late(self.reported_elsewhere))
        for number, exchange in self.stage.outputs:
            rows = as_inserts(tallies[number].table())
            yield from to_batches(row_packets(rows, exchange, self.job.cells(exchange.stage), self.shard, 0))
        if is_last:
            answer = tallies[self.stage.fragment.output]
            self.late.append(unknown_tuples(answer))
            yield from as_batches(table_of(answer, self.job.time_type))
        self._report_late()

    def _tally(self, number: Input) -> Tally:
        fragment = self.stage.fragment
        schema = fragment.sources[number].schema if isinstance(number, str) else fragment.steps[number].node.schema
        return Tally(schema, patience=INF)

    def _inputs(self, packets: list[Packet]) -> dict[str, pl.DataFrame]:
        """The tuples of every exchange, as inserts in time order."""
        frames: dict[str, list[pl.DataFrame]] = defaultdict(list)
        for packet in sorted(packets, key=lambda p: p.place):
            if packet.kind == "rows":
                frames[f"#{packet.exchange}"].append(from_blob(packet.blob))
        return {name: self._tuples(name, frames[name]) for name in self.stage.fragment.sources}

    def _tuples(self, name: str, frames: list[pl.DataFrame]) -> pl.DataFrame:
        schema = self.stage.fragment.sources[name].schema
        rows = pl.concat(frames) if frames else pl.DataFrame(schema={**dict.fromkeys(TIMES, pl.Int64), **schema})
        if (rows[OLD] == rows[VS]).all():
            return rows.sort(VS, maintain_order=True)
        tally = Tally(schema, patience=INF)
        tally.add(Chunk(rows))
        if name not in self.reported_elsewhere:
            self.late.append(unknown_tuples(tally))
        return as_inserts(tally.table())

    def _report_late(self) -> None:
        late = [frame for frame in self.late if frame.height]
        if not late:
            return
        rows = readable(pl.concat(late, how="diagonal_relaxed"), self.job.time_type, self.job.plan.schema)
        if not self.job.late:
            message = rows["_message" if "_message" in rows.columns else "message"][0]
            raise QueryError(
                f"{rows.height} rows cannot be used; the first: {message}. "
                'With late="folder" such rows are written there and the query continues without them'
            )
        write_late(late_folder(self.job.late), f"{self.number}-{self.shard}", rows)


def as_inserts(tuples: pl.DataFrame) -> pl.DataFrame:
    """Tuples `_vs`, `_ve` and payload as rows of a chunk, in order of their starts."""
    names = [name for name in tuples.columns if name not in (VS, VE)]
    return tuples.select(VS, pl.col(VS).alias(OLD), pl.col(VE).alias(NEW), *names)


def slices(inputs: dict[str, pl.DataFrame]) -> Iterator[dict[str, Chunk]]:
    """All inputs in parallel in slices of time, each with the progress after it."""
    starts = {name: rows[VS].to_numpy() for name, rows in inputs.items()}
    together = np.sort(np.concatenate(list(starts.values())))
    cuts = np.unique(together[ROWS_AT_ONCE::ROWS_AT_ONCE])
    places = {name: [0, *np.searchsorted(times, cuts), len(times)] for name, times in starts.items()}
    for i, cti in enumerate([*cuts.tolist(), INF]):
        yield {name: Chunk(rows[places[name][i] : places[name][i + 1]], cti) for name, rows in inputs.items()}
