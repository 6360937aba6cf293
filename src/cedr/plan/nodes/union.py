"""Union: the events of several streams with the same columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from cedr.plan.aspects import text
from cedr.plan.aspects.progress import (
    NodeContext,
)
from cedr.plan.aspects.promises import Schemes
from cedr.plan.aspects.properties import Properties, shortest_memory
from cedr.plan.node import Columns, Node, Work
from cedr.plan.schema import Schema, show_schema
from cedr.temporal.errors import QueryError


@dataclass(frozen=True, eq=False)
class Union(Node):
    """The rows of all members."""

    work = Work.ANY_SHARD
    keeps_lifetimes = True

    members: tuple[Node, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.members

    @cached_property
    def schema(self) -> Schema:
        for other in self.members[1:]:
            check_same_columns("union", self.members[0].schema, other.schema)
        return self.members[0].schema

    def with_inputs(self, *inputs: Node) -> Self:
        return type(self)(inputs)

    def reads(self, needed: Columns) -> list[Columns]:
        # one column of the same name stays in all members, even if rows are only counted
        return [needed or set(list(self.schema)[:1])] * len(self.inputs)

    def describe(self) -> str:
        return "Union"

    def describe_state(self, inputs: Sequence[Properties]) -> str:
        return text.NO_STATE

    def derive_properties(self, *inputs: Properties) -> Properties:
        return Properties(
            insert_only=all(p.insert_only for p in inputs),
            finite=all(p.finite for p in inputs),
            remember=shortest_memory(*inputs),
        )

    def progress_requirements(self, context: NodeContext) -> None:
        return None

    def derive_schemes(self, *inputs: Schemes) -> Schemes:
        return self.passed_schemes(inputs)

    def partition_requirement(self) -> None:
        return None

    def loop_refusal(self, of_loop: list[bool]) -> None:
        return None


def check_same_columns(what: str, left: Schema, right: Schema) -> None:
    """The same names and types; the order does not matter."""
    if left == right:
        return
    only_left, only_right = [n for n in left if n not in right], [n for n in right if n not in left]
    if only_left or only_right:
        problem = f"only the left has {only_left}, only the right has {only_right}"
    else:
        name = next(n for n in left if left[n] != right[n])
        problem = f"{name!r} is {left[name]} on the left and {right[name]} on the right"
    raise QueryError(
        f"{what}: both streams must have the same columns, but {problem}; use select(...) to make them alike "
        f"(left: {show_schema(left)}; right: {show_schema(right)})"
    )
