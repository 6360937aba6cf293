"""Providers that change their mind: statements become versions, patterns look at them, slices cut either axis.

occurrence   1     2     4     6     9
INSTALL 1    [1,10)      [3,10)                from 4 on, according to the provider, it began at 3
SHUTDOWN 2         [5,9)       [2,9) [8,9)     from 6 on before the install, from 9 on after it again
"""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_patterns import composite_id

import cedr
from cedr.reference import patterns as ref
from cedr.reference import slice_occurrence, slice_valid
from cedr.temporal import Event, History, Interval, QueryError, Row, Statement, Version, bitemporal
from cedr.testing import assert_same

COLUMNS = {"id": int, "kind": str, "m": int, "vs": int, "ve": int}
feed = cedr.source("machines", COLUMNS, vs="os", types="kind")
versions = feed.versions(statements=True)
TEXT = "EVENT E WHEN SEQUENCE(A x, B y, 6) WHERE CorrelationKey(m, EQUAL) OUTPUT x.Vs AS first, y.Vs AS second"


def table(statements: list[Statement]) -> pl.DataFrame:
    rows = [(s.id, *s.payload, s.vs, s.ve, s.os) for s in statements]
    return pl.DataFrame(rows, schema={**COLUMNS, "os": int}, orient="row")


@st.composite
def providers(draw):
    """Few events of two kinds, each with statements at different occurrence times, in any order."""
    statements = []
    for id in range(draw(st.integers(1, 4))):
        kind, m = draw(st.sampled_from("AB")), draw(st.integers(0, 1))
        for os in draw(st.sets(st.integers(0, 9), min_size=1, max_size=3)):
            vs = draw(st.integers(0, 8))
            statements.append(Statement(id, vs, vs + draw(st.integers(1, 9)), os, (kind, m)))
    return draw(st.permutations(statements))


def versions_of(statements: list[Statement]) -> History:
    return bitemporal(statements)


def oracle(statements: list[Statement]) -> History:
    kinds = {
        kind: History(
            Event(e.vs, e.ve, e.payload._replace(payload=Row(m=e.payload.payload[1])))
            for e in versions_of(statements)
            if e.payload.payload[0] == kind
        )
        for kind in "AB"
    }
    pattern = ref.SEQUENCE(ref.ReferenceEventType("A", "x"), ref.ReferenceEventType("B", "y"), w=6)
    query = ref.ReferencePatternQuery(
        pattern,
        (ref.ReferenceCorrelationKey("m"),),
        lambda match: Row(first=match.cbt[0].vs, second=match.cbt[1].vs),
        ids=ref.Ids(composite=composite_id),
    )
    return query.run_bitemporal(kinds)


def as_rows(history: History) -> History:
    """Versions as rows whose header is part of the payload."""
    return History(Event(os, oe, Row({"id": v.id, "vs": v.vs, "ve": v.ve, **dict(v.payload)})) for os, oe, v in history)


@given(providers())
def test_each_statement_holds_until_the_next_about_its_event(statements):
    expected = History(
        Event(os, oe, Row(id=v.id, vs=v.vs, ve=v.ve, kind=v.payload[0], m=v.payload[1]))
        for os, oe, v in versions_of(statements)
    )
    assert_same(versions.run(table(statements)).history(), expected)


@given(providers(), st.sampled_from(["middle", "strong"]))
def test_a_pattern_over_versions_is_that_of_the_oracle(statements, level):
    query = cedr.query(TEXT, versions).with_consistency(level)
    assert_same(query.run(table(statements)).history(), as_rows(oracle(statements)))


ends = st.tuples(st.integers(0, 8), st.integers(1, 9)).filter(lambda i: i[0] < i[1])


@given(providers(), ends, ends)
def test_both_slices(statements, occurrence, valid):
    sliced = cedr.query(f"{TEXT} @ [{occurrence[0]}, {occurrence[1]}) # [{valid[0]}, {valid[1]})", versions)
    expected = slice_valid(slice_occurrence(oracle(statements), Interval(*occurrence)), Interval(*valid))
    assert_same(sliced.run(table(statements)).history(), as_rows(expected))


@given(providers(), ends)
def test_slices_of_the_versions_themselves(statements, valid):
    expected = slice_valid(
        History(
            Event(os, oe, Version(v.id, v.vs, v.ve, Row(kind=v.payload[0], m=v.payload[1])))
            for os, oe, v in versions_of(statements)
        ),
        Interval(*valid),
    )
    assert_same(versions.slice(valid=valid).run(table(statements)).history(), as_rows(expected))


def test_the_drawing():
    statements = [
        Statement(1, 1, 10, 1, ("A", 7)),
        Statement(1, 3, 10, 4, ("A", 7)),
        Statement(2, 5, 9, 2, ("B", 7)),
        Statement(2, 2, 9, 6, ("B", 7)),
        Statement(2, 8, 9, 9, ("B", 7)),
    ]
    found = cedr.query(TEXT, versions).run(table(statements)).table()
    shown = found.select("_vs", "_ve", "vs", "ve", "first", "second").rows()
    assert shown == [(2, 4, 5, 7, 1, 5), (4, 6, 5, 9, 3, 5), (9, None, 8, 9, 3, 8)]


def test_figure_1_of_the_paper():
    source = cedr.source("provider", {"id": str, "vs": int, "ve": int}, vs="os")
    statements = [("e0", 1, None, 1), ("e0", 1, 10, 2), ("e0", 1, 5, 3), ("e1", 4, 9, 3)]
    rows = pl.DataFrame(statements, schema={"id": str, "vs": int, "ve": int, "os": int}, orient="row")
    versions = source.versions(statements=True)
    held = {(row.id, row.vs, row.ve, os, oe) for os, oe, row in versions.run(rows).history()}
    inf = cedr.INF
    assert held == {("e0", 1, inf, 1, 2), ("e0", 1, 10, 2, 3), ("e0", 1, 5, 3, inf), ("e1", 4, 9, 3, inf)}
    at_2 = versions.slice(occurrence=(2, 3)).run(rows).history()
    assert {(row.id, row.vs, row.ve) for _, _, row in at_2} == {("e0", 1, 10)}
    valid_from_5 = versions.slice(valid=(5, 20)).run(rows).history()
    assert {(row.id, row.vs, row.ve) for _, _, row in valid_from_5} == {("e0", 5, 20), ("e0", 5, 10), ("e1", 5, 9)}


def test_timestamps_are_chronons_and_no_end_is_endless():
    source = cedr.source("s", {"id": int, "from": pl.Datetime("ms"), "to": pl.Datetime("ms")}, vs="os")
    rows = pl.DataFrame({"id": [1], "from": [2], "to": [None], "os": [0]}).cast(
        {"from": pl.Datetime("ms"), "to": pl.Datetime("ms")}
    )
    (row,) = source.versions(vs="from", ve="to").run(rows).history()
    assert (row.payload.vs, row.payload.ve) == (2000, cedr.INF)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: feed.versions(vs="begin"), "no column 'begin'"),
        (
            lambda: cedr.source("s", {"id": int, "vs": str, "ve": int}, vs="os").versions(),
            "'vs' is String; the valid lifetime needs timestamps or whole numbers",
        ),
        (lambda: feed.versions(vs="m"), r"versions\(vs='m'\): the stream has a column 'vs' of another meaning"),
        (
            lambda: cedr.query(
                "EVENT E WHEN SEQUENCE(A, OTHER, 3)", versions, OTHER=cedr.source("o", {"m": int}, vs="os")
            ),
            "some streams contain versions of events and others do not",
        ),
        (lambda: cedr.query(f"{TEXT}, y.m AS id", versions), "OUTPUT yields 'id', which is a part of the header"),
    ],
)
def test_mistakes(make, message):
    with pytest.raises(QueryError, match=message):
        make().schema  # noqa: B018
