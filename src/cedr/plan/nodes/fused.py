"""A run of row-by-row nodes as one step: one pass over the payload, one over the times."""

from dataclasses import dataclass
from functools import cached_property

from cedr.plan.node import Node, Unary
from cedr.plan.schema import Schema


@dataclass(frozen=True, eq=False)
class Fused(Unary):
    """`steps` from the input up; each is the node it was, its own input included for its schema."""

    steps: tuple[Node, ...]

    @cached_property
    def schema(self) -> Schema:
        return self.steps[-1].schema
