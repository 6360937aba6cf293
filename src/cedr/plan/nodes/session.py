"""Session windows: events of a group that follow each other closely share one lifetime."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from cedr.plan.aspects import text
from cedr.plan.aspects.loops import MOVES
from cedr.plan.aspects.partitioning import PartitionRequirement, columns_as_keys, grouped_by
from cedr.plan.aspects.progress import (
    AT_ONCE,
    NodeContext,
    ProgressRequirements,
    RequiredPromise,
)
from cedr.plan.aspects.promises import Schemes
from cedr.plan.aspects.properties import Properties
from cedr.plan.node import Columns, Unary, Work
from cedr.plan.schema import Schema, check_columns
from cedr.temporal.duration import show_duration
from cedr.temporal.time import INF


@dataclass(frozen=True, eq=False)
class Session(Unary):
    """Events of a group that follow each other closely share one lifetime."""

    work = Work.STATEFUL

    timeout: int
    by: tuple[str, ...] = ()

    @cached_property
    def schema(self) -> Schema:
        check_columns(self.by, self.input.schema, f"session(by={list(self.by)})")
        return self.input.schema

    def reads(self, needed: Columns) -> list[Columns]:
        return [needed | set(self.by)]

    def describe(self) -> str:
        return f"Session {show_duration(self.timeout)}{text.by(self.by)}"

    def describe_state(self, inputs: Sequence[Properties]) -> str:
        timeout = show_duration(self.timeout)
        return f"rows of sessions that may still grow: started within {timeout} before the CTI, or since"

    def derive_properties(self, *inputs: Properties) -> Properties:
        return Properties(finite=self.timeout != INF, remember=inputs[0].remember)

    def progress_requirements(self, context: NodeContext) -> ProgressRequirements:
        endless = self.timeout == INF
        timeout = f"a timeout of {show_duration(self.timeout)}"
        promise = RequiredPromise((0,), endless, timeout, "a timeout that ends" if endless else "")
        return ProgressRequirements(AT_ONCE, (promise,))

    def derive_schemes(self, *inputs: Schemes) -> Schemes:
        return self.passed_schemes(inputs)

    def partition_requirement(self) -> PartitionRequirement:
        return PartitionRequirement(columns_as_keys(self.by, self.schema), grouped_by(self.by))

    def loop_refusal(self, of_loop: list[bool]) -> str:
        return MOVES
