"""The data source that Spark calls: its planner in a Python process next to the driver, its readers in the tasks.

Settings, source and packing function are passed as one pickled option: with 1 kB to 5 MB this was as fast as a subclass
registered for each query, and nothing is registered twice under one name.
"""

import base64
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from cedr.plan.nodes.source import Source
from cedr.runtime.spark.shard.errors import task_error
from cedr.runtime.spark.shard.worker import in_worker
from cedr.sources.event_time import shown_type
from cedr.sources.files import clock
from cedr.sources.files.columns import check_source
from cedr.sources.files.entry import BatchFiles, InputFile, end
from cedr.sources.files.listing import Stamp, check_place, complete, in_order, listed, stamp
from cedr.sources.files.log import FileLog, report_bad
from cedr.sources.files.reading import Piece, Planner, Split, pieces, splits
from cedr.sources.files.settings import Files, with_format
from cedr.sources.files.unreadable import BadFileError, Unreadable
from cedr.storage.epoch import Epoch
from cedr.storage.folder import Folder
from cedr.storage.remote_settings import RemoteSettings, current
from cedr.temporal.errors import CedrError

NAME = "cedr_files"
JOB = "secret_job"
"""The option with the job. Spark does not print options with such a name."""
CHECKED_AT_ONCE = 1000
"""Number of files, already read, that are checked for changes with each search for new files: changes would be lost."""

Pack = Callable[[Iterator[Piece], Split], Iterator[pa.RecordBatch]]
"""Frames and unreadable rows of a split become record batches."""


@dataclass(frozen=True)
class FileJob:
    """The data of planner and readers. Without a log the files are read once, as a table.

    `pack` is a pickled `Pack`, unpickled by the tasks only: each start of a query starts a Python process for planning,
    which need not import the engine.
    """

    settings: Files
    source: Source
    pack: bytes
    parallelism: int
    log: str | None
    closes: bool = False
    """The input ends with the files that exist when the query starts."""
    storage: RemoteSettings = field(default_factory=current)
    """How remote folders are reached; unpickled with the job, they apply to the process."""
    epoch: Epoch | None = None
    """The number of the driver, if the log is remote."""

    @property
    def planner(self) -> Planner:
        return Planner(self.settings, self.source, self.parallelism)


def read_files(
    spark: SparkSession,
    settings: Files,
    source: Source,
    pack: Pack,
    schema: str,
    *,
    log: str | None = None,
    epoch: Epoch | None = None,
    closes: bool = False,
    parallelism: int | None = None,
) -> DataFrame:
    """The files of a source, packed: a streaming DataFrame that keeps its log in this folder, or a static one.

    `pack` is called in the tasks, once per split; its output has this schema. `closes` is for a query that ends after
    all available input: it then declares the end of the source.
    """
    settings = checked_settings(settings, source)
    cores = spark.sparkContext.defaultParallelism
    job = FileJob(settings, source, cloudpickle.dumps(pack), parallelism or cores, log, closes, epoch=epoch)
    spark.dataSource.register(CedrFiles)
    packed = base64.b64encode(cloudpickle.dumps(job)).decode()
    read: Any = spark.read if log is None else spark.readStream
    frame = read.format(NAME).option("schema", schema).option(JOB, packed).load()
    assert isinstance(frame, DataFrame)
    return frame


def checked_settings(settings: Files, source: Source) -> Files:
    """With its format, after all checks that are possible before the query starts."""
    if settings.format is None:
        check_place(settings)
        settings = with_format(settings, sorted(listed(settings)))
    check_source(source, settings)
    return settings


def time_type_of(settings: Files, source: Source) -> pl.DataType | None:
    """The type of the source's times; None when no file exists yet that determines it."""
    settings = checked_settings(settings, source)
    found = {path: at for path in listed(settings) if (at := stamp(path))}
    written = Planner(settings, source, 1).clock(in_order(found, settings.order))
    return None if written is None else shown_type(source, clock.as_type(written))


class SplitPartition(InputPartition):
    def __init__(self, split: Split) -> None:
        super().__init__(split)
        self.split = split


class CedrFiles(DataSource):
    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return self.options["schema"]

    def reader(self, schema: StructType) -> "TableReader":
        return TableReader(self._job())

    def streamReader(self, schema: StructType) -> "StreamReader":  # noqa: N802
        return StreamReader(self._job())

    def _job(self) -> FileJob:
        job = cloudpickle.loads(base64.b64decode(self.options[JOB]))
        assert isinstance(job, FileJob)
        return job


class TableReader(DataSourceReader):
    """All existing files, once."""

    def __init__(self, job: FileJob) -> None:
        self.job = job

    def partitions(self) -> list[InputPartition]:
        with errors_carried():
            check_place(self.job.settings)
            found = {path: at for path in listed(self.job.settings) if (at := stamp(path))}
            ordered = [(path, found[path]) for path in in_order(found, self.job.settings.order)]
            return partitions_of([(0, self.job.planner.plan(ordered, None))] if ordered else [])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches(self.job, partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """An offset is a number of entries of the file log. Tasks have no log: it is opened when offsets are requested."""

    def __init__(self, job: FileJob) -> None:
        self.job = job
        self._supply: Supply | None = None

    @property
    def supply(self) -> "Supply":
        if self._supply is None:
            self._supply = Supply(self.job)
        return self._supply

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"entries": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        limit = self.job.settings.max_files
        return ReadAllAvailable() if limit is None else ReadMaxFiles(limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        with errors_carried():
            self.supply.stop_looking()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        with errors_carried():
            max_files = limit.max_files if isinstance(limit, ReadMaxFiles) else None
            return {"entries": self.supply.advance(start["entries"], max_files)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        with errors_carried():
            return partitions_of(self.supply.entries(start["entries"], end["entries"]))

    def commit(self, end: dict[str, int]) -> None:
        self.supply.log.compact(end["entries"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches(self.job, partition)


class Supply:
    """The input files: the log of those read, and those found that wait."""

    def __init__(self, job: FileJob) -> None:
        assert job.log is not None
        self.job, self.log = job, FileLog(Folder(job.log, label=f"files/{job.source.name}"), job.epoch)
        self.waiting: deque[str] = deque()
        self.changed: list[InputFile] = []
        self._looking = True
        self._to_check: list[str] = []
        if not self.log.length:
            check_place(job.settings)

    def stop_looking(self) -> None:
        """Existing files are all there will be."""
        self._list_waiting_files()
        self._looking = False

    def advance(self, start: int, max_files: int | None) -> int:
        """The next offset: entries that were planned before a restart come first, unchanged."""
        self.log.check_reached(start)
        if start < self.log.length:
            return start + 1 if max_files is not None else self.log.length
        self._check_some()
        if self._looking and not self.waiting:
            self._list_waiting_files()
        taken: list[tuple[str, Stamp]] = []
        while self.waiting and (max_files is None or len(taken) < max_files):
            path = self.waiting.popleft()
            if at := stamp(path):  # a file that was removed meanwhile is not read
                taken.append((path, at))
        if not taken and not self.changed:
            ends = self.job.closes and not self._looking and not self.log.ended
            return self.log.append(end(self.log.clock)) if ends else start
        entry = self.job.planner.plan(taken, self.log.clock, tuple(self.changed))
        self.changed = []
        number = self.log.append(entry)
        left = [path for path, _ in taken if path not in self.log.seen]  # if another driver's entry counts
        self.waiting = deque(path for path in [*left, *self.waiting] if path not in self.log.seen)
        return number

    def entries(self, start: int, end: int) -> list[tuple[int, BatchFiles]]:
        numbers = range(start + 1, end + 1)
        for number in numbers:
            self.log.replan(number, self.job.planner.plan)
        return [(number, self.log.entry(number)) for number in numbers]

    def _list_waiting_files(self) -> None:
        """Only when no file waits, so that a long queue is not listed again for every batch."""
        found = {path: at for path in complete(self.job.settings, self.log.seen) if (at := stamp(path))}
        self.waiting = deque(in_order(found, self.job.settings.order))

    def _check_some(self) -> None:
        """Checks some of the files each time, so that the cost does not grow with their number."""
        if not self._to_check:
            self._to_check = list(self.log.seen)
        some, self._to_check = self._to_check[-CHECKED_AT_ONCE:], self._to_check[:-CHECKED_AT_ONCE]
        for path in some:
            before, now = self.log.seen[path], stamp(path)
            if now is None or now == before:
                continue
            what = f" was read with {before} and has changed to {now}"
            if self.job.settings.on_bad == "raise":
                raise BadFileError(path, what, "changed later")
            self.changed.append(InputFile(path, now, bad=what))


def partitions_of(entries: list[tuple[int, BatchFiles]]) -> list[InputPartition]:
    return [SplitPartition(split) for split in splits(entries)]


def batches(job: FileJob, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The output of a task. Spark asks for one partition even if there are no files."""
    if isinstance(partition, SplitPartition):
        split = partition.split
        found = pieces(split, job.settings, job.source)
        readable = raise_at_unreadable(found, job, split) if job.settings.on_bad == "raise" else found
        pack: Pack = cloudpickle.loads(job.pack)
        yield from in_worker(pack(readable, split))


def raise_at_unreadable(found: Iterator[Piece], job: FileJob, split: Split) -> Iterator[Piece]:
    """The frames, up to the first unreadable data, which raises."""
    for piece in found:
        if isinstance(piece, Unreadable):
            error = piece.error()
            if error.trouble == "content" and job.log is not None:
                number = next(part.file for part, file in split.parts if file.path == error.file)
                with suppress(OSError, CedrError):  # without the mark the file can still be moved away
                    report_bad(Folder(job.log), split.entry, number)
            raise error
        yield piece


@contextmanager
def errors_carried() -> Iterator[None]:
    """Makes our errors reach the user through Spark's."""
    try:
        yield
    except CedrError as e:
        raise task_error(type(e).__name__, str(e)) from None
