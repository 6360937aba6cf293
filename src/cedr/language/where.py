"""WHERE of a pattern: conditions, split at AND, each with the variables it names.

The plan states which conditions can be evaluated (`cedr.plan.patterns.rules`).
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import polars as pl

from cedr.language.pattern import Bound, Variable
from cedr.plan.patterns import outputs as of_matches
from cedr.plan.patterns import tree as patterns
from cedr.plan.patterns.rules import check_condition
from cedr.syntax import tree
from cedr.syntax.errors import LanguageError, did_you_mean, listed, located
from cedr.syntax.scalars import compared, condition
from cedr.syntax.show import show
from cedr.syntax.values import Value, alike, constant

HEADER: dict[str, pl.DataType] = {name: of_matches.HEADER[name] for name in of_matches.OF_VARIABLES}
"""The header fields of every event."""


class PatternScope:
    """Names inside WHERE: `x.load`, `x.Vs`, and `load` alone where one event has it."""

    def __init__(self, bound: Bound) -> None:
        self.bound = bound
        self.used: dict[str, None] = {}

    @cached_property
    def columns(self) -> Mapping[str, pl.DataType]:
        found: dict[str, pl.DataType] = {}
        for v in self.bound.variables.values():
            found |= {f"{v.name}.{name}": dtype for name, dtype in {**(v.schema or {}), **HEADER}.items()}
        return found

    def column(self, node: tree.ParsedColumn) -> Value:
        variable = self.variable(node) if node.variable else self.only_owner(node)
        check_attribute(variable, node)
        self.used[variable.name] = None
        name = f"{variable.name}.{node.name}"
        return Value(pl.col(name), self.columns[name], node)

    def variable(self, node: tree.ParsedColumn | tree.ParsedStar) -> Variable:
        assert node.variable is not None
        if node.variable not in self.bound.variables:
            names = self.bound.variables
            hint = did_you_mean(node.variable, names)
            raise LanguageError(
                f"there is no variable {node.variable!r}{hint} (variables: {', '.join(names)})", node.at
            )
        return self.bound.variables[node.variable]

    def only_owner(self, node: tree.ParsedColumn) -> Variable:
        """The one event that has the attribute."""
        owners = [v for v in self.bound.leaves if v.schema and node.name in v.schema]
        if len(owners) == 1:
            return owners[0]
        if owners:
            choice = listed(f"{v.name}.{node.name}" for v in owners)
            raise LanguageError(f"several events have an attribute {node.name!r}; write {choice}", node.at)
        if node.name in (*HEADER, "Ve", "cbt"):
            first = next(iter(self.bound.variables))
            raise LanguageError(
                f"{node.name} of the match is not available in WHERE; use that of an event, as in {first}.Vs", node.at
            )
        names = dict.fromkeys(name for v in self.bound.leaves for name in v.schema or {})
        hint = did_you_mean(node.name, names)
        raise LanguageError(f"no event has an attribute {node.name!r}{hint} (attributes: {', '.join(names)})", node.at)

    def aggregate(self, node: tree.ParsedCall) -> Value | None:
        return None


def check_attribute(variable: Variable, node: tree.ParsedColumn) -> None:
    own = variable.schema or {}
    if node.name in HEADER:
        if node.name in own:
            raise LanguageError(
                f"{variable.name}.{node.name} is ambiguous: {variable.bound_to} has an attribute and a header field of "
                "this name; rename the attribute",
                node.at,
            )
    elif node.name == "Ve" and "Ve" not in own:
        raise LanguageError(f"patterns use only starts; {variable.name} has Vs, Rt and Id, but no Ve", node.at)
    elif variable.schema is None:
        raise LanguageError(
            f"{variable.name} is {variable.bound_to}, which has a header (Vs, Rt, Id) but no attributes; use an event "
            "inside it",
            node.at,
        )
    elif node.name not in own:
        hint = did_you_mean(node.name, [*own, *HEADER])
        raise LanguageError(
            f"{variable.bound_to} has no attribute {node.name!r}{hint} (attributes: {', '.join(own)})", node.at
        )


# --- conditions ----------------------------------------------------------------------------------------------------


def conditions(where: tree.ParsedScalar | None, bound: Bound) -> tuple[patterns.Condition, ...]:
    return tuple(one_condition(part, bound) for part in tree.conjuncts(where))


def one_condition(node: tree.ParsedScalar, bound: Bound) -> patterns.Condition:
    made = unchecked_condition(node, bound)
    with located(node.at):
        check_condition(made, bound.pattern, bound.schemas)
    return made


def unchecked_condition(node: tree.ParsedScalar, bound: Bound) -> patterns.Condition:
    if isinstance(node, tree.ParsedCorrelationKey):
        owners(node.attribute, node, bound)
        return patterns.CorrelationKey(node.attribute, node.mode)
    if isinstance(node, tree.ParsedAttributeEqual):
        return attribute_equal(node, bound)
    scope = PatternScope(bound)
    value = condition(node, scope)
    return patterns.Predicate(tuple(scope.used), value.expression, show(node))


def attribute_equal(node: tree.ParsedAttributeEqual, bound: Bound) -> patterns.AttributeEqual:
    value = signed_constant(node.value)
    for owner in owners(node.attribute, node, bound):
        column = tree.ParsedColumn(owner.name, node.attribute, at=node.at)
        attribute = Value(pl.col(node.attribute), (owner.schema or {})[node.attribute], column)
        compared("=", attribute, value, node)
        fitting, _ = alike(value, attribute)
    return patterns.AttributeEqual(node.attribute, pl.select(fitting.expression).item())


def signed_constant(node: tree.ParsedScalar) -> Value:
    value = constant(node.operand if isinstance(node, tree.ParsedMinus) else node)
    assert value is not None, "the grammar lets nothing else in"
    return replace(value, expression=-value.expression, written=node) if isinstance(node, tree.ParsedMinus) else value


def owners(attribute: str, node: tree.ParsedScalar, bound: Bound) -> list[Variable]:
    """All events, each of which must have the attribute."""
    for v in bound.leaves:
        check_attribute(v, tree.ParsedColumn(v.name, attribute, at=node.at))
    return bound.leaves
