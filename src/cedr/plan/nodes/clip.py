"""Clip: events cut at the first start of a matching event of another stream."""

from dataclasses import dataclass
from functools import cached_property

from cedr.plan.node import Binary
from cedr.plan.nodes.join import check_keys
from cedr.plan.schema import Schema


@dataclass(frozen=True, eq=False)
class Clip(Binary):
    """Events of the left, cut at the first start of a matching event of the right strictly inside them."""

    left_on: tuple[str, ...]
    right_on: tuple[str, ...]

    @cached_property
    def schema(self) -> Schema:
        check_keys("clip", self.left.schema, self.right.schema, self.left_on, self.right_on)
        return self.left.schema
