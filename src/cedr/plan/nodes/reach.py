"""Reachability from sources, without a loop: the node for `cedr.operators.reach`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from cedr.plan.aspects.partitioning import PartitionRequirement, columns_as_keys
from cedr.plan.aspects.progress import (
    NodeContext,
    ProgressRequirements,
    RequiredPromise,
)
from cedr.plan.aspects.promises import CTI, CTI_ONLY, Schemes
from cedr.plan.aspects.properties import Properties, shortest_memory
from cedr.plan.node import Binary, Columns, Work
from cedr.plan.schema import Schema, check_columns
from cedr.temporal.errors import QueryError


@dataclass(frozen=True, eq=False)
class Reach(Binary):
    """Pairs of a source and a node that edges lead to. The left input has the edges, the right one the sources."""

    work = Work.STATEFUL

    start: str
    end: str
    node: str

    @cached_property
    def schema(self) -> Schema:
        edges, sources = self.left.schema, self.right.schema
        check_columns((self.start, self.end), edges, "reachability: edges")
        check_columns((self.node,), sources, "reachability: sources")
        kinds = {edges[self.start], edges[self.end], sources[self.node]}
        if len(kinds) > 1:
            raise QueryError(
                f"reachability: {self.start!r} is {edges[self.start]}, {self.end!r} is {edges[self.end]} and "
                f"{self.node!r} of the sources is {sources[self.node]}; nodes must be of one type"
            )
        return {name: edges[name] for name in (self.start, self.end)}

    def reads(self, needed: Columns) -> list[Columns]:
        return [{self.start, self.end}, {self.node}]

    @property
    def passed_columns(self) -> dict[str, str]:
        return {self.start: self.node}

    def describe(self) -> str:
        return f"Reach from {self.node} over {self.start} to {self.end}"

    def describe_state(self, inputs: Sequence[Properties]) -> str:
        return "all edges and nodes, and of each source how far each node is"

    def derive_properties(self, *inputs: Properties) -> Properties:
        """Emitted in the order of time, and ended in it."""
        finite, key = any(p.finite for p in inputs), frozenset(self.schema)
        remember = shortest_memory(*inputs)
        return Properties(ordered=True, key=key, duplicate_free=True, finite=finite, remember=remember)

    def progress_requirements(self, context: NodeContext) -> ProgressRequirements:
        return ProgressRequirements(RequiredPromise((0, 1)), (self.until_settled(context),))

    def derive_schemes(self, *inputs: Schemes) -> Schemes:
        """It understands CTIs only."""
        return CTI_ONLY if all(CTI in schemes for schemes in inputs) else {}

    def partition_requirement(self) -> PartitionRequirement:
        keys = columns_as_keys([self.node], self.right.schema)
        return PartitionRequirement(
            keys, "each source has a tree of its own", (1,), "every tree is about the whole graph"
        )
