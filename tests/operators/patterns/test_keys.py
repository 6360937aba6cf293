"""Which conditions become the key by which events are kept and spread, and which cannot."""

import polars as pl
import pytest

from cedr import api
from cedr.plan.nodes import Match
from cedr.plan.patterns.tree import (
    AtLeast,
    AtMost,
    CorrelationKey,
    EventType,
    Predicate,
    Sequence,
    Unless,
)

SCHEMA = {"kind": pl.String, "m": pl.Int64, "k": pl.Int64, "load": pl.Float64}
FEED = api.source("feed", SCHEMA).plan
OTHER = api.source("other", {"name": pl.Int64}).plan
A, B, C = (EventType(kind, 0, pl.col("kind") == kind, var=kind.lower()) for kind in "ABC")
D = EventType("D", 1, var="d")


def same(x, y, a="m", b="m"):
    return Predicate((x, y), pl.col(f"{x}.{a}") == pl.col(f"{y}.{b}"))


def match(pattern, *where, outputs=("Vs",), members=(FEED, OTHER)):
    return Match(members, pattern, where, tuple((name.replace(".", "_"), pl.col(name)) for name in outputs))


def seq(*parameters):
    return Sequence(parameters, 5)


@pytest.mark.parametrize(
    ("pattern", "where", "key"),
    [
        (seq(A, B), [CorrelationKey("m")], ("m", "m")),
        (seq(A, B), [same("a", "b")], ("m", "m")),
        (seq(A, B), [same("a", "b"), same("b", "a", "k", "k")], ("m k", "m k")),
        (seq(A, B), [CorrelationKey("k"), same("a", "b")], ("k m", "k m")),
        (seq(A, B), [same("a", "b", "m", "k")], ("m", "k")),
        (seq(A, D), [same("a", "d", "m", "name")], ("m", "name")),
        (seq(A, B, C), [same("a", "b"), same("b", "c")], ("m", "m", "m")),
        (Unless(seq(A, B), C, 5), [same("a", "b"), same("a", "c")], ("m", "m", "m")),
        (Unless(A, AtMost(1, (B,), 5), 5), [same("a", "b")], ("m", "m")),
        (AtLeast(2, (A, B, C), 5), [same("a", "b"), same("b", "c"), same("a", "c")], ("m", "m", "m")),
        (AtLeast(3, (A, B, C), 5), [same("a", "b"), same("b", "c")], ("m", "m", "m")),
    ],
)
def test_a_key(pattern, where, key):
    node = match(pattern, *where)
    assert node.key.attributes == tuple(tuple(names.split()) for names in key)
    assert len(node.key.replaced) == len(where)


@pytest.mark.parametrize(
    ("pattern", "where", "why"),
    [
        (seq(A, B, C), [same("a", "b")], "c is not tied"),
        (seq(A, B), [same("a", "b", "load", "load")], "floats are not keys"),
        (seq(A, B), [Predicate(("a", "b"), pl.col("a.m") <= pl.col("b.m"))], "no equation"),
        (seq(A, B), [Predicate(("a", "b"), pl.col("a.m") == pl.col("b.m") + 1)], "no plain column"),
        (Unless(seq(A, B), C, 5), [same("a", "c"), same("b", "c")], "a and b may differ if there is no c"),
        (AtLeast(2, (A, B, C), 5), [same("a", "b"), same("b", "c")], "a and c may differ if b takes no part"),
        (AtMost(1, (A, B), 5), [], "counts must not be split"),
    ],
)
def test_no_key(pattern, where, why):
    node = match(pattern, *where)
    assert not node.key, why
    assert not node.key.replaced
    assert node.partition_requirement().keys == []


def test_rows_are_spread_by_the_key_and_the_output_still_is():
    node = match(seq(A, D), same("a", "d", "m", "name"), outputs=("a.m", "d.name", "a.k"))
    assert node.partition_requirement().keys == [("m", "name")]
    assert node.passed_columns == {"a_m": "m", "d_name": "m"}


def test_types_of_one_stream_with_different_keys_cannot_be_spread():
    node = match(seq(A, B), same("a", "b", "m", "k"), members=(FEED,))
    assert node.key
    assert node.partition_requirement().keys == []


def test_only_columns_that_are_read_are_kept_unless_ids_are_made_of_them():
    node = match(seq(A, B), CorrelationKey("m"), outputs=("a.k",), members=(FEED,))
    assert node.reads(set(node.schema)) == [{"kind", "m", "k"}]
    assert match(seq(A, B), outputs=("Id",), members=(FEED,)).reads(set()) == [set(SCHEMA)]
