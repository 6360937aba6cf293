"""The plan node that runs an event pattern, and the words in which patterns are written as data.

`cedr.operators.patterns.tree` says what the patterns and conditions are and which columns expressions read. Here a
pattern is checked against the streams it is about: a mistake is found when the query is written.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import polars as pl

from cedr.operators.patterns.keys import Key
from cedr.operators.patterns.keys import key_of as key_of_members
from cedr.operators.patterns.prepared import parts_under
from cedr.operators.patterns.rendering import HEADER, OF_VARIABLES
from cedr.operators.patterns.tree import (
    AtLeast,
    AtMost,
    AttributeEqual,
    CancelWhen,
    Condition,
    Consumption,
    CorrelationKey,
    EventType,
    Negation,
    Not,
    Pattern,
    Predicate,
    Selection,
    Sequence,
    Unless,
)
from cedr.plan.node import Node, Speculative
from cedr.plan.schema import Schema, check_columns, check_predicate, check_row_wise, evaluate, roots, show_expression
from cedr.temporal.errors import QueryError
from cedr.temporal.time import as_duration

__all__ = [
    "AtLeast",
    "AtMost",
    "AttributeEqual",
    "CancelWhen",
    "Condition",
    "Consumption",
    "CorrelationKey",
    "EventType",
    "Key",
    "Match",
    "Negation",
    "Not",
    "Pattern",
    "Predicate",
    "Selection",
    "Sequence",
    "Unless",
    "key_of",
]

OF_COMPOSITES = ("Ve", "Id", "cbt")
"""Header fields that matches of a single event do not have."""

VERSION = ("id", "vs", "ve")
"""The columns that are the header of a version."""

MOST_TYPES = 62
"""Which event types accept an event is kept in one word."""


@dataclass(frozen=True, eq=False)
class Match(Speculative):
    """The matches of a pattern over the members, which are its ports; `outputs` makes the payload of each.

    `bitemporal`: the members tell of versions. Their axis is occurrence time, and the columns `id, vs, ve` hold the
    header on the valid axis, on which the pattern looks. So do those of the output, which come before `outputs`.
    """

    members: tuple[Node, ...]
    pattern: Pattern
    where: tuple[Condition, ...] = ()
    outputs: tuple[tuple[str, pl.Expr], ...] = ()
    text: str = ""
    bitemporal: bool = False

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.members

    def with_inputs(self, *inputs: Node) -> Self:
        return replace(self, members=inputs)

    @cached_property
    def schema(self) -> Schema:
        for pattern in self.pattern.walk():
            check_shape(pattern)
        check_types(self)
        check_variables(self)
        check_conditions(self)
        parts_under(self.key, self.pattern, self.where)
        if not self.bitemporal:
            return checked_outputs(self)
        check_versions(self)
        return {**dict.fromkeys(VERSION, pl.Int64()), **checked_outputs(self)}

    @cached_property
    def key(self) -> Key:
        """The attributes by which events meet."""
        return key_of_members(self.pattern, self.where, [m.schema for m in self.members])

    @property
    def keys_by_port(self) -> list[tuple[str, ...]] | None:
        """The key of each port's rows, if each has one; None if some have none, or differ among the port's types."""
        found: dict[int, tuple[str, ...]] = {}
        for leaf, attributes in zip(self.pattern.leaves(), self.key.attributes, strict=True):
            if found.setdefault(leaf.port, attributes) != attributes:
                return None
        used = range(len(self.members))
        return [found[port] for port in used] if self.key and all(port in found for port in used) else None

    @property
    def by(self) -> tuple[str, ...]:
        """The key, by its names in the first stream."""
        return (self.keys_by_port or [()])[0]

    @cached_property
    def shown_keys(self) -> dict[str, str]:
        """The outputs that are a part of the key as it is, and its names in the first stream."""
        by_variable = {
            f"{leaf.var}.{attribute}": name
            for leaf, attributes in zip(self.pattern.leaves(), self.key.attributes, strict=True)
            for attribute, name in zip(attributes, self.by, strict=False)
            if leaf.var in certain(self.pattern)
        }
        plain = {name: e.meta.undo_aliases() for name, e in self.outputs}
        columns = {name: e.meta.output_name() for name, e in plain.items() if e.meta.is_column()}
        return {name: by_variable[column] for name, column in columns.items() if column in by_variable}

    @property
    def outputs_of_key(self) -> dict[str, list[str]]:
        """The outputs that show each column of the key, which operators call `key0` and so on."""
        shown = self.shown_keys.items()
        return {f"key{i}": [output for output, n in shown if n == name] for i, name in enumerate(self.by)}

    def columns(self, variables: Iterable[str]) -> Schema:
        """What expressions about these variables can read."""
        parts = {p.var: p for p in self.pattern.walk() if p.var}
        found: Schema = {}
        for name in variables:
            part = parts[name]
            if isinstance(part, EventType):
                found |= {f"{name}.{a}": kind for a, kind in self.members[part.port].schema.items()}
            found |= {f"{name}.{field}": HEADER[field] for field in OF_VARIABLES}
        return found

    @property
    def expressions(self) -> list[pl.Expr]:
        """All that is computed."""
        return [e for _, e in self.outputs] + [c.expression for c in self.where if isinstance(c, Predicate)]

    def reads(self) -> list[set[str]]:
        """The columns of each member that are needed."""
        if self.needs_whole_payloads:
            return [set(m.schema) for m in self.members]
        needed: list[set[str]] = [set() for _ in self.members]
        ports = {p.var: p.port for p in self.pattern.leaves() if p.var}
        for name in (name for e in self.expressions for name in e.meta.root_names()):
            variable, _, attribute = name.partition(".")
            if attribute and variable in ports and attribute not in OF_VARIABLES:
                needed[ports[variable]].add(attribute)
        for leaf in self.pattern.leaves():
            if leaf.where is not None:
                needed[leaf.port] |= set(roots(leaf.where, self.members[leaf.port].schema))
            needed[leaf.port] |= {c.attribute for c in self.where if not isinstance(c, Predicate)}
        return needed

    @property
    def needs_whole_payloads(self) -> bool:
        """Whether ids are asked for, which are made of the whole payload."""
        if self.bitemporal or any((p.selection, p.consumption) != ("EACH", "REUSE") for p in self.pattern.walk()):
            return True
        names = {name for e in self.expressions for name in e.meta.root_names()}
        return bool(names & {"Id", "cbt"}) or any(name.endswith(".Id") for name in names)


def key_of(node: Match) -> Key:
    """By which attributes the events of a match agree, and the conditions that need not be asked for that reason."""
    return node.key


def certain(pattern: Pattern) -> frozenset[str]:
    """The variables of event types that have a value in every match."""
    if isinstance(pattern, EventType):
        return frozenset([pattern.var] if pattern.var else [])
    if isinstance(pattern, AtLeast) and pattern.n < len(pattern.parameters):
        return frozenset()
    return frozenset[str]().union(*(certain(p) for p in pattern.positive))


# --- checks --------------------------------------------------------------------------------------------------------


def check_shape(pattern: Pattern) -> None:
    """Refuse patterns that cannot match, whatever comes."""
    match pattern:
        case Sequence() | AtLeast() | AtMost():
            as_duration(pattern.w, f"scope of {pattern.word}")
            if not pattern.parameters:
                raise QueryError(f"{pattern.word} has no parameters; name at least one event type")
        case Unless(w=w, n=n, kept=kept):
            as_duration(w, "scope of UNLESS")
            if n is not None and not 1 <= n <= kept.contributors:
                raise QueryError(
                    f"UNLESS counts its scope from contributor {n}, but its first parameter {called(kept)} is sure to "
                    f"have only {kept.contributors}"
                )
        case Not(kept=kept) if not isinstance(kept, Sequence | AtLeast):
            raise QueryError(f"NOT takes a sequence as its scope, not {called(kept)}; use CANCEL-WHEN or UNLESS")
    if isinstance(pattern, AtLeast) and not 1 <= pattern.n <= len(pattern.parameters):
        raise QueryError(f"ATLEAST({pattern.n}, …) has {len(pattern.parameters)} parameters; n must lie from 1 to that")
    if isinstance(pattern, AtMost) and pattern.n < 1:
        raise QueryError(f"ATMOST({pattern.n}, …): n must be at least 1, as a time without events gives no output")
    selecting = isinstance(pattern, Sequence | AtLeast)
    for parameter in (*pattern.negated, *pattern.counted, *(() if selecting else pattern.positive)):
        if (parameter.selection, parameter.consumption) != ("EACH", "REUSE"):
            raise QueryError(
                f"{called(parameter)} in {pattern.word} cannot be {parameter.selection} {parameter.consumption}; "
                "selection and consumption go with the parameters of SEQUENCE, ATLEAST, ALL and ANY"
            )


def called(pattern: Pattern) -> str:
    return pattern.name if isinstance(pattern, EventType) else pattern.word


def check_types(node: Match) -> None:
    leaves = node.pattern.leaves()
    if len(leaves) > MOST_TYPES:
        raise QueryError(f"the pattern names {len(leaves)} event types, at most {MOST_TYPES} are possible; split it")
    names = {name for e in node.expressions for name in e.meta.root_names()}
    single = ends_with_event(node.pattern) and not node.bitemporal
    if single and (unknown := [n for n in sorted(names) if n.split(".")[-1] in OF_COMPOSITES]):
        raise QueryError(
            f"{unknown[0]} is not known of a single event, as nothing is remembered for it; "
            f"ANY({called(node.pattern.leaves()[0])}) has it, with a lifetime of one chronon"
        )
    for leaf in leaves:
        if not 0 <= leaf.port < len(node.members):
            raise QueryError(f"event type {leaf.name} is read from stream {leaf.port}, of {len(node.members)}")
        if leaf.where is not None:
            check_predicate(leaf.where, node.members[leaf.port].schema, f"event type {leaf.name}")


def check_versions(node: Match) -> None:
    for member in node.members:
        check_columns(VERSION, member.schema, "a pattern over versions needs id, vs and ve of the valid axis")
        if wrong := [name for name in ("vs", "ve") if member.schema[name] != pl.Int64]:
            raise QueryError(f"column {wrong[0]!r} of versions is {member.schema[wrong[0]]}; it must be Int64 chronons")
    if taken := [name for name, _ in node.outputs if name in VERSION]:
        raise QueryError(f"OUTPUT yields {taken[0]!r}, which is a part of the header here; give it another name")


def ends_with_event(pattern: Pattern) -> bool:
    """Whether the matches have the lifetimes of events."""
    return isinstance(pattern, EventType) or (isinstance(pattern, CancelWhen) and ends_with_event(pattern.kept))


def check_variables(node: Match) -> None:
    uses = Counter(p.var for p in node.pattern.walk() if p.var)
    for variable, times in uses.items():
        if times > 1:
            raise QueryError(f"variable {variable!r} is given to {times} parameters; each needs its own")
    scopes = list(scoped(node.pattern))
    for c in node.where:
        if not isinstance(c, Predicate):
            continue
        names = set(c.variables)
        if unknown := [v for v in c.variables if v not in uses]:
            raise QueryError(f"WHERE names {unknown[0]!r}; the variables are: {', '.join(sorted(uses)) or 'none'}")
        if not any(own & names and names <= own | outer for own, outer in scopes):
            raise QueryError(
                f"WHERE {c.text or show_expression(c.expression)} compares {' and '.join(c.variables)}, which never "
                "have a value together: a negated or counted variable is known only while it is looked for"
            )


def scoped(pattern: Pattern, outer: frozenset[str] = frozenset()) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """Of every pattern its own variables and those of the positive sides around it."""
    yield pattern.variables, outer
    for p in (*pattern.positive, *pattern.counted):
        yield from scoped(p, outer)
    for p in pattern.negated:
        yield from scoped(p, outer.union(*(kept.variables for kept in pattern.positive)))


def check_conditions(node: Match) -> None:
    leaves = node.pattern.leaves()
    for c in node.where:
        if isinstance(c, Predicate):
            what = f"WHERE {c.text or show_expression(c.expression)}"
            check_predicate(c.expression, node.columns(dict.fromkeys(c.variables)), what)
            continue
        for leaf in leaves:
            schema = node.members[leaf.port].schema
            check_columns([c.attribute], schema, f"{shown(c)}, event type {leaf.name}")
            if isinstance(c, AttributeEqual):
                check_predicate(pl.col(c.attribute) == pl.lit(c.value), schema, f"{shown(c)}, event type {leaf.name}")
        if isinstance(c, CorrelationKey):
            check_key(node, c)


def check_key(node: Match, key: CorrelationKey) -> None:
    kinds = {leaf.name: node.members[leaf.port].schema[key.attribute] for leaf in node.pattern.leaves()}
    (one, kind), *others = kinds.items()
    for other, other_kind in others:
        if other_kind != kind:
            raise QueryError(f"{shown(key)}: {key.attribute!r} is {kind} in {one}, but {other_kind} in {other}")
    if key.mode == "UNIQUE" and any(isinstance(p, AtMost) for p in node.pattern.walk()):
        raise QueryError(f"{shown(key)} has no meaning for ATMOST, which only counts; use EQUAL")


def shown(condition: CorrelationKey | AttributeEqual) -> str:
    if isinstance(condition, CorrelationKey):
        return f"CorrelationKey({condition.attribute}, {condition.mode})"
    return f"[{condition.attribute} EQUAL {condition.value!r}]"


def checked_outputs(node: Match) -> Schema:
    columns = {**node.columns(sorted(node.pattern.variables)), **HEADER}
    names = [name for name, _ in node.outputs]
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise QueryError(f"OUTPUT yields {twice[0]!r} twice; give one another name")
    if not names:
        raise QueryError("OUTPUT is empty; name at least one column")
    expressions = [e.alias(name) for name, e in node.outputs]
    hidden = {v for p in node.pattern.walk() if (v := p.var)} - node.pattern.variables
    for name in (name for e in expressions for name in e.meta.root_names()):
        if name.partition(".")[0] in hidden:
            raise QueryError(
                f"OUTPUT names {name!r}, but {name.partition('.')[0]!r} is negated or counted, so a match has no "
                "single value of it"
            )
    check_row_wise(expressions, columns, "OUTPUT")
    return dict(evaluate(lambda frame: frame.select(expressions), columns, "OUTPUT").schema)
