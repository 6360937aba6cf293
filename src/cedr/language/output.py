"""OUTPUT: the columns of each match. By default all attributes of all events that take part.

A column has its own name if that is unique, else `variable_name`. Aggregates are over the contributors of the match:
those events taking part that have the required attributes.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property

import polars as pl

from cedr.language.pattern import Variable
from cedr.language.where import HEADER, PatternScope
from cedr.plan.patterns import outputs as of_matches
from cedr.plan.patterns.rules import check_output_names, check_takes_part
from cedr.plan.patterns.spec import with_roles
from cedr.plan.patterns.tree import Pattern, PatternError
from cedr.syntax import functions, tree
from cedr.syntax.errors import LanguageError, located
from cedr.syntax.scalars import compiled
from cedr.syntax.show import show
from cedr.syntax.values import Value, typed

MATCH: dict[str, pl.DataType] = dict(of_matches.HEADER)
"""The header of the match itself."""

AGGREGATES: dict[str, Callable[[list[pl.Expr]], pl.Expr]] = {
    "count": lambda values: pl.sum_horizontal(*(v.is_not_null().cast(pl.Int64) for v in values)),
    "sum": lambda values: pl.sum_horizontal(*values),
    "avg": lambda values: pl.mean_horizontal(*values),
    "min": lambda values: pl.min_horizontal(*values),
    "max": lambda values: pl.max_horizontal(*values),
}

Outputs = tuple[tuple[str, pl.Expr], ...]


class OutputScope(PatternScope):
    """Names inside OUTPUT: events that take part, and the header of the match."""

    @cached_property
    def columns(self) -> Mapping[str, pl.DataType]:
        return {**super().columns, **MATCH}

    @property
    def contributors(self) -> list[Variable]:
        return [v for v in self.bound.leaves if v.name in self.bound.pattern.variables]

    @property
    def counting(self) -> Pattern | None:
        """The operator that only counts its events, if there is one."""
        return next((by for _, role, by in with_roles(self.bound.pattern) if role == "counted"), None)

    def column(self, node: tree.ParsedColumn) -> Value:
        owned = any(node.name in (v.schema or ()) for v in self.contributors)
        if node.variable is None and node.name in MATCH and not owned:
            return Value(pl.col(node.name), MATCH[node.name], node)
        return super().column(node)

    def variable(self, node: tree.ParsedColumn | tree.ParsedStar) -> Variable:
        found = super().variable(node)
        with located(node.at):
            check_takes_part(found.name, self.bound.pattern)
        return found

    def only_owner(self, node: tree.ParsedColumn) -> Variable:
        found = super().only_owner(node)
        with located(node.at):
            check_takes_part(found.name, self.bound.pattern)
        return found

    def aggregate(self, node: tree.ParsedCall) -> Value | None:
        if node.name in functions.AGGREGATES and node.name not in AGGREGATES:
            available = ", ".join(name.upper() for name in AGGREGATES)
            raise LanguageError(
                f"{node.name.upper()} is not an aggregate over contributors; available are: {available}", node.at
            )
        if node.name not in AGGREGATES:
            return None
        if len(node.arguments) != 1:
            raise LanguageError(f"{node.name.upper()} takes one argument, not {len(node.arguments)}", node.at)
        if isinstance(node.arguments[0], tree.ParsedStar):
            return self.number_of_contributors(node)
        return self.over_contributors(node, node.arguments[0])

    def number_of_contributors(self, node: tree.ParsedCall) -> Value:
        if node.name != "count":
            raise LanguageError(f"only COUNT takes *; write for example {node.name.upper()}(load)", node.at)
        if self.counting:
            return Value(pl.col("cbt").list.len().cast(pl.Int64), pl.Int64(), node)
        here = [pl.col(f"{v.name}.Vs") for v in self.contributors]
        return Value(AGGREGATES["count"](here), pl.Int64(), node)

    def over_contributors(self, node: tree.ParsedCall, argument: tree.ParsedScalar) -> Value:
        if self.counting:
            raise LanguageError(
                f"{show(node)}: {self.counting} only counts its events; the only aggregate of them is COUNT(*)", node.at
            )
        required = attributes_in(argument)
        having = [v for v in self.contributors if required <= {*(v.schema or ()), *HEADER}]
        if not having:
            self.only_owner(next(iter(unqualified(argument))))  # raises an error that names the wrong attribute
        values = [self.of_contributor(argument, v) for v in having]
        if node.name in ("sum", "avg"):
            for value in values:
                if value.kind not in ("number", "missing"):
                    raise LanguageError(f"{value}; {node.name.upper()} takes numbers", argument.at)
        for value in values[1:]:
            if value.kind != values[0].kind:
                raise LanguageError(
                    f"{values[0]}, but {value}; an aggregate takes values of compatible types", argument.at
                )
        return typed(AGGREGATES[node.name]([v.expression for v in values]), self.columns, node)

    def of_contributor(self, argument: tree.ParsedScalar, contributor: Variable) -> Value:
        """Missing where the contributor does not take part, even if the argument has a value without it."""
        value = compiled(argument, ContributorScope(self, contributor))
        if isinstance(argument, tree.ParsedColumn):
            return value
        takes_part = pl.col(f"{contributor.name}.Vs").is_not_null()
        return replace(value, expression=pl.when(takes_part).then(value.expression))


class ContributorScope(PatternScope):
    """Names inside an aggregate: attributes of one contributor at a time."""

    def __init__(self, around: OutputScope, contributor: Variable) -> None:
        super().__init__(around.bound)
        self.contributor = contributor

    def column(self, node: tree.ParsedColumn) -> Value:
        if node.variable is not None:
            raise LanguageError(f"an aggregate is over all contributors; write {node.name}, not {show(node)}", node.at)
        return super().column(tree.ParsedColumn(self.contributor.name, node.name, at=node.at))


def unqualified(node: tree.ParsedScalar) -> list[tree.ParsedColumn]:
    return [n for n in tree.walk(node) if isinstance(n, tree.ParsedColumn)]


def attributes_in(node: tree.ParsedScalar) -> set[str]:
    return {c.name for c in unqualified(node)}


# --- the list ------------------------------------------------------------------------------------------------------


def outputs(node: tree.ParsedPatternQuery, scope: OutputScope) -> Outputs:
    everything = tree.ParsedItem(tree.ParsedStar(at=node.pattern.at), at=node.pattern.at)
    items = [one for item in node.output or [everything] for one in expanded(item, scope)]
    if not items:
        return (("count", pl.col("cbt").list.len().cast(pl.Int64)),)
    plain = Counter(item.value.name for item in items if not item.alias and isinstance(item.value, tree.ParsedColumn))
    named = [(output_name(item, plain), item) for item in items]
    try:
        check_output_names([name for name, _ in named])
    except PatternError as e:
        raise LanguageError(str(e), next(item.at for name, item in reversed(named) if name == e.about)) from None
    return tuple((name, compiled(item.value, scope).expression) for name, item in named)


def expanded(item: tree.ParsedItem, scope: OutputScope) -> list[tree.ParsedItem]:
    """`*` and `x.*` as the columns they mean."""
    star = item.value
    if not isinstance(star, tree.ParsedStar):
        return [item]
    if item.alias:
        raise LanguageError("* means several attributes, so it cannot have one name", item.at)
    variables = [scope.variable(star)] if star.variable else scope.contributors
    return [
        tree.ParsedItem(tree.ParsedColumn(v.name, a, at=item.at), at=item.at) for v in variables for a in v.attributes
    ]


def output_name(item: tree.ParsedItem, plain: Mapping[str, int]) -> str:
    if item.alias:
        return item.alias
    match item.value:
        case tree.ParsedColumn(variable, name):
            return name if plain[name] == 1 or variable is None else f"{variable}_{name}"
        case tree.ParsedCall(name, (tree.ParsedStar(),)):
            return name
        case tree.ParsedCall(name, (tree.ParsedColumn(_, argument),)):
            return f"{name}_{argument}"
    raise LanguageError(f"this output needs a name; write {show(item.value)} AS name", item.at)
