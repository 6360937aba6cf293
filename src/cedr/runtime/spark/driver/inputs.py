"""The input of a query on Spark: a DataFrame, or files, for each of its sources."""

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import Any, NoReturn

import polars as pl
import pyarrow as pa
from polars.exceptions import PolarsError
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from cedr.plan.node import Node
from cedr.plan.nodes.source import Source
from cedr.plan.partitioning import StagedPlan
from cedr.plan.real_lengths import check_lengths
from cedr.plan.schema import check_columns, first_line
from cedr.runtime.spark.driver.executors import check_python_of_driver
from cedr.runtime.spark.driver.job import PackedJob, SparkJob
from cedr.runtime.spark.reader.batch_time import clock_of
from cedr.runtime.spark.reader.packer import ROWS_AT_ONCE, Packer, closing
from cedr.runtime.spark.reader.source import Pack, read_files, time_type_of
from cedr.runtime.spark.shard.packet import BATCH_ID, SPARK_SCHEMA, to_batches
from cedr.runtime.spark.shard.state import SpillFile
from cedr.runtime.spark.shard.worker import in_worker
from cedr.sinks.spark_types import UTC, as_frame
from cedr.sources.calendars import calendar_in, check_calendar
from cedr.sources.event_time import check_times, needed_columns, time_columns
from cedr.sources.files import Files
from cedr.sources.files.reading import Piece, Split
from cedr.sources.files.unreadable import Unreadable
from cedr.sources.user_times import TimeType
from cedr.storage.folder import Folder
from cedr.temporal.errors import QueryError, TimeError

Input = DataFrame | Files


class Inputs:
    """The inputs by source, checked; `time_type` is the type of their times."""

    def __init__(
        self, spark: SparkSession, plan: StagedPlan, data: Any, streaming: bool, before: TimeType | None = None
    ) -> None:
        """`before` is the time type of an earlier run of this query."""
        self.spark, self.plan, self.streaming, self.before = spark, plan, streaming, before
        self.data = by_source(plan, data)
        for name, given in self.data.items():
            check_input(plan.sources[name], given, streaming)
        kinds = {name: self._time_type(plan.sources[name], given) for name, given in self.data.items()}
        if len({isinstance(kind, pl.Datetime) for kind in kinds.values()}) > 1:
            types = ", ".join(f"{name}: {kind}" for name, kind in kinds.items())
            raise QueryError(
                f"the sources use different time types ({types}); convert all of them to timestamps or to whole numbers"
            )
        calendar = calendar_in([*(p.fragment for p in plan.paths), *(s.fragment for s in plan.stages)])
        for name, kind in kinds.items():
            check_calendar(calendar, name, kind)
        self.time_type = next(iter(kinds.values()))

    def check_lengths(self, query: Node) -> None:
        """Durations with a unit require times that have one."""
        if not isinstance(self.time_type, pl.Datetime):
            for name in self.data:
                check_lengths(self.plan.sources[name], query)

    @property
    def packed(self) -> bool:
        """Whether rows become packets before Spark sees them."""
        return all(isinstance(given, Files) for given in self.data.values())

    def packets(self, job: SparkJob, packed: PackedJob, closes: bool = False) -> DataFrame:
        """The packets of all inputs; `closes`: files declare the end of the input, once they are read."""
        frames = []
        for name, given in self.data.items():
            if isinstance(given, Files):
                check_python_of_driver(self.spark)
                log = Folder(job.folder).sub(f"files/{name}").place if self.streaming else None
                source, pack = self.plan.sources[name], packing_files(packed, name)
                frames.append(
                    read_files(self.spark, given, source, pack, SPARK_SCHEMA, log=log, epoch=job.epoch, closes=closes)
                )
            else:
                columns = [f"`{column}`" for column in needed_columns(self.plan.sources[name], given.columns)]
                frames.append(given.select(*columns).mapInArrow(packing_task(packed, name), SPARK_SCHEMA))
        return reduce(DataFrame.unionAll, frames)

    def _unknown(self, source: Source) -> NoReturn:
        raise QueryError(
            f"source {source.name!r}: no file shows yet whether {source.vs!r} contains timestamps (2026-01-31T08:00) "
            f"or whole numbers; add a first file, or declare {source.vs!r} in the schema of the source"
        )

    def _time_type(self, source: Source, given: Input) -> TimeType:
        if isinstance(given, Files):
            return self.before or time_type_of(given, source) or self._unknown(source)
        return spark_time_type(source, given.schema, str(self.spark.conf.get("spark.sql.session.timeZone")))


def packing_files(job: PackedJob, source: str) -> Pack:
    def pack(pieces: Iterator[Piece], split: Split) -> Iterator[pa.RecordBatch]:
        packer = packer_of(job, source, split.origin, in_turn=True)
        bad: list[Unreadable] = []

        def frames() -> Iterator[pl.DataFrame]:
            for piece in pieces:
                if isinstance(piece, Unreadable):
                    bad.append(piece)
                else:
                    yield piece

        yield from to_batches(packer.packets(frames()))
        for piece in bad:
            yield from to_batches(packer.late(piece.late(packer.source)))
        if split.ends:
            yield from to_batches(closing(packer.job, source))

    return pack


def by_source(plan: StagedPlan, data: Any) -> dict[str, Input]:
    names = list(plan.sources)
    if not isinstance(data, Mapping):
        if len(names) > 1:
            example = ", ".join(f'"{name}": ...' for name in names)
            raise QueryError(f"the query reads {len(names)} sources; give the data of each: {{{example}}}")
        return {names[0]: data}
    for name in [*data, *names]:
        if name not in plan.sources:
            raise QueryError(f"the query has no source {name!r}; its sources are {', '.join(map(repr, names))}")
        if name not in data:
            raise QueryError(f"the query reads {name!r}, but there is no data for it")
    return dict(data)


def check_input(source: Source, given: Any, streaming: bool) -> None:
    if source.vs is None:
        raise QueryError(
            f"source {source.name!r} has no time column, so it cannot read a DataFrame; "
            f'declare it with cedr.source({source.name!r}, ..., vs="column of the start times")'
        )
    if isinstance(given, Files):
        return
    if not isinstance(given, DataFrame):
        raise QueryError(
            f"source {source.name!r} cannot read a {type(given).__name__} on Spark; give a Spark DataFrame or "
            'cedr.files("folder")'
        )
    if given.isStreaming != streaming:
        usage = "start() takes streaming DataFrames (spark.readStream), batch() static ones (spark.read)"
        raise QueryError(
            f"the DataFrame for source {source.name!r} is {'static' if streaming else 'streaming'}; {usage}"
        )
    needed = needed_columns(source, given.columns)
    check_columns(needed, dict.fromkeys(given.columns), f"DataFrame for source {source.name!r}")


def spark_time_type(source: Source, schema: StructType, zone: str) -> TimeType:
    """The time type of a DataFrame. Spark keeps timestamps in UTC and shows them in the zone of the session."""
    names = set(time_columns(source, schema.names))
    fields = [field for field in schema.fields if field.name in names]
    try:
        columns = dict(pl.DataFrame(to_arrow_schema(StructType(fields), timezone=UTC).empty_table()).schema)
    except (PySparkException, PolarsError) as e:
        raise TimeError(f"source {source.name!r}: its times cannot be read: {first_line(e)}") from None
    kind = check_times(source, columns)
    of_spark = kind.is_temporal() and getattr(kind, "time_zone", None) and not (source.unit or source.format)
    return pl.Datetime("us", zone if is_known_zone(zone) else UTC) if of_spark else kind


def is_known_zone(zone: str) -> bool:
    """Spark has zones such as `+05:30` that polars and Arrow do not have; such times are shown in UTC."""
    try:
        pl.Series([0]).cast(pl.Datetime("us", zone))
    except PolarsError:
        return False
    return True


def packing_task(job: PackedJob, source: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        packer = packer_of(job, source, context.partitionId())
        yield from to_batches(packer.packets(combine_small_batches(batches)))

    return lambda batches: in_worker(run(batches))


def packer_of(job: PackedJob, source: str, origin: int, in_turn: bool = False) -> Packer:
    opened = job.open()
    return Packer(opened, source, origin, spill_file(job), clock_of(opened, opened.plan.sources[source]), in_turn)


def spill_file(job: PackedJob) -> SpillFile | None:
    """In a stream, rows are sent to their shard through its folder. A static query has none."""
    context, folder = TaskContext.get(), job.open().folder
    batch = context.getLocalProperty(BATCH_ID) if context and folder else None
    return None if batch is None else SpillFile(folder, int(batch))


def combine_small_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pl.DataFrame]:
    """Combines Spark's small batches into larger frames."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= ROWS_AT_ONCE:
            yield as_frame(waiting)
            waiting, rows = [], 0
    if rows:
        yield as_frame(waiting)
