"""A pattern with its conditions and outputs, over the streams it is about."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import polars as pl

from cedr.plan.patterns.outputs import HEADER, OF_VARIABLES
from cedr.plan.patterns.tree import Condition, EventType, Pattern, Predicate, Role
from cedr.plan.schema import Schema

OF_COMPOSITES = ("Ve", "Id", "cbt")
"""Header fields that matches of a single event do not have."""

VERSION = ("id", "vs", "ve")
"""The columns that are the header of a version."""


@dataclass(frozen=True)
class PatternSpec:
    """A pattern with its conditions and outputs, over streams with these schemas."""

    pattern: Pattern
    where: tuple[Condition, ...]
    outputs: tuple[tuple[str, pl.Expr], ...]
    schemas: tuple[Schema, ...]
    bitemporal: bool

    def columns(self, variables: Iterable[str]) -> Schema:
        """What expressions about these variables can read."""
        parts = {p.var: p for p in self.pattern.walk() if p.var}
        found: Schema = {}
        for name in variables:
            part = parts[name]
            if isinstance(part, EventType):
                found |= {f"{name}.{a}": kind for a, kind in self.schemas[part.port].items()}
            found |= {f"{name}.{field}": HEADER[field] for field in OF_VARIABLES}
        return found

    @property
    def expressions(self) -> list[pl.Expr]:
        """All that is computed."""
        return [e for _, e in self.outputs] + [c.expression for c in self.where if isinstance(c, Predicate)]


def certain(pattern: Pattern) -> frozenset[str]:
    """The variables of event types that have a value in every match."""
    if isinstance(pattern, EventType):
        return frozenset([pattern.var] if pattern.var else [])
    if pattern.leaves_out:
        return frozenset()
    return frozenset[str]().union(*(certain(p) for p in pattern.positive))


def ends_with_event(pattern: Pattern) -> bool:
    """Whether the matches have the lifetimes of events."""
    return isinstance(pattern, EventType) or (pattern.keeps_lifetimes and ends_with_event(pattern.positive[0]))


def scoped(pattern: Pattern, outer: frozenset[str] = frozenset()) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """Of every pattern its own variables and those of the positive sides around it."""
    yield pattern.variables, outer
    for p in (*pattern.positive, *pattern.counted):
        yield from scoped(p, outer)
    for p in pattern.negated:
        yield from scoped(p, outer.union(*(kept.variables for kept in pattern.positive)))


def with_roles(
    pattern: Pattern, role: Role = "positive", by: Pattern | None = None
) -> Iterator[tuple[Pattern, Role, Pattern | None]]:
    """Every pattern in it, its role in a match of the whole, and the operator that negates or counts it."""
    yield pattern, role, by
    for p in pattern.positive:
        yield from with_roles(p, role, by)
    for p in pattern.counted:
        yield from with_roles(p, *(("counted", pattern) if role == "positive" else (role, by)))
    for p in pattern.negated:
        yield from with_roles(p, "negated", pattern)
