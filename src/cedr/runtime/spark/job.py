"""A job: what the tasks of one run of a query need to know, as plain data that travels with them."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import polars as pl
from pyspark import cloudpickle

from cedr.plan.explain import line
from cedr.plan.partitioning import Exchange, Path, Stage, StagedPlan
from cedr.plan.source import Source
from cedr.runtime.spark.sinks.base import TableSink


@dataclass(frozen=True)
class Job:
    """`run` names this run of the query, `application` the Spark application it is part of.

    `folder` is where its state lives, `late` where rows go that cannot be used. `at` is when it was started, in
    microseconds since 1970: the time of day for a static query, so that a task that runs again comes to the same.
    """

    plan: StagedPlan
    shards: int
    run: str
    application: str
    folder: str
    late: str
    time_type: pl.DataType
    answer: Literal["table", "changelog"] = "table"
    sink: TableSink | None = None
    at: int = 0
    feedback: str | None = None
    """The folder in which a merge notes what it has no more use for."""

    def stage(self, number: int) -> Stage:
        return self.plan.stages[number - 1]

    @property
    def last(self) -> int:
        return len(self.plan.stages)

    def paths_from(self, source: str) -> list[Path]:
        return [path for path in self.plan.paths if path.source == source]

    def paths_into(self, stage: int) -> list[Path]:
        return [path for path in self.plan.paths if path.exchange.stage == stage]

    def packed(self) -> "PackedJob":
        return PackedJob(self.run, self.application, cloudpickle.dumps(self))


@dataclass(frozen=True)
class PackedJob:
    """A job as bytes, opened once per process."""

    run: str
    application: str
    content: bytes

    def open(self) -> Job:
        return opened(self.run, self.content)


@lru_cache(maxsize=4)
def opened(run: str, content: bytes) -> Job:
    job = cloudpickle.loads(content)
    assert isinstance(job, Job)
    return job


def description(plan: StagedPlan, shards: int) -> list[str]:
    """The plan in lines. Two plans with the same lines can go on with each other's state."""
    lines = [f"shards: {shards}"]
    lines += [f"source {describe(source)}" for source in plan.sources.values()]
    for path in plan.paths:
        lines += [f"path {path.source} -> {path.exchange.name} {spreading(path.exchange)}"]
        lines += [f"  {line(step.node)}" for step in path.fragment.steps]
    for stage in plan.stages:
        lines += [f"stage {stage.number}: {', '.join(stage.fragment.sources)} -> {stage.fragment.output}"]
        lines += [f"  {line(step.node)} of {step.inputs}" for step in stage.fragment.steps]
        lines += [f"  {number} -> {exchange.name} {spreading(exchange)}" for number, exchange in stage.outputs]
    return lines


def spreading(exchange: Exchange) -> str:
    return "to every shard" if exchange.everywhere else f"keys {exchange.keys}"


def describe(source: Source) -> str:
    said = {name: getattr(source, name) for name in Source.__dataclass_fields__}
    return " ".join(
        f"{name}={value}" for name, value in said.items() if value is not None and value is not False and value != ()
    )


def fingerprint(lines: list[str]) -> str:
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()
