"""The time of day for the tasks that read a source.

Whether a row is from the future, or a partition silent, must not depend on which task asks or how often: a micro-batch
that runs again has to come to the same. Spark notes a time for each micro-batch before it runs; that is its time of
day. A query over data at rest has the time at which it was started.
"""

import json

from pyspark import TaskContext

from cedr.plan.source import Source
from cedr.runtime.ingest import Clock, wall_clock
from cedr.runtime.spark.folder import Folder
from cedr.runtime.spark.job import Job
from cedr.runtime.spark.packet import BATCH_ID
from cedr.runtime.spark.state import LostStateError

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
    for line in (offsets.find(str(batch)) or b"").splitlines():
        if line.startswith(b"{") and NOTED in (noted := json.loads(line)):
            return int(noted[NOTED]) * 1000
    raise LostStateError(f"Spark has not noted the time of micro-batch {batch} in {offsets.place}")
