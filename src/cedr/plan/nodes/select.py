"""Select, the API's `where`: the rows for which predicates hold."""

from dataclasses import dataclass
from functools import cached_property

import polars as pl

from cedr.plan.aspects.properties import Properties
from cedr.plan.node import Columns, Node, RowByRow, Work
from cedr.plan.schema import Schema, check_predicate, roots, show_expression


@dataclass(frozen=True, eq=False)
class Select(RowByRow):
    """The rows for which all predicates hold."""

    work = Work.FUSIBLE
    keeps_lifetimes = True

    predicates: tuple[pl.Expr, ...]

    @cached_property
    def schema(self) -> Schema:
        for predicate in self.predicates:
            check_predicate(predicate, self.input.schema, f"where({show_expression(predicate)})")
        return self.input.schema

    @property
    def predicate(self) -> pl.Expr:
        return pl.all_horizontal(*self.predicates) if len(self.predicates) > 1 else self.predicates[0]

    def reads(self, needed: Columns) -> list[Columns]:
        return [needed.union(*(roots(p, self.schema) for p in self.predicates))]

    def describe(self) -> str:
        return f"Select {' and '.join(map(show_expression, self.predicates))}"

    def derive_properties(self, *inputs: Properties) -> Properties:
        """Fewer rows: everything known remains true."""
        return inputs[0]

    @property
    def lifetimes_from(self) -> Node:
        return self.input

    def loop_refusal(self, of_loop: list[bool]) -> None:
        return None
