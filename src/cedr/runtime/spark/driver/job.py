"""A job: the data that the tasks of one run of a query need, sent with them."""

import hashlib
import os
import re
import secrets
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path as FilePath
from typing import Literal

import polars as pl
from pyspark import cloudpickle

from cedr.plan.changes import Upgrade
from cedr.plan.identity import PlanRecord, plan_record
from cedr.plan.nodes.source import Source
from cedr.plan.partitioning import Exchange, Path, Stage, StagedPlan
from cedr.runtime.spark.shard.cells import Cells, Layout, even_cells
from cedr.sinks.base import TableSink
from cedr.storage.epoch import Epoch
from cedr.storage.private import read_private, write_private
from cedr.storage.remote_settings import RemoteSettings


@dataclass(frozen=True)
class SparkJob:
    """`run` names this run of the query, `application` the Spark application it is part of.

    `folder` contains its state, `late` the rows that cannot be used. `at` is its start, in microseconds since 1970: the
    wall-clock time of a static query, so that a repeated task has the same result.
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
    """The folder in which a merge records what it no longer needs."""
    layout: Layout | None = None
    """The cells of the shards; None if each shard has one."""
    upgrade: Upgrade | None = None
    """The newest change of the query since the checkpoint was created."""
    state_memory: int | None = None
    """Bytes of memory for the state of a shard; None: what fits the machine."""
    storage: RemoteSettings = field(default_factory=lambda: RemoteSettings({}))
    """How remote folders are reached. Unpickled with the job, they apply to the process."""
    epoch: Epoch | None = None
    """The number of this driver, if the checkpoint is remote."""

    @cached_property
    def identities(self) -> dict[int, list[str]]:
        """By stage the identities of its operators."""
        operators = plan_record(self.plan, [], []).operators
        return {
            stage.number: [operator.identity for operator in operators if operator.stage == stage.number]
            for stage in self.plan.stages
        }

    def check_newest(self) -> None:
        """Raise if the checkpoint belongs to a newer driver."""
        if self.epoch is not None:
            self.epoch.check()

    def stage(self, number: int) -> Stage:
        return self.plan.stages[number - 1]

    @property
    def last(self) -> int:
        return len(self.plan.stages)

    def cells(self, stage: int) -> Cells:
        """The cells of a stage, in the order of their hashes."""
        return self.layout.stages[stage - 1].cells if self.layout else even_cells(self.shards)

    def cells_of(self, stage: int, shard: int) -> list[int]:
        """The numbers of the cells of a stage that a shard works on."""
        return [cell.number for cell in self.cells(stage) if cell.shard == shard]

    def cells_within(self, stage: int, number: int) -> tuple[int, ...]:
        """The cells that a cell of a stage consists of by now."""
        return self.layout.stages[stage - 1].within(number) if self.layout else (number,)

    @property
    def split_cells(self) -> frozenset[int]:
        """The cells of the last stage that were split: others go on with their tuples."""
        return frozenset(self.layout.stages[-1].parents.values()) if self.layout else frozenset()

    def origin_of(self, exchange: str) -> int:
        """The stage whose output goes through an exchange."""
        return next(stage.number for stage in self.plan.stages for _, to in stage.outputs if to.name == exchange)

    def paths_from(self, source: str) -> list[Path]:
        return [path for path in self.plan.paths if path.source == source]

    def paths_into(self, stage: int) -> list[Path]:
        return [path for path in self.plan.paths if path.exchange.stage == stage]

    def packed(self) -> "PackedJob":
        content = cloudpickle.dumps(self)
        return PackedJob(self.run, self.application, content, digest_of(content))


@dataclass(frozen=True)
class PackedJob:
    """A job as bytes, opened once per process."""

    run: str
    application: str
    content: bytes
    digest: str

    def open(self) -> SparkJob:
        return unpacked_job(self.run, self.content)


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@lru_cache(maxsize=4)
def unpacked_job(run: str, content: bytes) -> SparkJob:
    job = cloudpickle.loads(content)
    assert isinstance(job, SparkJob)
    return job


def job_file(place: FilePath, digest: str) -> FilePath:
    return place / f"job-{digest}"


def leave_job(place: FilePath, job: PackedJob) -> None:
    """Put the job where shard processes look for it, atomically."""
    beginning = place / f".job-{secrets.token_hex(8)}"
    write_private(beginning, job.content)
    os.replace(beginning, job_file(place, job.digest))


def find_job(place: FilePath, run: str, digest: str) -> PackedJob | None:
    """The job in a private folder. Its digest names it, so it is the one that was put there."""
    if re.fullmatch("[0-9a-f]{64}", digest) is None:
        return None
    try:
        content = read_private(job_file(place, digest))
    except FileNotFoundError:
        return None
    return PackedJob(run, "", content, digest) if digest_of(content) == digest else None


def description(plan: StagedPlan, shards: int) -> list[str]:
    """The plan in lines. Plans with the same lines can use each other's state."""
    lines = [f"shards: {shards}"]
    lines += [f"source {source_text(source)}" for source in plan.sources.values()]
    for path in plan.paths:
        lines += [f"path {path.source} -> {path.exchange.name} {spreading_text(path.exchange)}"]
        lines += [f"  {step.node.describe()}" for step in path.fragment.steps]
    for stage in plan.stages:
        lines += [f"stage {stage.number}: {', '.join(stage.fragment.sources)} -> {stage.fragment.output}"]
        lines += [f"  {step.node.describe()} of {step.inputs}" for step in stage.fragment.steps]
        lines += [f"  {number} -> {exchange.name} {spreading_text(exchange)}" for number, exchange in stage.outputs]
    return lines


def full_description(plan: StagedPlan, lines: list[str]) -> list[str]:
    """The lines with what operators leave out of theirs, such as patterns and bodies of loops."""
    steps = [step for stage in plan.stages for step in stage.fragment.steps]
    return [*lines, *(f"  {line}" for step in steps for line in step.node.details())]


def record_of(plan: StagedPlan, lines: list[str]) -> PlanRecord:
    """What another query is compared with. Columns of a source may change, unless an operator reads them."""
    sources = [source_text(replace(source, columns=())) for source in plan.sources.values()]
    return plan_record(plan, full_description(plan, lines), sources)


def spreading_text(exchange: Exchange) -> str:
    return "to every shard" if exchange.broadcast else f"keys {exchange.keys}"


def source_text(source: Source) -> str:
    settings = {name: getattr(source, name) for name in Source.__dataclass_fields__}
    return " ".join(
        f"{name}={value}"
        for name, value in settings.items()
        if value is not None and value is not False and value != ()
    )


def fingerprint(lines: list[str]) -> str:
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()
