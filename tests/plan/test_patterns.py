"""Patterns that cannot mean anything are refused when they are written, with what would be right."""

from dataclasses import fields

import polars as pl
import pytest

from cedr import api
from cedr.operators.patterns.forms import FORMS
from cedr.plan.nodes import Match
from cedr.plan.patterns.tree import (
    OPERATORS,
    AtLeast,
    AtMost,
    AttributeEqual,
    CancelWhen,
    CorrelationKey,
    EventType,
    Not,
    PatternError,
    Predicate,
    Sequence,
    Unless,
)
from cedr.reference.patterns import OPERATORS as DEFINITIONS
from cedr.syntax.shape import FORMS as SYNTAX
from cedr.temporal import QueryError, TimeError

FEED = api.source("feed", {"kind": pl.String, "m": pl.Int64, "load": pl.Float64}).plan
OTHER = api.source("other", {"m": pl.String}).plan
A, B, C = (EventType(kind, 0, pl.col("kind") == kind, var=kind.lower()) for kind in "ABC")
D = EventType("D", 1, var="d")
FIRST = EventType("B", 0, var="b", selection="FIRST")
CONSUMED = EventType("B", 0, var="b", consumption="CONSUME")
TIME = (("t", pl.col("Vs")),)


def match(pattern, *where, outputs=TIME):
    return Match((FEED, OTHER), pattern, where, outputs).schema


def predicate(expression, *variables):
    return Predicate(variables, expression)


@pytest.mark.parametrize(
    ("pattern", "where", "message"),
    [
        (Unless(A, B, 5, 1), (), "contributor 1 of its first parameter, which has none: it is an event type"),
        (Unless(Sequence((A, B), 5), C, 5, 3), (), "contributor 3 of its first parameter, which has 2"),
        (Unless(AtLeast(2, (A, B), 5), C, 5, 3), (), "contributor 3 of its first parameter, which has 2"),
        (AtLeast(3, (A, B), 5), (), "ATLEAST counts 3 events; the number must be from 1 to 2"),
        (AtMost(0, (A,), 5), (), "ATMOST counts 0 events; the number must be at least 1"),
        (Sequence((), 5), (), "SEQUENCE names no event type"),
        (Not(A, B), (), "second parameter is the event type A"),
        (Unless(A, FIRST, 5), (), "FIRST is not allowed for a parameter of UNLESS; selection and consumption apply"),
        (AtMost(1, (CONSUMED,), 5), (), "CONSUME is not allowed for a parameter of ATMOST"),
        (CancelWhen(FIRST, A), (), "FIRST is not allowed for a parameter of CANCEL-WHEN"),
        (Sequence((A, EventType("B", var="a")), 5), (), "variable 'a' is used for A and B; each needs its own"),
        (Sequence((A, EventType("B", var="a.m")), 5), (), "'a.m' would mean an attribute"),
        (Sequence((A, B), 5, selection="LAST"), (), "LAST is not allowed for the whole pattern"),
        (Sequence((A, B), 5), (predicate(pl.lit(True)),), "names no event, so it is the same for every match"),
        (Sequence((A, EventType("Z", 7)), 5), (), "event type Z is read from stream 7, of 2"),
        (Sequence((A, EventType("Z", 0, pl.col("x") > 1)), 5), (), "event type Z: no column 'x'"),
        (Sequence((A, B), 5), (predicate(pl.col("a.m") == pl.col("z.m"), "a", "z"),), "WHERE names 'z'; .*: a, b"),
        (
            AtMost(1, (A, B), 5),
            (predicate(pl.col("a.m") == pl.col("b.m"), "a", "b"),),
            "a and b never have a value together",
        ),
        (
            Unless(Unless(A, B, 5), C, 5),
            (predicate(pl.col("b.m") == pl.col("c.m"), "b", "c"),),
            "b and c never have a value together",
        ),
        (Sequence((A, B), 5), (predicate(pl.col("a.speed") > 1, "a"),), "no column 'a.speed'"),
        (Sequence((A, B), 5), (predicate(pl.col("a.load") > pl.lit("high"), "a"),), "WHERE .*a.load"),
        (Sequence((A, D), 5), (CorrelationKey("load"),), r"CorrelationKey\(load, EQUAL\), event type D: no column"),
        (Sequence((A, D), 5), (CorrelationKey("m"),), "m is Int64 in A, but String in D; a key has one type"),
        (Sequence((A, D), 5), (AttributeEqual("m", "x"),), r"\[m EQUAL 'x'\], event type A"),
        (AtMost(1, (A,), 5), (CorrelationKey("m", "UNIQUE"),), "UNIQUE has no meaning for ATMOST"),
        (
            Unless(A, Sequence((CONSUMED, C), 5), 5),
            (predicate(pl.col("a.load") < pl.col("c.load"), "a", "c"),),
            "remove CONSUME there, or compare only with CorrelationKey",
        ),
    ],
)
def test_refused(pattern, where, message):
    with pytest.raises(QueryError, match=message):
        match(pattern, *where)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ((), "OUTPUT is empty"),
        ((("t", pl.col("Vs")), ("t", pl.col("Ve"))), "2 outputs are called 't'"),
        ((("t", pl.col("c.m")),), "c is negated by UNLESS"),
        ((("t", pl.col("a.speed")),), "OUTPUT: no column 'a.speed'"),
        ((("t", pl.col("a.load").sum()),), "OUTPUT: .* uses several rows"),
    ],
)
def test_outputs_refused(outputs, message):
    with pytest.raises(QueryError, match=message):
        match(Unless(Sequence((A, B), 5), C, 5), outputs=outputs)


def test_a_scope_is_a_length_of_time():
    with pytest.raises(PatternError, match="scope of SEQUENCE is empty; it must be at least one chronon"):
        match(Sequence((A, B), 0))
    with pytest.raises(TimeError, match=r"scope of SEQUENCE is 0.5"):
        match(Sequence((A, B), 0.5))


def test_the_operator_that_negates_or_counts_a_variable_is_named():
    inside = Unless(A, Sequence((B, C), 5), 5)
    with pytest.raises(PatternError, match="c is negated by UNLESS"):
        match(inside, outputs=(("t", pl.col("c.m")),))
    with pytest.raises(PatternError, match="b is only counted by ATMOST"):
        match(AtMost(1, (Sequence((A, B), 5),), 5), outputs=(("t", pl.col("b.m")),))


def test_every_operator_is_written_evaluated_and_defined():
    """Each node has a syntax, a form that evaluates it, and a definition with the same fields."""
    assert set(OPERATORS) == {kind for kind in FORMS if kind is not EventType}
    assert {operator.keyword for operator in OPERATORS} == set(DEFINITIONS)
    for operator in OPERATORS:
        assert SYNTAX[operator.keyword].make == operator.written
        given = {f.name for f in fields(operator)}
        assert {f.name for f in fields(DEFINITIONS[operator.keyword])} <= given, operator
        assert "w" in given if operator.arguments.scope else "w" not in given
        assert ("n" in given) == (operator.arguments.number is not None)


def test_what_a_single_event_does_not_have():
    with pytest.raises(QueryError, match=r"a single event has no .*Id; use ANY\(A\), which has it"):
        match(A, outputs=(("i", pl.col("Id")),))


def test_the_schema_of_a_match():
    outputs = (("m", pl.col("a.m")), ("wait", pl.col("b.Vs") - pl.col("a.Vs")), ("made_of", pl.col("cbt")))
    lineage = pl.List(pl.Struct({"type": pl.String, "id": pl.Int64, "vs": pl.Int64}))
    assert match(Sequence((A, B), 5), outputs=outputs) == {"m": pl.Int64, "wait": pl.Int64, "made_of": lineage}
