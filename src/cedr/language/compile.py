"""Syntax tree to streams: one stream for each statement; later statements can read earlier ones.

Statements with equal bodies share one plan node, which is computed once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cedr.arguments import LEVELS
from cedr.language.loop import loop
from cedr.language.names import Names
from cedr.language.output import OutputScope, outputs
from cedr.language.pattern import Bound
from cedr.language.regex import regex_matches
from cedr.language.single import asks_attributes_only, single
from cedr.language.tables import Tables, whole_length
from cedr.language.where import conditions
from cedr.plan.node import Node
from cedr.plan.nodes.match import Match
from cedr.plan.versions import contains_versions
from cedr.stream import Stream
from cedr.syntax import tree
from cedr.syntax.errors import LanguageError, located
from cedr.syntax.parse import parse
from cedr.syntax.show import show
from cedr.syntax.values import lengths_as_numbers
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF


def compile(text: str, streams: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Stream]:
    """The streams of all statements, by name, in their order."""
    if not isinstance(text, str):
        raise QueryError(f"query: the text is a {type(text).__name__}; write the query first, then its streams")
    names = Names(streams, named)
    script = parse(text)
    try:
        return compiled(script, names)
    except LanguageError as e:
        raise e.within(text) from None


def compiled(script: tree.ParsedScript, names: Names) -> dict[str, Stream]:
    tables = Tables(names)
    bodies: dict[tuple[tree.Syntax, str | None], Stream] = {}
    results: dict[str, Stream] = {}
    for statement in script.statements:
        names.statement = statement.name
        # a loop reads itself by its name, so the name is part of its identity
        key = statement.body, statement.name if isinstance(statement.body, tree.ParsedLoopQuery) else None
        if key not in bodies:
            bodies[key] = body_of(statement, names, tables)
        stream = at_level(bodies[key], statement)
        names.define(statement.name, stream, statement.at)
        results[statement.name] = stream
    return results


def body_of(statement: tree.ParsedStatement, names: Names, tables: Tables) -> Stream:
    with lengths_as_numbers() as lengths:
        stream = unchecked(statement, names, tables)
    return Stream(replace(stream.plan, lengths=tuple(lengths))) if lengths else stream


def unchecked(statement: tree.ParsedStatement, names: Names, tables: Tables) -> Stream:
    """Lengths inside expressions still have to be kept for a check of the sources."""
    body = statement.body
    match body:
        case tree.ParsedPatternQuery():
            stream = matches(body, names)
        case tree.ParsedRegexQuery():
            stream = regex_matches(body, names)
        case tree.ParsedLoopQuery():
            stream = loop(body, statement.name, tables)
        case tree.ParsedTableQuery():
            stream = tables.compile(body.table)
    return stream if body.slice is None else sliced(stream, body.slice)


def matches(node: tree.ParsedPatternQuery, names: Names) -> Stream:
    bound = Bound(names)
    pattern = bound.bind(node.pattern)
    if isinstance(node.pattern, tree.ParsedEventType):
        origin = names.find(node.pattern.name, node.pattern.at)
        if asks_attributes_only(node, origin) and not contains_versions(origin.stream.plan):
            return single(node, bound, origin)
    where = conditions(node.where, bound)
    output = outputs(node, OutputScope(bound))
    with located(node.at):
        members = tuple(bound.members)
        return Stream(Match(members, pattern, where, output, bitemporal=over_versions(members), text=show(node)))


def over_versions(members: Sequence[Node]) -> bool:
    """Whether the events are versions; either all are or none."""
    found = [contains_versions(member) for member in members]
    if len(set(found)) > 1:
        raise QueryError("some streams contain versions of events and others do not; use versions() on all or none")
    return found[0]


def sliced(stream: Stream, node: tree.ParsedSlice) -> Stream:
    sides = {"occurrence": node.occurrence, "valid": node.valid}
    with located(node.at):
        return stream.slice(**{name: ends(interval) for name, interval in sides.items() if interval})


def ends(node: tree.ParsedInterval) -> tuple[int | None, int | None]:
    return (chronon(node.start) if node.start else None, chronon(node.end) if node.end else None)


def chronon(node: tree.ParsedScalar) -> int:
    match node:
        case tree.ParsedNumber():
            return whole_length(node)
        case tree.ParsedMinus(tree.ParsedNumber() as operand):
            return -whole_length(operand)
        case tree.ParsedTimestamp(_, value):
            return value
    return INF


def at_level(stream: Stream, node: tree.ParsedStatement) -> Stream:
    clause = node.consistency
    if clause is not None:
        with located(clause.at):
            level = LEVELS[clause.level.lower()] if clause.level else None
            stream = stream.with_consistency(level, block=span(clause.block), remember=span(clause.remember))
    return stream.with_latency(node.latency) if node.latency else stream


def span(node: tree.ParsedNumber | tree.ParsedLength | tree.ParsedInfinity | None) -> int | None:
    if node is None or isinstance(node, tree.ParsedInfinity):
        return None if node is None else INF
    return whole_length(node)
