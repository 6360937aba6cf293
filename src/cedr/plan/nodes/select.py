"""Select, the API's `where`: the rows for which predicates hold."""

from dataclasses import dataclass
from functools import cached_property

import polars as pl

from cedr.plan.node import Unary
from cedr.plan.schema import Schema, check_predicate, show_expression


@dataclass(frozen=True, eq=False)
class Select(Unary):
    """The rows for which all predicates hold."""

    predicates: tuple[pl.Expr, ...]

    @cached_property
    def schema(self) -> Schema:
        for predicate in self.predicates:
            check_predicate(predicate, self.input.schema, f"where({show_expression(predicate)})")
        return self.input.schema

    @property
    def predicate(self) -> pl.Expr:
        return pl.all_horizontal(*self.predicates) if len(self.predicates) > 1 else self.predicates[0]
