"""Nodes that compare whole payloads at each instant: difference, intersect, distinct, coalesce."""

from dataclasses import dataclass
from functools import cached_property

from cedr.plan.node import Binary, Speculative, Unary
from cedr.plan.nodes.union import check_same_columns
from cedr.plan.schema import Schema


@dataclass(frozen=True, eq=False)
class Difference(Speculative, Binary):
    """What the left side has more often than the right, copies counted."""

    @cached_property
    def schema(self) -> Schema:
        check_same_columns("difference", self.left.schema, self.right.schema)
        return self.left.schema


@dataclass(frozen=True, eq=False)
class Intersect(Speculative, Binary):
    """What both sides have, each payload once."""

    @cached_property
    def schema(self) -> Schema:
        check_same_columns("intersect", self.left.schema, self.right.schema)
        return self.left.schema


@dataclass(frozen=True, eq=False)
class Distinct(Speculative, Unary):
    """Each payload once."""


@dataclass(frozen=True, eq=False)
class Coalesce(Speculative, Unary):
    """Each payload once, and lifetimes that meet as one."""
