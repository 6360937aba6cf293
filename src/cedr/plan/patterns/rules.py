"""Checks of a pattern against its streams: a mistake is found when the query is written."""

from collections import Counter

import polars as pl

from cedr.plan.patterns.outputs import HEADER
from cedr.plan.patterns.spec import OF_COMPOSITES, VERSION, PatternSpec, ends_with_event, scoped
from cedr.plan.patterns.tree import AttributeEqual, CorrelationKey, Pattern, PatternError, Predicate
from cedr.plan.schema import Schema, check_columns, check_predicate, check_row_wise, evaluate, show_expression
from cedr.temporal.errors import QueryError

MOST_TYPES = 62
"""Which event types accept an event are the bits of one number."""


def checked_pattern(spec: PatternSpec) -> Schema:
    """The types of the outputs of a pattern without mistakes."""
    for pattern in spec.pattern.walk():
        check_shape(pattern)
    check_types(spec)
    check_variables(spec)
    check_conditions(spec)
    if spec.bitemporal:
        check_versions(spec)
    return checked_outputs(spec)


def check_shape(pattern: Pattern) -> None:
    """Reject patterns that cannot match, whatever comes."""
    pattern.check()
    for parameter in (*pattern.negated, *pattern.counted, *(() if pattern.chooses else pattern.positive)):
        check_not_chosen(parameter, f"a parameter of {pattern}")


def check_not_chosen(pattern: Pattern, what: str) -> None:
    modes = [mode for mode in (pattern.selection, pattern.consumption) if mode not in ("EACH", "REUSE")]
    if modes:
        raise PatternError(
            f"{' '.join(modes)} is not allowed for {what}; selection and consumption apply to parameters of SEQUENCE, "
            "ATLEAST, ALL and ANY",
            pattern,
        )


def check_types(spec: PatternSpec) -> None:
    leaves = spec.pattern.leaves()
    if len(leaves) > MOST_TYPES:
        raise QueryError(f"the pattern names {len(leaves)} event types, at most {MOST_TYPES} are possible; split it")
    names = {name for e in spec.expressions for name in e.meta.root_names()}
    single = ends_with_event(spec.pattern) and not spec.bitemporal
    if single and (unknown := [n for n in sorted(names) if n.split(".")[-1] in OF_COMPOSITES]):
        raise QueryError(
            f"a single event has no {unknown[0]}; use ANY({spec.pattern.leaves()[0]}), which has it and a lifetime of "
            "one chronon"
        )
    for leaf in leaves:
        if not 0 <= leaf.port < len(spec.schemas):
            raise QueryError(f"event type {leaf.name} is read from stream {leaf.port}, of {len(spec.schemas)}")
        if leaf.where is not None:
            check_predicate(leaf.where, spec.schemas[leaf.port], f"event type {leaf.name}")


def check_versions(spec: PatternSpec) -> None:
    for schema in spec.schemas:
        check_columns(VERSION, schema, "a pattern over versions needs id, vs and ve of the valid axis")
        if wrong := [name for name in ("vs", "ve") if schema[name] != pl.Int64]:
            raise QueryError(f"column {wrong[0]!r} of versions is {schema[wrong[0]]}; it must be Int64 chronons")
    if taken := [name for name, _ in spec.outputs if name in VERSION]:
        raise QueryError(f"OUTPUT yields {taken[0]!r}, which is a part of the header here; give it another name")


def check_variables(spec: PatternSpec) -> None:
    uses = Counter(p.var for p in spec.pattern.walk() if p.var)
    for variable, times in uses.items():
        if times > 1:
            raise QueryError(f"variable {variable!r} is given to {times} parameters; each needs its own")
    scopes = list(scoped(spec.pattern))
    for c in spec.where:
        if not isinstance(c, Predicate):
            continue
        names = set(c.variables)
        if unknown := [v for v in c.variables if v not in uses]:
            raise QueryError(f"WHERE names {unknown[0]!r}; the variables are: {', '.join(sorted(uses)) or 'none'}")
        if not any(own & names and names <= own | outer for own, outer in scopes):
            raise QueryError(
                f"WHERE {c.text or show_expression(c.expression)} compares {' and '.join(c.variables)}, which never "
                "have a value together: a negated or counted variable has a value only inside its own parameter"
            )


def check_conditions(spec: PatternSpec) -> None:
    leaves = spec.pattern.leaves()
    for c in spec.where:
        if isinstance(c, Predicate):
            what = f"WHERE {c.text or show_expression(c.expression)}"
            check_predicate(c.expression, spec.columns(dict.fromkeys(c.variables)), what)
            continue
        for leaf in leaves:
            schema = spec.schemas[leaf.port]
            check_columns([c.attribute], schema, f"{c}, event type {leaf.name}")
            if isinstance(c, AttributeEqual):
                check_predicate(pl.col(c.attribute) == pl.lit(c.value), schema, f"{c}, event type {leaf.name}")
        if isinstance(c, CorrelationKey):
            check_key(spec, c)


def check_key(spec: PatternSpec, key: CorrelationKey) -> None:
    kinds = {leaf.name: spec.schemas[leaf.port][key.attribute] for leaf in spec.pattern.leaves()}
    (one, kind), *others = kinds.items()
    for other, other_kind in others:
        if other_kind != kind:
            raise QueryError(f"{key}: {key.attribute!r} is {kind} in {one}, but {other_kind} in {other}")
    counting = [p for p in spec.pattern.walk() if p.counted]
    if key.mode == "UNIQUE" and counting:
        raise PatternError(f"{key} has no meaning for {counting[0]}, which only counts; use EQUAL")


def checked_outputs(spec: PatternSpec) -> Schema:
    columns = {**spec.columns(sorted(spec.pattern.variables)), **HEADER}
    names = [name for name, _ in spec.outputs]
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise QueryError(f"OUTPUT yields {twice[0]!r} twice; give one another name")
    if not names:
        raise QueryError("OUTPUT is empty; name at least one column")
    expressions = [e.alias(name) for name, e in spec.outputs]
    hidden = {v for p in spec.pattern.walk() if (v := p.var)} - spec.pattern.variables
    for name in (name for e in expressions for name in e.meta.root_names()):
        if name.partition(".")[0] in hidden:
            raise QueryError(
                f"OUTPUT names {name!r}, but {name.partition('.')[0]!r} is negated or counted, so a match has no "
                "single value of it"
            )
    check_row_wise(expressions, columns, "OUTPUT")
    return dict(evaluate(lambda frame: frame.select(expressions), columns, "OUTPUT").schema)
