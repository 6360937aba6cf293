"""A run of row-by-row nodes as one step: one pass over the payload, one over the times."""

from dataclasses import dataclass
from functools import cached_property

from cedr.plan.aspects.properties import Properties
from cedr.plan.node import Columns, Node, RowByRow
from cedr.plan.schema import Schema


@dataclass(frozen=True, eq=False)
class Fused(RowByRow):
    """`steps` from the input up; each is the node it was, its own input included for its schema."""

    steps: tuple[Node, ...]

    @cached_property
    def schema(self) -> Schema:
        return self.steps[-1].schema

    @property
    def keeps_lifetimes(self) -> bool:
        return all(step.keeps_lifetimes for step in self.steps)

    def reads(self, needed: Columns) -> list[Columns]:
        return [set(self.input.schema)]

    @property
    def passed_columns(self) -> dict[str, str]:
        names = {name: name for name in self.schema}
        for step in reversed(self.steps):
            below = step.passed_columns
            names = {shown: below[name] for shown, name in names.items() if name in below}
        return names

    def describe(self) -> str:
        return f"Fused [{' | '.join(step.describe() for step in self.steps)}]"

    def derive_properties(self, *inputs: Properties) -> Properties:
        (known,) = inputs
        for step in self.steps:
            known = step.derive_properties(known)
        return known

    @property
    def window(self) -> int | None:
        return next((step.window for step in reversed(self.steps) if step.window is not None), None)

    @property
    def lifetimes_from(self) -> Node:
        return self.input
