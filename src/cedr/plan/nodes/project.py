"""Project, the API's `select` and `with_columns`: each payload replaced by expressions of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import polars as pl

from cedr.plan.node import Node, Unary
from cedr.plan.schema import Schema, project_schema, roots


class Output(NamedTuple):
    """An expression with the names of the columns it yields: one, unless it speaks of columns by pattern."""

    names: tuple[str, ...]
    expression: pl.Expr

    @property
    def passes(self) -> bool:
        """Whether it is a column of the input, unchanged."""
        return self.expression.meta.is_column() and self.expression.meta.root_names() == list(self.names)


@dataclass(frozen=True, eq=False)
class Project(Unary):
    """Each payload replaced by expressions of it."""

    outputs: tuple[Output, ...]

    @cached_property
    def schema(self) -> Schema:
        return project_schema(self.expressions, self.input.schema, "select")

    @property
    def expressions(self) -> list[pl.Expr]:
        return [o.expression for o in self.outputs]

    @property
    def passed(self) -> set[str]:
        """The columns that are the input's, unchanged."""
        return {o.names[0] for o in self.outputs if o.passes}

    def reads(self) -> set[str]:
        return {name for o in self.outputs for name in roots(o.expression, self.input.schema)}


def renamed(node: Project) -> dict[str, str]:
    """The columns that pass unchanged: their names in the output, and in the input."""
    plain = {o.names[0]: o.expression.meta.undo_aliases() for o in node.outputs if len(o.names) == 1}
    return {name: e.meta.root_names()[0] for name, e in plain.items() if e.meta.is_column()}


def project(input: Node, expressions: Sequence[pl.Expr]) -> Project:
    """A project whose expressions are told apart by the columns they yield."""
    schema = input.schema
    project_schema(expressions, schema, "select")
    outputs: list[Output] = []
    for e in expressions:
        names = tuple(project_schema([e], schema, "select"))
        if e.meta.is_column_selection() and not e.meta.is_column():
            outputs += keep(names)
        else:
            outputs.append(Output(names, e))
    return Project(input, tuple(outputs))


def keep(names: Iterable[str]) -> list[Output]:
    """Columns as they are."""
    return [Output((name,), pl.col(name)) for name in names]
