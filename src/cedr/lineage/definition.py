"""The pattern of a plan as the reference defines it, its conditions included.

The reference tries every combination of events. Here those that are out of order or too far apart already are not
completed, so that a key with a long history can be looked at too; what is found is the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import count
from typing import Any

import polars as pl

from cedr.plan.nodes.match import Match
from cedr.plan.patterns import tree
from cedr.plan.schema import show_expression
from cedr.reference.patterns import OPERATORS
from cedr.reference.patterns.event_type import ReferenceEventType
from cedr.reference.patterns.instance import Ids, Instance, composite
from cedr.reference.patterns.pattern import ReferencePattern, ReferenceScope
from cedr.reference.patterns.predicates import ReferenceAttributeEqual, ReferenceCondition, ReferenceCorrelationKey
from cedr.reference.patterns.sequence import Ordered, ReferenceAtLeast

HEADER = {"Vs": "vs", "Rt": "rt", "Id": "id"}
"""The header fields of a variable."""


# --- patterns ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TracedEventType(ReferenceEventType):
    """An event type; `kind` is its number among the event types of the pattern, `source` its node in the plan."""

    source: tree.EventType = field(default=tree.EventType(""), compare=False)

    def __str__(self) -> str:
        return self.source.name


class Chained(Ordered):
    def candidates(self, scope: ReferenceScope) -> Iterator[Instance]:
        found = [p.instances(scope) for p in self.parameters]
        return self.compose(found, scope.ids)

    def compose(self, found: Sequence[Sequence[Instance]], ids: Ids) -> Iterator[Instance]:
        """All that can be made of these instances of the parameters."""
        for roles in self.orders():
            for chosen in chains([found[role] for role in roles], self.w):
                yield composite(chosen, roles, self.w, ids)


class ChainedAtleast(Chained, ReferenceAtLeast):
    pass


def chains(
    found: Sequence[Sequence[Instance]], w: int, begun: tuple[Instance, ...] = ()
) -> Iterator[tuple[Instance, ...]]:
    """One instance of each list, one after the other, the last at most w after the first."""
    if len(begun) == len(found):
        yield begun
        return
    for i in found[len(begun)]:
        if not begun or (i.vs > begun[-1].vs and i.vs - begun[0].vs <= w):
            yield from chains(found, w, (*begun, i))


DEFINITIONS: dict[str, type[Any]] = {**OPERATORS, "SEQUENCE": Chained, "ATLEAST": ChainedAtleast}
"""By keyword; the fields of an operator have the same names here and in the plan."""


def defined(pattern: tree.Pattern, numbers: Iterator[int] | None = None) -> ReferencePattern:
    """The pattern as the reference has it; event types are numbered as in `Pattern.leaves`."""
    numbers = count() if numbers is None else numbers
    how: dict[str, Any] = {"var": pattern.var, "selection": pattern.selection, "consumption": pattern.consumption}
    if isinstance(pattern, tree.EventType):
        return TracedEventType(str(next(numbers)), **how, source=pattern)
    definition = DEFINITIONS[pattern.keyword]
    given = {f.name: getattr(pattern, f.name) for f in fields(definition)}
    operator: ReferencePattern = definition(**{name: made(value, numbers) for name, value in given.items()})
    return operator


def made(value: Any, numbers: Iterator[int]) -> Any:
    """What a field of an operator is in the reference: parameters are patterns."""
    if isinstance(value, tuple):
        return tuple(defined(p, numbers) for p in value)
    return defined(value, numbers) if isinstance(value, tree.Pattern) else value


# --- conditions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question(ReferenceCondition):
    """A predicate of the plan, evaluated for instances."""

    variables: tuple[str, ...]
    expression: pl.Expr = field(compare=False)
    text: str
    types: Mapping[str, pl.DataType] = field(compare=False)
    """The columns it reads."""
    answers: dict[Any, bool] = field(default_factory=dict, compare=False)
    """Answers already given."""

    def concerns(self, own: frozenset[str], outer: frozenset[str]) -> bool:
        names = frozenset(self.variables)
        return bool(names & own) and names <= own | outer

    def allows(self, instance: Instance, context: tuple[Instance, ...]) -> bool:
        bound = bound_in(instance, context)
        if not all(v in bound for v in self.variables):
            return True
        about = tuple((bound[v].id, bound[v].vs) for v in self.variables)
        if about not in self.answers:
            row = pl.DataFrame(self.values(bound), schema=dict(self.types))
            self.answers[about] = bool(row.select(self.expression.alias("answer"))["answer"][0])
        return self.answers[about]

    def values(self, bound: Mapping[str, Instance]) -> dict[str, list[Any]]:
        return {name: [value(bound, name)] for name in self.types}


def bound_in(instance: Instance, context: tuple[Instance, ...]) -> dict[str, Instance]:
    return {name: i for around in (*context, instance) for name, i in around.bound.items()}


def value(bound: Mapping[str, Instance], column: str) -> Any:
    """The value of a column such as `x.load` or `x.Vs`."""
    variable, _, attribute = column.partition(".")
    if attribute in HEADER:
        return getattr(bound[variable], HEADER[attribute])
    return plain(bound[variable].payload[attribute])


def plain(attribute: Any) -> Any:
    """Rows and tuples in payloads as polars takes them."""
    if isinstance(attribute, Mapping):
        return {name: plain(inner) for name, inner in attribute.items()}
    return [plain(inner) for inner in attribute] if isinstance(attribute, tuple) else attribute


def conditions(node: Match) -> tuple[ReferenceCondition, ...]:
    return tuple(condition(c, node) for c in node.where)


def condition(c: tree.Condition, node: Match) -> ReferenceCondition:
    match c:
        case tree.CorrelationKey():
            return ReferenceCorrelationKey(c.attribute, c.mode)
        case tree.AttributeEqual():
            return ReferenceAttributeEqual(c.attribute, c.value)
    columns = node.spec.columns(dict.fromkeys(c.variables))
    types = {name: columns[name] for name in c.expression.meta.root_names()}
    return Question(c.variables, c.expression, c.text or show_expression(c.expression), types)


def text_of(c: ReferenceCondition) -> str:
    match c:
        case Question(text=text):
            return text
        case ReferenceCorrelationKey():
            return str(tree.CorrelationKey(c.attribute, c.mode))
        case ReferenceAttributeEqual():
            return str(tree.AttributeEqual(c.attribute, c.value))
    raise TypeError(f"{type(c).__name__} is not a condition of a plan")
