"""Project, the API's `select` and `with_columns`: each payload replaced by expressions of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import polars as pl

from cedr.plan.aspects.properties import Properties
from cedr.plan.node import Columns, Node, RowByRow, Work
from cedr.plan.schema import Schema, project_schema, roots, show_expression


class Output(NamedTuple):
    """An expression with the names of the columns it yields: one, unless it selects columns by pattern."""

    names: tuple[str, ...]
    expression: pl.Expr

    @property
    def passes(self) -> bool:
        """Whether it is a column of the input, unchanged."""
        return self.expression.meta.is_column() and self.expression.meta.root_names() == list(self.names)


@dataclass(frozen=True, eq=False)
class Project(RowByRow):
    """Each payload replaced by expressions of it."""

    work = Work.FUSIBLE
    keeps_lifetimes = True

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

    def describe(self) -> str:
        shown = (o.names[0] if o.passes else show_expression(o.expression) for o in self.outputs)
        return f"Project {', '.join(shown)}"

    def reads(self, needed: Columns) -> list[Columns]:
        expressions = self.narrowed(needed).expressions
        return [{name for e in expressions for name in roots(e, self.input.schema)}]

    def narrowed(self, needed: Columns) -> "Project":
        outputs = tuple(o for o in self.outputs if needed & set(o.names)) or self.outputs[:1]
        return self if len(outputs) == len(self.outputs) else replace(self, outputs=outputs)

    @property
    def passed_columns(self) -> dict[str, str]:
        plain = {o.names[0]: o.expression.meta.undo_aliases() for o in self.outputs if len(o.names) == 1}
        return {name: e.meta.root_names()[0] for name, e in plain.items() if e.meta.is_column()}

    def derive_properties(self, *inputs: Properties) -> Properties:
        (p,) = inputs
        kept = p.key is not None and p.key <= self.passed
        return replace(p, key=p.key if kept else None, duplicate_free=kept)

    @property
    def lifetimes_from(self) -> Node:
        return self.input

    def loop_refusal(self, of_loop: list[bool]) -> None:
        return None


def project(input: Node, expressions: Sequence[pl.Expr]) -> Project:
    """A project whose expressions are separated by the columns they yield."""
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
