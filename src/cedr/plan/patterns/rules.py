"""Which patterns are allowed: the one place that states each rule with its message, but for those of a single operator,
which its node states in `check`. A mistake is found when the query is written.
"""

from collections import Counter
from collections.abc import Sequence

import polars as pl

from cedr.plan.patterns.outputs import HEADER
from cedr.plan.patterns.spec import OF_COMPOSITES, VERSION, PatternSpec, ends_with_event, scoped, with_roles
from cedr.plan.patterns.tree import (
    OPERATORS,
    AttributeEqual,
    Condition,
    CorrelationKey,
    Pattern,
    PatternError,
    Predicate,
)
from cedr.plan.schema import (
    Schema,
    check_columns,
    check_predicate,
    check_row_wise,
    evaluate,
    made_alike,
    show_expression,
)
from cedr.temporal.errors import QueryError

MOST_TYPES = 62
"""Which event types accept an event are the bits of one number."""


def checked_pattern(spec: PatternSpec) -> Schema:
    """The types of the outputs of a pattern without mistakes."""
    check_pattern(spec.pattern)
    check_types(spec)
    check_conditions(spec)
    if spec.bitemporal:
        check_versions(spec)
    return checked_outputs(spec)


# --- rules that the language checks too, to report the position in the query -----------------------------------------


def check_pattern(pattern: Pattern) -> None:
    """The rules of a pattern by itself."""
    check_not_chosen(pattern, "the whole pattern")
    for operator in pattern.walk():
        operator.check()
        for parameter in (*operator.negated, *operator.counted, *(() if operator.chooses else operator.positive)):
            check_not_chosen(parameter, f"a parameter of {operator}")
    check_variables(pattern)


def check_not_chosen(pattern: Pattern, what: str) -> None:
    modes = [mode for mode in (pattern.selection, pattern.consumption) if mode not in ("EACH", "REUSE")]
    if modes:
        choosing = ", ".join(operator.keyword for operator in OPERATORS if operator.chooses)
        raise PatternError(
            f"{' '.join(modes)} is not allowed for {what}; selection and consumption apply to parameters of "
            f"{choosing}, ALL and ANY",
            pattern,
        )


def check_variables(pattern: Pattern) -> None:
    named: dict[str, Pattern] = {}
    for p in pattern.walk():
        if not p.var:
            continue
        if "." in p.var:
            raise PatternError(f"a variable cannot have a dot in its name; {p.var!r} would mean an attribute", p)
        if p.var in named:
            raise PatternError(f"variable {p.var!r} is used for {named[p.var]} and {p}; each needs its own", p)
        named[p.var] = p


def check_condition(condition: Condition, pattern: Pattern, schemas: Sequence[Schema]) -> None:
    """The rules of a condition whose variables and attributes exist."""
    if isinstance(condition, Predicate):
        check_together(condition, pattern)
    elif isinstance(condition, CorrelationKey):
        check_key(condition, pattern, schemas)


def check_together(predicate: Predicate, pattern: Pattern) -> None:
    """A predicate is evaluated where one of its variables has a value and the others have one inside or around it."""
    names = set(predicate.variables)
    if not names:
        raise PatternError(f"{text_of(predicate)} names no event, so it is the same for every match; leave it out")
    if not any(own & names and names <= own | outer for own, outer in scoped(pattern)):
        *others, last = predicate.variables
        raise PatternError(
            f"{', '.join(others)} and {last} never have a value together: a negated or counted variable has a value "
            "only inside its own parameter"
        )


def check_key(key: CorrelationKey, pattern: Pattern, schemas: Sequence[Schema]) -> None:
    first, *others = pattern.leaves()
    kind = schemas[first.port][key.attribute]
    for other in others:
        if (found := schemas[other.port][key.attribute]) != kind:
            raise PatternError(
                f"{key.attribute} is {kind} in {first}, but {found} in {other}; a key has one type: "
                f"use with_columns({made_alike(key.attribute, found, kind)}) on the source"
            )
    counting = [p for p in pattern.walk() if p.counted]
    if key.mode == "UNIQUE" and counting:
        raise PatternError(f"UNIQUE has no meaning for {counting[0]}, which only counts; use EQUAL")


def check_output_names(names: Sequence[str]) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise PatternError(f"{times} outputs are called {name!r}; rename them with AS", name)


def check_takes_part(variable: str, pattern: Pattern) -> None:
    """OUTPUT can only name variables that have one value in a match."""
    for p, role, by in with_roles(pattern):
        if p.var == variable and role == "negated":
            raise PatternError(
                f"{variable} is negated by {by}: a match exists only where it does not occur, so it has no value for "
                "OUTPUT"
            )
        if p.var == variable and role == "counted":
            raise PatternError(
                f"{variable} is only counted by {by}, which may contain many of its events, so it has no single value "
                "for OUTPUT; COUNT(*) is their number"
            )


# --- the streams -----------------------------------------------------------------------------------------------------


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


def check_conditions(spec: PatternSpec) -> None:
    for c in spec.where:
        if isinstance(c, Predicate):
            check_known(c, spec.pattern)
            check_condition(c, spec.pattern, spec.schemas)
            columns = spec.columns(dict.fromkeys(c.variables))
            check_predicate(c.expression, columns, f"WHERE {text_of(c)}")
            continue
        for leaf in spec.pattern.leaves():
            schema = spec.schemas[leaf.port]
            check_columns([c.attribute], schema, f"{c}, event type {leaf.name}")
            if isinstance(c, AttributeEqual):
                check_predicate(pl.col(c.attribute) == pl.lit(c.value), schema, f"{c}, event type {leaf.name}")
        check_condition(c, spec.pattern, spec.schemas)


def check_known(predicate: Predicate, pattern: Pattern) -> None:
    names = {p.var for p in pattern.walk() if p.var}
    if unknown := [v for v in predicate.variables if v not in names]:
        raise QueryError(f"WHERE names {unknown[0]!r}; the variables are: {', '.join(sorted(names)) or 'none'}")


def text_of(predicate: Predicate) -> str:
    return predicate.text or show_expression(predicate.expression)


def checked_outputs(spec: PatternSpec) -> Schema:
    columns = {**spec.columns(sorted(spec.pattern.variables)), **HEADER}
    check_output_names([name for name, _ in spec.outputs])
    if not spec.outputs:
        raise QueryError("OUTPUT is empty; name at least one column")
    expressions = [e.alias(name) for name, e in spec.outputs]
    for name in (name for e in expressions for name in e.meta.root_names()):
        if "." in name:
            check_takes_part(name.partition(".")[0], spec.pattern)
    check_row_wise(expressions, columns, "OUTPUT")
    return dict(evaluate(lambda frame: frame.select(expressions), columns, "OUTPUT").schema)
