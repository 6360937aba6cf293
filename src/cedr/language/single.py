"""WHEN with a single event type whose header is not used: a filter by WHERE and a projection by OUTPUT.

There is nothing to match, so the query needs no state, and the optimizer can move and fuse its operators.
"""

from collections.abc import Mapping

import polars as pl

from cedr.language.calls import selected
from cedr.language.names import Origin
from cedr.language.output import MATCH, OutputScope, outputs
from cedr.language.pattern import Bound
from cedr.language.where import attribute_equal, check_attribute, owners
from cedr.stream import Stream
from cedr.syntax import tree
from cedr.syntax.errors import located
from cedr.syntax.functions import AGGREGATES
from cedr.syntax.scalars import condition
from cedr.syntax.values import Value


def asks_attributes_only(node: tree.ParsedPatternQuery, origin: Origin) -> bool:
    """Whether the query needs neither the header of the event nor aggregates, which belong to matches."""
    names = {n.name for n in tree.walk(node) if isinstance(n, tree.ParsedColumn)}
    calls = {n.name for n in tree.walk(node) if isinstance(n, tree.ParsedCall)}
    return not calls & set(AGGREGATES) and not (names & set(MATCH)) - set(origin.stream.columns)


class EventScope(OutputScope):
    """Names of a single event: `x.load` is a column."""

    @property
    def columns(self) -> Mapping[str, pl.DataType]:
        return self.bound.leaves[0].schema or {}

    def column(self, node: tree.ParsedColumn) -> Value:
        variable = self.variable(node) if node.variable else self.only_owner(node)
        if node.name not in self.columns:
            check_attribute(variable, node)
        return Value(pl.col(node.name), self.columns[node.name], node)


def single(node: tree.ParsedPatternQuery, bound: Bound, origin: Origin) -> Stream:
    scope = EventScope(bound)
    stream = origin.as_stream()
    for part in tree.conjuncts(node.where):
        predicate = predicate_of(part, scope)
        with located(part.at):
            stream = stream if predicate is None else stream.where(predicate)
    output = outputs(node, scope)
    with located(node.at):
        return selected(stream, dict(output))


def predicate_of(node: tree.ParsedScalar, scope: EventScope) -> pl.Expr | None:
    """The condition on the event; None for a correlation key, which a single event always satisfies."""
    if isinstance(node, tree.ParsedCorrelationKey):
        owners(node.attribute, node, scope.bound)
        return None
    if isinstance(node, tree.ParsedAttributeEqual):
        equal = attribute_equal(node, scope.bound)
        return pl.col(equal.attribute) == pl.lit(equal.value)
    return condition(node, scope).expression
