"""Clip: events cut at the first start of a matching event of another stream."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from cedr.plan.aspects import text
from cedr.plan.aspects.loops import MOVES
from cedr.plan.aspects.partitioning import PartitionRequirement
from cedr.plan.aspects.progress import (
    AT_ONCE,
    ENDING,
    NodeContext,
    ProgressRequirements,
    RequiredPromise,
)
from cedr.plan.aspects.promises import Schemes
from cedr.plan.aspects.properties import Properties, shortest_memory
from cedr.plan.node import Binary, Columns, Work, lifetimes
from cedr.plan.nodes.join import check_keys, joined_on
from cedr.plan.schema import Schema


@dataclass(frozen=True, eq=False)
class Clip(Binary):
    """Events of the left, cut at the first start of a matching event of the right strictly inside them."""

    work = Work.STATEFUL

    left_on: tuple[str, ...]
    right_on: tuple[str, ...]

    @cached_property
    def schema(self) -> Schema:
        check_keys("clip", self.left.schema, self.right.schema, self.left_on, self.right_on)
        return self.left.schema

    def reads(self, needed: Columns) -> list[Columns]:
        return [needed | set(self.left_on), set(self.right_on)]

    def describe(self) -> str:
        return f"Clip{text.on(self.left_on, self.right_on)}"

    def describe_state(self, inputs: Sequence[Properties]) -> str:
        return text.bounded("rows of each side that live past the other side's CTI", inputs)

    def derive_properties(self, *inputs: Properties) -> Properties:
        left, right = inputs
        remember = shortest_memory(left, right)
        return Properties(key=left.key, duplicate_free=left.duplicate_free, finite=left.finite, remember=remember)

    def progress_requirements(self, context: NodeContext) -> ProgressRequirements:
        promise = RequiredPromise((0, 1), not context.inputs[0].finite, lifetimes(self.left), ENDING)
        return ProgressRequirements(AT_ONCE, (promise,))

    def derive_schemes(self, *inputs: Schemes) -> Schemes:
        return self.passed_schemes(inputs)

    def partition_requirement(self) -> PartitionRequirement:
        return joined_on(self.left_on, self.right_on, self.left.schema)

    def loop_refusal(self, of_loop: list[bool]) -> str:
        return MOVES
