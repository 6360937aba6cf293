"""Nodes that compare whole payloads at each instant: difference, intersect, distinct, coalesce."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from cedr.plan.aspects import text
from cedr.plan.aspects.loops import HIDES
from cedr.plan.aspects.partitioning import PartitionRequirement, columns_as_keys
from cedr.plan.aspects.progress import (
    NodeContext,
    ProgressRequirements,
    to_emit_ends,
)
from cedr.plan.aspects.promises import Schemes
from cedr.plan.aspects.properties import Properties, order_at, shortest_memory
from cedr.plan.node import Binary, Columns, Speculative, Unary, Work
from cedr.plan.nodes.union import check_same_columns
from cedr.plan.schema import Schema


@dataclass(frozen=True, eq=False)
class PayloadComparison(Speculative):
    """Nodes that compare whole payloads, so that they read all columns and any column can be a key."""

    work = Work.STATEFUL

    def reads(self, needed: Columns) -> list[Columns]:
        return [set(i.schema) for i in self.inputs]

    def describe(self) -> str:
        return f"{type(self).__name__}{text.latency(self.latency)}"

    def describe_state(self, inputs: Sequence[Properties]) -> str:
        return text.bounded("end points of each payload past the CTI", inputs)

    def progress_requirements(self, context: NodeContext) -> ProgressRequirements:
        emit = to_emit_ends(self.latency, tuple(range(len(self.inputs))), context)
        return ProgressRequirements(emit, (self.until_settled(context),))

    def derive_schemes(self, *inputs: Schemes) -> Schemes:
        return self.passed_schemes(inputs)

    def partition_requirement(self) -> PartitionRequirement:
        keys = columns_as_keys(self.schema, self.schema, len(self.inputs))
        return PartitionRequirement(keys, f"{type(self).__name__} compares whole payloads")


@dataclass(frozen=True, eq=False)
class Difference(PayloadComparison, Binary):
    """What the left side has more often than the right, copies counted."""

    @cached_property
    def schema(self) -> Schema:
        check_same_columns("difference", self.left.schema, self.right.schema)
        return self.left.schema

    def derive_properties(self, *inputs: Properties) -> Properties:
        left, right = inputs
        remember = shortest_memory(left, right)
        return Properties(key=left.key, duplicate_free=left.duplicate_free, finite=left.finite, remember=remember)

    def loop_refusal(self, of_loop: list[bool]) -> str:
        return (
            "more in the loop must never mean less out of it, and copies do not count there; "
            'use difference(other, by=...) or join(how="anti") with a stream from outside on the right'
        )


@dataclass(frozen=True, eq=False)
class Intersect(PayloadComparison, Binary):
    """What both sides have, each payload once."""

    @cached_property
    def schema(self) -> Schema:
        check_same_columns("intersect", self.left.schema, self.right.schema)
        return self.left.schema

    def derive_properties(self, *inputs: Properties) -> Properties:
        left, right = inputs
        finite, remember = left.finite or right.finite, shortest_memory(left, right)
        return Properties(key=frozenset(self.schema), duplicate_free=True, finite=finite, remember=remember)

    def loop_refusal(self, of_loop: list[bool]) -> str:
        return f"{HIDES}; use a join on all columns"


@dataclass(frozen=True, eq=False)
class Distinct(PayloadComparison, Unary):
    """Each payload once."""

    def derive_properties(self, *inputs: Properties) -> Properties:
        (p,) = inputs
        order, key = order_at(self.latency, p), frozenset(self.schema)
        return Properties(**order, key=key, duplicate_free=True, finite=p.finite, remember=p.remember)


@dataclass(frozen=True, eq=False)
class Coalesce(PayloadComparison, Unary):
    """Each payload once, and lifetimes that meet as one."""

    def derive_properties(self, *inputs: Properties) -> Properties:
        return replace(inputs[0], **order_at(self.latency, inputs[0]))
