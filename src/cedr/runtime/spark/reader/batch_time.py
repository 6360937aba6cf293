"""The wall-clock time for the tasks that read a source.

Whether a row is from the future, or a partition silent, must not depend on the task or on how often it runs: a repeated
micro-batch must have the same result. Spark records a time for each micro-batch before it runs; that time is used. A
query over static data uses the time of its start.
"""

import json
import re

from pyspark import TaskContext

from cedr.plan.nodes.source import Source
from cedr.runtime.spark.driver.job import SparkJob
from cedr.runtime.spark.shard.packet import BATCH_ID
from cedr.sources.ingest import Clock, wall_clock
from cedr.storage.folder import Folder
from cedr.storage.seal import EMPTY

NOTED = "batchTimestampMs"
UNFINISHED = re.compile(r"\.+\w+\.[0-9a-f-]{36}(\.TID\d+)?\.tmp(\.crc)?")
"""Names under which Spark writes files of its checkpoint before it renames them, and those of their checksums."""


def spark_checkpoint(folder: Folder) -> str:
    """Spark's own part of a checkpoint, next to ours."""
    return folder.place.removesuffix("/cedr") + "/spark"


def clock_of(job: SparkJob, source: Source) -> Clock:
    """The wall-clock time for a source that needs it; for others any clock is fine."""
    if source.max_ahead is None and source.idle is None:
        return wall_clock
    context = TaskContext.get()
    batch = context.getLocalProperty(BATCH_ID) if context and job.folder else None
    now = job.at if batch is None else time_of(job, int(batch))
    return lambda: now


def time_of(job: SparkJob, batch: int) -> int:
    """When a micro-batch was started for the first time, in microseconds since 1970."""
    offsets = Folder(f"{spark_checkpoint(Folder(job.folder))}/offsets")
    for line in (offsets.find_plain(str(batch)) or b"").splitlines():
        if line.startswith(b"{") and NOTED in (noted := json.loads(line)):
            return int(noted[NOTED]) * 1000
    raise offsets.damaged(str(batch), f"it does not contain the time of micro-batch {batch}")


def sweep_notes(folder: Folder) -> None:
    """Remove what a killed Spark was writing. With such a file in `offsets` and no complete one it refuses to start."""
    Folder(spark_checkpoint(folder)).sweep(UNFINISHED)


def check_notes(folder: Folder) -> None:
    """Check Spark's own files in a checkpoint for damage that Spark would report without naming the file: empty files,
    as after a power cut, and a committed batch without offsets."""
    checkpoint = Folder(spark_checkpoint(folder))
    if checkpoint.find_plain("metadata") == b"":
        raise checkpoint.damaged("metadata", EMPTY)
    last = {place: numbers(checkpoint.sub(place)) for place in ("offsets", "commits")}
    for place, found in last.items():
        if found and checkpoint.sub(place).find_plain(str(found[-1])) == b"":
            raise checkpoint.damaged(f"{place}/{found[-1]}", EMPTY)
    if last["commits"] and (done := last["commits"][-1]) not in last["offsets"]:
        raise checkpoint.damaged(f"offsets/{done}", f"it is missing, although micro-batch {done} is committed")


def numbers(folder: Folder) -> list[int]:
    return sorted(int(name) for name in folder.names() if name.isdecimal())


def sync_notes(job: SparkJob, batch: int) -> None:
    """Sync Spark's own files that a shard's log relies on: the offsets of this micro-batch, and the commit of the
    previous one. Spark does not sync them; with other offsets the same number would have other rows."""
    checkpoint = spark_checkpoint(Folder(job.folder))
    for place, number in (("offsets", batch), ("commits", batch - 1)):
        folder = Folder(f"{checkpoint}/{place}")
        if folder.local and folder.has(str(number)):
            folder.sync_files([str(number)])
            folder.sync()
