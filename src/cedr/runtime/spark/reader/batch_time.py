"""The time of day for the tasks that read a source.

Whether a row is from the future, or a partition silent, must not depend on which task asks or how often: a micro-batch
that runs again has to come to the same. Spark notes a time for each micro-batch before it runs; that is its time of
day. A query over data at rest has the time at which it was started.
"""

import json

from pyspark import TaskContext

from cedr.plan.nodes.source import Source
from cedr.runtime.spark.driver.job import Job
from cedr.runtime.spark.shard.packet import BATCH_ID
from cedr.sources.ingest import Clock, wall_clock
from cedr.storage.folder import Folder
from cedr.storage.seal import EMPTY

NOTED = "batchTimestampMs"


def spark_checkpoint(folder: Folder) -> str:
    """Spark's own part of a checkpoint, beside ours."""
    return folder.place.removesuffix("/cedr") + "/spark"


def clock_of(job: Job, source: Source) -> Clock:
    """The time of day for a source that asks for it; for others any will do."""
    if source.future is None and source.idle is None:
        return wall_clock
    context = TaskContext.get()
    batch = context.getLocalProperty(BATCH_ID) if context and job.folder else None
    now = job.at if batch is None else time_of(job, int(batch))
    return lambda: now


def time_of(job: Job, batch: int) -> int:
    """When a micro-batch was begun for the first time, in microseconds since 1970."""
    offsets = Folder(f"{spark_checkpoint(Folder(job.folder))}/offsets")
    for line in (offsets.find_plain(str(batch)) or b"").splitlines():
        if line.startswith(b"{") and NOTED in (noted := json.loads(line)):
            return int(noted[NOTED]) * 1000
    raise offsets.damaged(str(batch), f"Spark has not noted the time of micro-batch {batch} in it")


def check_notes(folder: Folder) -> None:
    """Spark's own notes in a checkpoint of ours, as far as Spark itself would stumble over them without naming the
    file: those that are empty, as after a power cut, and a batch that is done and of which the offsets are missing."""
    checkpoint = Folder(spark_checkpoint(folder))
    if checkpoint.find_plain("metadata") == b"":
        raise checkpoint.damaged("metadata", EMPTY)
    last = {place: numbers(checkpoint.sub(place)) for place in ("offsets", "commits")}
    for place, found in last.items():
        if found and checkpoint.sub(place).find_plain(str(found[-1])) == b"":
            raise checkpoint.damaged(f"{place}/{found[-1]}", EMPTY)
    if last["commits"] and (done := last["commits"][-1]) not in last["offsets"]:
        raise checkpoint.damaged(f"offsets/{done}", f"it is missing, and micro-batch {done} is done")


def numbers(folder: Folder) -> list[int]:
    return sorted(int(name) for name in folder.names() if name.isdecimal())


def sync_notes(job: Job, batch: int) -> None:
    """Make Spark's own notes safe that a shard's log relies on: what this micro-batch reads, and that the one before is
    done. Spark does not sync them; with other offsets the same number would mean other rows."""
    checkpoint = spark_checkpoint(Folder(job.folder))
    for place, number in (("offsets", batch), ("commits", batch - 1)):
        folder = Folder(f"{checkpoint}/{place}")
        if folder.local and folder.has(str(number)):
            folder.sync_files([str(number)])
            folder.sync()
