"""Reachability from sources, without a loop: the node for `cedr.operators.reach`."""

from dataclasses import dataclass
from functools import cached_property

from cedr.plan.node import Binary
from cedr.plan.schema import Schema, check_columns
from cedr.temporal.errors import QueryError


@dataclass(frozen=True, eq=False)
class Reach(Binary):
    """Pairs of a source and a node that edges lead to. The left input has the edges, the right one the sources."""

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
