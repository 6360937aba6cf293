"""The texts and tables of `why`."""

from dataclasses import replace

import polars as pl
import pytest
from lineage.feed import FEED, events, query, text

import cedr
from cedr.lineage.observed import observe
from cedr.temporal import QueryError

MISSED = query("""
    EVENT Missed WHEN UNLESS(SEQUENCE(INSTALL x, SHUTDOWN y, 12), RESTART z, 5)
    WHERE CorrelationKey(m, EQUAL) AND x.load < y.load AND z.load > y.load
    OUTPUT x.m AS machine, y.Vs AS down
""")

# a   INSTALL 1 ---- SHUTDOWN 4 ------ (RESTART 9)
# b   INSTALL 2 ---- SHUTDOWN 5 - RESTART 7
TWO_MACHINES = events(
    (1, "INSTALL", "a", 1),
    (2, "INSTALL", "b", 1),
    (4, "SHUTDOWN", "a", 3),
    (5, "SHUTDOWN", "b", 3),
    (7, "RESTART", "b", 9),
    (9, "RESTART", "a", 9),
)


def test_a_match_with_its_events_its_conditions_and_what_did_not_come():
    assert str(MISSED.why(TWO_MACHINES, machine="a")) == text(
        "match from 4 to 9: machine='a', down=4",
        "  UNLESS 5",
        "    SEQUENCE 12",
        "      INSTALL x at 1 (m='a', load=1)",
        "      SHUTDOWN y at 4 (m='a', load=3)",
        "    no RESTART z with z.load > y.load after 4 and before 9",
        "  CorrelationKey(m, EQUAL): m='a'",
        "  x.load < y.load: x.load=1, y.load=3",
    )


def test_its_events_as_a_table():
    found = MISSED.why(TWO_MACHINES, vs=4).contributors
    assert found.drop("id").rows() == [
        (1, "x", "INSTALL", 1, 2, "INSTALL", "a", 1),
        (1, "y", "SHUTDOWN", 4, 5, "SHUTDOWN", "a", 3),
    ]
    assert found.columns == ["match", "variable", "type", "vs", "ve", "id", "kind", "m", "load"]


def test_ids_are_those_of_the_lineage_that_is_put_out():
    pattern = query("EVENT Q WHEN SEQUENCE(INSTALL x, SHUTDOWN y, 12) WHERE {x.m = y.m} OUTPUT x.m AS m, cbt")
    lineage = pattern.run(TWO_MACHINES).table().filter(pl.col("m") == "b")["cbt"][0]
    assert [c["id"] for c in lineage] == pattern.why(TWO_MACHINES, m="b").contributors["id"].to_list()


def test_names_that_attributes_have_get_an_underscore():
    typed = cedr.source("rows", {"type": str, "id": int}, types="type")
    pairs = cedr.query("EVENT P WHEN SEQUENCE(A a, B b, 9) OUTPUT a.id AS one", typed)
    rows = [cedr.Insert(1, 2, cedr.Row(type="A", id=7)), cedr.Insert(2, 3, cedr.Row(type="B", id=8))]
    found = pairs.why(rows, one=7).contributors
    assert found.columns == ["match", "variable", "_type", "vs", "ve", "_id", "type", "id"]
    assert found["id"].to_list() == [7, 8]


def test_several_matches():
    pairs = query("EVENT P WHEN SEQUENCE(INSTALL x, SHUTDOWN y, 12) OUTPUT x.m AS one, y.m AS other")
    why = pairs.why(TWO_MACHINES)
    assert why.matches == 4
    assert str(why).startswith("4 matches fit; these are the first 3\nmatch from 4 to 13: one='a', other='a'\n")
    assert why.contributors["match"].to_list() == [1, 1, 2, 2, 3, 3]
    assert str(pairs.why(TWO_MACHINES, one="a")).startswith("2 matches fit\nmatch from 4")


def test_selection_and_consumption():
    # x   1   2       7
    # y         4   5   8        FIRST takes 1, then what is left: 2, then 7
    first = query("EVENT F WHEN SEQUENCE(INSTALL x FIRST CONSUME, SHUTDOWN y, 12) OUTPUT x.Vs AS up, y.Vs AS down")
    rows = events((1, "INSTALL"), (2, "INSTALL"), (4, "SHUTDOWN"), (5, "SHUTDOWN"), (7, "INSTALL"), (8, "SHUTDOWN"))
    assert first.run(rows).table().select("up", "down").rows() == [(1, 4), (2, 5), (7, 8)]
    assert str(first.why(rows, down=4)) == text(
        "match from 4 to 13: up=1, down=4",
        "  SEQUENCE 12",
        "    INSTALL x at 1 (m='a', load=0)",
        "    SHUTDOWN y at 4 (m='a', load=0)",
        "    INSTALL x FIRST: the earliest of 2, the other is at 2",
        "    INSTALL x at 1 is consumed: no later match has it",
    )
    assert "INSTALL x FIRST: there is only one" in str(first.why(rows, down=8))


def test_consumption_long_ago_counts():
    # x  0 0  2   4   6   ...        the second event at 0 leaves one over for ever: each y takes the x before the last
    # y    1    3   5   7 ...
    first = query("EVENT F WHEN SEQUENCE(INSTALL x FIRST CONSUME, SHUTDOWN y, 3) OUTPUT x.Vs AS up, y.Vs AS down")
    rows = events((0, "INSTALL", "b"), *((t, "INSTALL") for t in range(0, 21, 2)))
    rows += events(*((t, "SHUTDOWN") for t in range(1, 22, 2)))
    why = first.why(rows, down=21)
    assert why.contributors["vs"].to_list() == [18, 21]
    assert "INSTALL x FIRST: the earliest of 2, the other is at 20" in str(why)


def test_equal_events_are_different_events():
    pairs = query("EVENT P WHEN SEQUENCE(INSTALL x, SHUTDOWN y, 12) OUTPUT x.m AS m")
    why = pairs.why(events((1, "INSTALL"), (1, "INSTALL"), (2, "SHUTDOWN")))
    assert why.matches == 2
    assert why.contributors.filter(pl.col("type") == "INSTALL")["id"].n_unique() == 2


def test_parameters_that_take_no_part():
    either = query("EVENT E WHEN ANY(INSTALL x, SHUTDOWN y) WHERE {x.load < y.load} OUTPUT Vs AS t")
    assert str(either.why(TWO_MACHINES, t=1)) == text(
        "match from 1 to 2: t=1",
        "  ATLEAST 1 1",
        "    INSTALL x at 1 (m='a', load=1)",
        "  x.load < y.load: not evaluated, as y takes no part",
    )


def test_atmost_and_lives_longer_than_a_chronon():
    few = query("EVENT F WHEN ATMOST(2, INSTALL x, SHUTDOWN y, 4) OUTPUT Vs AS t")
    rows = [cedr.Insert(1, 9, cedr.Row(kind="INSTALL", m="a", load=0)), *events((3, "SHUTDOWN"))]
    assert str(few.why(rows, t=3)) == text(
        "match from 3 to 5: t=3",
        "  ATMOST 2 4",
        "    INSTALL from 1 to 9 (m='a', load=0)",
        "    SHUTDOWN at 3 (m='a', load=0)",
        "    no other events count from 3 to 5",
    )


def test_events_that_are_matches_themselves():
    found = cedr.queries(
        """EVENT Down WHEN SEQUENCE(INSTALL x, SHUTDOWN y, 12) WHERE CorrelationKey(m, EQUAL) OUTPUT x.m AS m
           EVENT Two WHEN SEQUENCE(Down a, Down b, 12) OUTPUT a.m AS one, b.m AS other""",
        FEED,
    )
    assert "Down b from 5 to 14 (m='b')" in str(found["Two"].why(TWO_MACHINES, one="a"))


def test_nodes_above_the_pattern_count():
    later = MISSED.slice((6, None)).where(pl.col("down") > 3).with_consistency("strong")
    assert str(later.why(TWO_MACHINES, vs=6)).startswith("match from 6 to 9: machine='a', down=4\n  UNLESS 5")


def test_two_axes_of_time_are_refused():
    node = replace(MISSED.plan, bitemporal=True)
    with pytest.raises(QueryError, match="support one time axis"):
        observe(node, TWO_MACHINES)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MISSED.why(TWO_MACHINES, machine="b"), "none of the 1 matches has machine='b'; to find out"),
        (lambda: MISSED.why(TWO_MACHINES, machin="b"), "no column 'machin'; did you mean 'machine'?"),
        (lambda: MISSED.why(TWO_MACHINES, machine=3), "machine=3, but machine is String"),
        (lambda: MISSED.why(iter([TWO_MACHINES])), "need the data as a whole"),
        (lambda: FEED.why(TWO_MACHINES), "this query ends with Source"),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(QueryError) as found:
        call()
    assert message in str(found.value)
