"""What a replica runs: a user function that returns a query and its data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cedr.job.function import function_at
from cedr.plan.merge_policy import Policy
from cedr.sinks.base import TableSink
from cedr.stream import Stream
from cedr.temporal.errors import QueryError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Replica:
    """The result of a job function: `def job(spark, name): return cedr.Replica(query, data)`.

    trigger, close, shards, join   as in `Replicas.start`
    sink, policy, merge_trigger    for the merge; by default a Parquet table in the folder `merged` of the set
    """

    query: Stream
    data: Any
    trigger: Mapping[str, Any] | None = None
    close: bool = False
    shards: int | None = None
    join: Any = None
    sink: TableSink | None = None
    policy: Policy | str = "first"
    merge_trigger: Mapping[str, Any] | None = None


Job = Callable[["SparkSession", str], Replica]


def job_at(place: str) -> Job:
    """The function named as `file.py:function` or `module:function`."""
    return function_at(place, "job")


def made(job: Job, spark: "SparkSession", name: str, place: str) -> Replica:
    replica = job(spark, name)
    if not isinstance(replica, Replica):
        raise QueryError(f"job {place!r} returns a {type(replica).__name__}; it must return cedr.Replica(query, data)")
    return replica
