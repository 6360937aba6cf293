"""By which attributes the events of a match are sure to agree, so that they can be kept and spread by these.

`CorrelationKey(a, EQUAL)` requires it of all event types. Predicates `x.a = y.b` do when they tie together all events
that are ever looked at together: the event types of a match, and what is forbidden with what is kept. Where parameters
may take no part, every two must be compared directly. Such predicates need not be evaluated any more. An event whose
key is missing agrees with none, so it can only match alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl
from polars.exceptions import PolarsError

from cedr.plan.patterns.tree import Condition, CorrelationKey, EventType, Pattern, Predicate

Schema = dict[str, pl.DataType]
End = tuple[str, str]
"""A variable and an attribute."""


@dataclass(frozen=True)
class Key:
    attributes: tuple[tuple[str, ...], ...]
    """For each event type, in the order of `Pattern.leaves`, the attributes that make up its key; all equally many."""
    replaced: tuple[Condition, ...]
    """The conditions that are true of all events with the same key."""

    def __bool__(self) -> bool:
        return bool(self.attributes and self.attributes[0])


def key_of(pattern: Pattern, where: Sequence[Condition], schemas: Sequence[Schema]) -> Key:
    """The key of a pattern over members with these schemas."""
    leaves = pattern.leaves()
    columns: list[tuple[str, ...]] = []
    replaced: list[Condition] = []
    for c in where:
        if isinstance(c, CorrelationKey) and c.mode == "EQUAL":
            columns.append((c.attribute,) * len(leaves))
            replaced.append(c)
    equal = {id(p): ends for p in where if isinstance(p, Predicate) and (ends := equated(p, leaves, schemas))}
    strictly = any(p.leaves_out for p in pattern.walk())
    for column in classes(list(equal.values()), leaves):
        used = [p for p in where if id(p) in equal and all(column.get(v) == a for v, a in equal[id(p)])]
        if all(tied(group, [equal[id(p)] for p in used], strictly) for group in together(pattern)):
            columns.append(tuple(column[leaf.var or ""] for leaf in leaves))
            replaced += used
    return Key(tuple(zip(*columns, strict=True)) if columns else tuple(() for _ in leaves), tuple(replaced))


def equated(predicate: Predicate, leaves: Sequence[EventType], schemas: Sequence[Schema]) -> tuple[End, End] | None:
    """The two ends of `x.a = y.b`, if the predicate is just that for two event types."""
    try:
        operands = predicate.expression.meta.pop()
        if len(operands) != 2 or not all(o.meta.is_column() for o in operands):
            return None
        right, left = operands
        if not any((one == other).meta.eq(predicate.expression) for one, other in ((left, right), (right, left))):
            return None
    except PolarsError:
        return None
    types = {leaf.var: schemas[leaf.port] for leaf in leaves if leaf.var}
    (x, _, a), (y, _, b) = (o.meta.output_name().partition(".") for o in (left, right))
    if x == y or a not in types.get(x, {}) or b not in types.get(y, {}):
        return None
    kind = types[x][a]
    return ((x, a), (y, b)) if kind == types[y][b] and not kind.is_float() and not kind.is_nested() else None


def classes(equal: list[tuple[End, End]], leaves: Sequence[EventType]) -> Iterator[dict[str, str]]:
    """Attributes that are equal to each other, one for each event type."""
    left = list(equal)
    while left:
        ends = set(left.pop(0))
        while more := [pair for pair in left if ends & set(pair)]:
            ends.update(end for pair in more for end in pair)
            left = [pair for pair in left if pair not in more]
        column = dict(sorted(ends))
        if len(column) == len(ends) and set(column) == {leaf.var for leaf in leaves}:
            yield column


def together(pattern: Pattern, outer: frozenset[str] = frozenset()) -> Iterator[frozenset[str]]:
    """The variables of event types that are looked at together, a group at a time."""
    yield outer | positive(pattern)
    yield from inside(pattern, outer)


def inside(pattern: Pattern, outer: frozenset[str]) -> Iterator[frozenset[str]]:
    for p in pattern.positive:
        yield from inside(p, outer)
    for p in pattern.negated:
        yield from together(p, outer.union(*(positive(kept) for kept in pattern.positive)))
    for p in pattern.counted:  # if nothing outside defines what to count, counts must not be split
        yield from together(p, outer or frozenset(["", "untied"]))


def positive(pattern: Pattern) -> frozenset[str]:
    if isinstance(pattern, EventType):
        return frozenset([pattern.var or ""])
    return frozenset[str]().union(*(positive(p) for p in pattern.positive))


def tied(group: frozenset[str], equal: list[tuple[End, End]], strictly: bool) -> bool:
    """Whether the equations connect all variables of a group; strictly: any two of them directly."""
    pairs = {frozenset((x, y)) for (x, _), (y, _) in equal if x in group and y in group}
    if strictly:
        return len(pairs) == len(group) * (len(group) - 1) // 2
    reached = set(sorted(group)[:1])
    while more := {v for pair in pairs if pair & reached for v in pair} - reached:
        reached |= more
    return reached == group
