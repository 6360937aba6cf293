"""`why_waiting` on Spark: from the files that the shards write with every micro-batch."""

from collections.abc import Iterable

import polars as pl

from cedr.runtime.spark.driver.answers import read_metrics
from cedr.runtime.spark.driver.job import SparkJob
from cedr.runtime.spark.driver.late_files import late_folder, read_late
from cedr.runtime.spark.shard.packet import from_header
from cedr.runtime.spark.shard.state import SOURCE_STATUS
from cedr.runtime.why_waiting import Held, WhyWaiting, held_rows, why_waiting
from cedr.sources.source_status import SourceStatus
from cedr.storage.folder import Folder


def why_query_waits(job: SparkJob, missing: Iterable[str]) -> WhyWaiting:
    """What holds the query back after the last micro-batch; `missing` is what its plan lacks."""
    folder = Folder(job.folder)
    held = held_by_stage(job, read_metrics(folder.sub("metrics")))
    future = from_the_future(read_late(late_folder(job.late)))
    statuses = source_statuses(folder.sub(SOURCE_STATUS))
    return why_waiting(job.plan.sources, statuses, held, future, missing, job.time_type)


def source_statuses(folder: Folder) -> list[SourceStatus]:
    """The status of the sources of each stage; stages that read the same source have the same."""
    found = [folder.find_intact(name) for name in folder.names()]
    return [s for content in found if content is not None for s in from_header(content)]


def held_by_stage(job: SparkJob, metrics: pl.DataFrame) -> list[Held]:
    if not metrics.height:
        return []
    return [
        held
        for stage in job.plan.stages
        for held in held_rows(stage.fragment.steps, metrics.filter(pl.col("stage") == stage.number))
    ]


def from_the_future(late: pl.DataFrame) -> int:
    reason = "_reason" if "_reason" in late.columns else "reason"
    return int((late[reason] == "from_the_future").sum()) if late.height else 0
