"""Pattern queries from text to answer: the paper's example, and random events against the oracle."""

from dataclasses import replace
from datetime import datetime, timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from level_sizes import event_levels  # noqa: F401 a fixture for all tests here

import cedr
from cedr import api, testing
from cedr.reference.patterns import (
    ALL,
    ANY,
    ATLEAST,
    ATMOST,
    CANCEL_WHEN,
    NOT,
    SEQUENCE,
    UNLESS,
    ReferenceAttributeEqual,
    ReferenceCorrelationKey,
    ReferenceEventType,
    ReferencePatternQuery,
    ReferencePredicate,
)
from cedr.temporal import History, Row

# --- the paper's example -------------------------------------------------------------------------------------------

CIDR07_EXAMPLE = """
   EVENT  CIDR07_Example
   WHEN UNLESS(SEQUENCE(INSTALL x,
                   SHUTDOWN AS y, 12 hours),
                   RESTART AS z, 5 minutes)
   WHERE {x.Machine_Id = y.Machine_Id} AND
  {x.Machine_Id = z.Machine_Id}
"""
FEED = {"kind": str, "Machine_Id": str}
feed = api.source("feed", FEED, vs="ts", types="kind")


def events(*arrivals: tuple[int, str, str]) -> pl.DataFrame:
    rows = [(at(minute), kind, machine) for minute, kind, machine in arrivals]
    return pl.DataFrame(rows, schema={"ts": pl.Datetime("us"), **FEED}, orient="row")


def at(minute: int) -> datetime:
    return datetime(2007, 1, 7) + timedelta(minutes=minute)


#   minute        0     1        60      61     63        64      800
#   a          INSTALL       SHUTDOWN                                   nothing follows: a match at 60
#   b                INSTALL         SHUTDOWN  RESTART                  restarted within 5 minutes: none
#   c          INSTALL                                         SHUTDOWN more than 12 hours later: none
ARRIVALS = [
    (0, "INSTALL", "a"),
    (0, "INSTALL", "c"),
    (1, "INSTALL", "b"),
    (60, "SHUTDOWN", "a"),
    (61, "SHUTDOWN", "b"),
    (63, "RESTART", "b"),
    (800, "SHUTDOWN", "c"),
]


def test_the_papers_example_as_printed():
    result = cedr.query(CIDR07_EXAMPLE, feed).run(events(*ARRIVALS))
    assert result.table().rows() == [(at(60), at(65), "a", "a")]


def test_the_correlation_key_is_equivalent():
    text = CIDR07_EXAMPLE[: CIDR07_EXAMPLE.index("WHERE")] + "WHERE CorrelationKey(Machine_Id, Equal)"
    assert cedr.query(text, feed).run(events(*ARRIVALS)).table().rows() == [(at(60), at(65), "a", "a")]


def test_a_late_restart_takes_the_match_back():
    query = cedr.query(CIDR07_EXAMPLE, feed).with_latency("eager")
    late = events(*ARRIVALS, (62, "RESTART", "a"))
    changes = query.run(late, chunk_size=1).changelog().filter(pl.col("x_Machine_Id") == "a")
    assert changes["change"].to_list() == ["insert", "remove"]


# --- against the oracle --------------------------------------------------------------------------------------------

SCHEMA = {"kind": pl.String, "m": pl.Int64, "v": pl.Int64}
numbers = api.source("numbers", SCHEMA, vs="ts", types="kind")
A, B, C = ReferenceEventType("A", "x"), ReferenceEventType("B", "y"), ReferenceEventType("C", "z")


def both(test) -> ReferencePredicate:
    return ReferencePredicate("x y", lambda x, y: test(x.payload, y.payload))


def known(*values) -> bool:
    return None not in values


def of(match, name, attribute="v"):
    return match.bound[name].payload[attribute] if name in match.bound else None


SAME = ReferenceCorrelationKey("m")
CASES = {
    "SEQUENCE(A x, B y, 6) WHERE x.m = y.m AND x.v < y.v OUTPUT x.v, y.v - x.v AS d, y.Vs, Rt": ReferencePatternQuery(
        SEQUENCE(A, B, w=6),
        (both(lambda x, y: known(x.m, y.m) and x.m == y.m), both(lambda x, y: known(x.v, y.v) and x.v < y.v)),
        lambda e: Row(v=of(e, "x"), d=of(e, "y") - of(e, "x"), Vs=e.bound["y"].vs, Rt=e.rt),
    ),
    "SEQUENCE(A, B, 6) OUTPUT COUNT(*) AS n, SUM(v) AS s, MAX(v + 1) AS h, COUNT(v) AS c": ReferencePatternQuery(
        SEQUENCE(A, B, w=6),
        (),
        lambda e: Row(
            n=2,
            s=sum(v for v in (of(e, "x"), of(e, "y")) if v is not None),
            h=max((v + 1 for v in (of(e, "x"), of(e, "y")) if v is not None), default=None),
            c=sum(v is not None for v in (of(e, "x"), of(e, "y"))),
        ),
    ),
    "ATLEAST(2, A x, B y, C z, 6) WHERE CorrelationKey(m, EQUAL) AND x.v < z.v OUTPUT x.v AS a, z.v AS c, COUNT(*)": (
        ReferencePatternQuery(
            ATLEAST(2, A, B, C, w=6),
            (
                SAME,
                ReferencePredicate("x z", lambda x, z: known(x.payload.v, z.payload.v) and x.payload.v < z.payload.v),
            ),
            lambda e: Row(a=of(e, "x"), c=of(e, "z"), count=2),
        )
    ),
    "ATLEAST(1, A x, B y, 6) OUTPUT SUM(COALESCE(v, 5)) AS s, COUNT(1) AS n, MIN(v) AS v": ReferencePatternQuery(
        ATLEAST(1, A, B, w=6),
        (),
        lambda e: Row(s=5 if e.cbt[0].payload.v is None else e.cbt[0].payload.v, n=1, v=e.cbt[0].payload.v),
    ),
    "ALL(A x, B y, 5) WHERE CorrelationKey(m, UNIQUE) OUTPUT x.m AS a, y.m AS b": ReferencePatternQuery(
        ALL(A, B, w=5), (ReferenceCorrelationKey("m", "UNIQUE"),), lambda e: Row(a=of(e, "x", "m"), b=of(e, "y", "m"))
    ),
    "ANY(A x, B y) WHERE [m EQUAL 1] AND x.v >= 1 OUTPUT COALESCE(x.v, y.v) AS v, Vs, Ve": ReferencePatternQuery(
        ANY(A, B),
        (ReferenceAttributeEqual("m", 1), ReferencePredicate("x", lambda x: known(x.payload.v) and x.payload.v >= 1)),
        lambda e: Row(v=of(e, "x") if of(e, "x") is not None else of(e, "y"), Vs=e.vs, Ve=e.ve),
    ),
    "ATMOST(2, A, B, 4) WHERE CorrelationKey(m, EQUAL)": ReferencePatternQuery(
        ATMOST(2, replace(A, var=None), replace(B, var=None), w=4), (SAME,), lambda e: Row(count=len(e.cbt))
    ),
    "UNLESS(A x, B y, 4) WHERE y.v > x.v OUTPUT x.v": ReferencePatternQuery(
        UNLESS(A, B, w=4), (both(lambda x, y: known(x.v, y.v) and y.v > x.v),), lambda e: Row(v=of(e, "x"))
    ),
    "UNLESS(SEQUENCE(A x, B y, 6) AS s, C z, 1, 4) WHERE CorrelationKey(m, EQUAL) "
    "OUTPUT s.Vs AS a, y.v": ReferencePatternQuery(
        UNLESS(SEQUENCE(A, B, w=6, var="s"), C, n=1, w=4),
        (SAME,),
        lambda e: Row(a=e.bound["s"].vs, v=of(e, "y")),
    ),
    "NOT(C z, SEQUENCE(A x, B y, 8)) WHERE x.m = y.m AND z.m = x.m OUTPUT x.m": ReferencePatternQuery(
        NOT(C, SEQUENCE(A, B, w=8)),
        (
            both(lambda x, y: known(x.m, y.m) and x.m == y.m),
            ReferencePredicate("x z", lambda x, z: known(x.payload.m, z.payload.m) and x.payload.m == z.payload.m),
        ),
        lambda e: Row(m=of(e, "x", "m")),
    ),
    "CANCEL-WHEN(SEQUENCE(A x, B y, 8), C z) WHERE z.v IN (1, 2) OUTPUT y.v": ReferencePatternQuery(
        CANCEL_WHEN(SEQUENCE(A, B, w=8), C),
        (ReferencePredicate("z", lambda z: z.payload.v in (1, 2)),),
        lambda e: Row(v=of(e, "y")),
    ),
    "SEQUENCE(A x LAST CONSUME, B y, 8) OUTPUT x.Vs AS a, y.Vs AS b": ReferencePatternQuery(
        SEQUENCE(replace(A, selection="LAST", consumption="CONSUME"), B, w=8),
        (),
        lambda e: Row(a=e.bound["x"].vs, b=e.bound["y"].vs),
    ),
}

value = st.none() | st.integers(0, 2)
random_events = st.lists(
    st.tuples(st.integers(0, 15), st.sampled_from("ABC"), value, value), max_size=8, unique_by=lambda e: e[0]
)


@pytest.mark.parametrize("text", CASES)
@settings(max_examples=settings.default.max_examples // 3)
@given(
    events_of_both=random_events, chunk_size=st.integers(1, 8), latency=st.sampled_from(["perfect", "ordered", "eager"])
)
def test_the_answer_is_the_oracles(text, events_of_both, chunk_size, latency):
    inputs = {
        kind: History((ts, ts + 1, Row(m=m, v=v)) for ts, k, m, v in events_of_both if k == kind)
        for kind in ("A", "B", "C")
    }
    rows = pl.DataFrame(events_of_both, schema={"ts": pl.Int64, **SCHEMA}, orient="row")
    query = cedr.query(f"EVENT q WHEN {text} LATENCY {latency}", numbers)
    testing.assert_same(query.run(rows, chunk_size=chunk_size).history(), CASES[text].run(inputs))
