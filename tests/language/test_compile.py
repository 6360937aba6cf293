"""From text to plan: streams and their names, ports, conditions, outputs, levels, slices, and what is shared."""

import polars as pl
import pytest

import cedr
from cedr import api
from cedr.operators.patterns.matcher import MatchOperator
from cedr.plan import nodes
from cedr.plan.patterns import tree as patterns
from cedr.temporal.time import INF, MIN

feed = api.source("machines", {"kind": str, "machine": str, "load": float}, vs="ts", types="kind")
hot = api.source("sensor", {"room": str, "celsius": int}, vs="ts", kind="HOT")
plain = api.source("plain", {"room": str, "load": float}, vs="ts")
ROWS = pl.DataFrame(
    {"ts": [1, 2, 5, 9], "kind": ["A", "A", "B", "A"], "machine": ["m", "n", "m", "m"], "load": [0.5, 0.25, 1.0, 2.0]}
)


def match(text: str, *streams, **named) -> nodes.Match:
    plan = cedr.query(text, *(streams or [feed]), **named).plan
    assert isinstance(plan, nodes.Match)
    return plan


# --- names ---------------------------------------------------------------------------------------------------------


def test_types_of_one_feed_share_its_port():
    node = match("EVENT q WHEN SEQUENCE(A x, B y, HOT z, 5 s)", feed, hot)
    assert node.members == (feed.plan, hot.plan)
    assert [(p.name, p.port, p.where is None) for p in node.pattern.leaves()] == [
        ("A", 0, False),
        ("B", 0, False),
        ("HOT", 1, True),
    ]


def test_a_stream_goes_by_its_kind_its_source_or_the_name_it_is_given_by():
    node = match("EVENT q WHEN ANY(HOT, plain, mine, machines, A)", feed, hot, plain, mine=plain.where("load > 1"))
    assert [p.name for p in node.pattern.leaves()] == ["HOT", "plain", "mine", "machines", "A"]
    assert [p.port for p in node.pattern.leaves()] == [0, 1, 2, 3, 3]


def test_a_filtered_feed_still_has_its_types():
    node = match("EVENT q WHEN SEQUENCE(A x, B y, 5 s)", feed.where("load > 1"))
    assert isinstance(node.members[0], nodes.Select)
    assert len(node.members) == 1


def test_a_part_of_a_feed_with_a_name_of_its_own_is_no_second_feed():
    node = match("EVENT q WHEN SEQUENCE(BUSY x, B y, 5 s)", feed, BUSY=feed.where("load > 1"))
    assert [(p.name, p.port) for p in node.pattern.leaves()] == [("BUSY", 0), ("B", 1)]


def test_later_statements_read_earlier_ones():
    found = cedr.queries(
        "EVENT busy WHEN A x WHERE x.load > 0.4; EVENT pair WHEN SEQUENCE(busy b, B y, 5)"
        " WHERE b.machine = y.machine OUTPUT b.load AS before, y.load AS after",
        feed,
    )
    assert list(found) == ["busy", "pair"]
    assert found["busy"].run(ROWS).table().rows() == [(1, 2, "m", 0.5), (9, 10, "m", 2.0)]
    assert found["pair"].run(ROWS).table().rows() == [(5, 6, 0.5, 1.0)]


def test_names_are_case_sensitive_and_keywords_are_not():
    assert cedr.query("event q when any(a X) wHeRe X.load > 1 output X.load", feed).columns == ["load"]
    with pytest.raises(cedr.CedrError, match="there is no variable 'x'; did you mean 'X'"):
        cedr.query("EVENT q WHEN ANY(A X) WHERE x.load > 1", feed)


def test_keywords_can_be_names():
    odd = api.source("odd", {"group": int, "a b": int, "first": int}, vs="ts")
    text = (
        'EVENT "select" WHEN ANY(odd AS first) WHERE first.group > 1 AND first."a b" = 2 OUTPUT first.first AS "group"'
    )
    found = cedr.queries(text, odd)
    assert list(found) == ["select"]
    assert found["select"].columns == ["group"]


# --- single events -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "node", "rows"),
    [
        ("A", nodes.Project, [(1, 2, "m", 0.5), (2, 3, "n", 0.25), (9, 10, "m", 2.0)]),
        (
            "A x WHERE x.load > 0.3 AND [machine EQUAL 'm'] OUTPUT load * 2 AS d",
            nodes.Project,
            [(1, 2, 1.0), (9, 10, 4.0)],
        ),
        (
            "A x WHERE CorrelationKey(machine, EQUAL) OUTPUT machine",
            nodes.Project,
            [(1, 2, "m"), (2, 3, "n"), (9, 10, "m")],
        ),
        ("machines WHERE load = 1", nodes.Select, [(5, 6, "B", "m", 1.0)]),
        ("A x WHERE x.Vs > 3 OUTPUT x.Vs, COUNT(*)", nodes.Match, [(9, 10, 9, 1)]),
    ],
)
def test_a_single_event_type_is_a_filter_unless_its_header_is_asked_for(text, node, rows):
    query = cedr.query(f"EVENT q WHEN {text}", feed)
    assert isinstance(query.plan, node)
    assert query.run(ROWS).table().rows() == rows


# --- conditions ----------------------------------------------------------------------------------------------------


def test_conditions_are_split_at_and():
    node = match(
        "EVENT q WHEN UNLESS(SEQUENCE(A x, B y, 5), C z, 5)"
        " WHERE {x.load > 1} AND {x.machine = y.machine AND z.load > y.load} AND CorrelationKey(machine, EQUAL)"
        " AND [machine EQUAL 'm'] AND (x.load > 2 OR y.load > 2)"
    )
    predicates = [c for c in node.where if isinstance(c, patterns.Predicate)]
    assert [(c.variables, c.text) for c in predicates] == [
        (("x",), "x.load > 1"),
        (("x", "y"), "x.machine = y.machine"),
        (("z", "y"), "z.load > y.load"),
        (("x", "y"), "x.load > 2 OR y.load > 2"),
    ]
    assert [c for c in node.where if not isinstance(c, patterns.Predicate)] == [
        patterns.CorrelationKey("machine", "EQUAL"),
        patterns.AttributeEqual("machine", "m"),
    ]


def test_events_without_a_variable_go_by_their_type():
    node = match(
        "EVENT q WHEN UNLESS(SEQUENCE(A, A, B, 5), C, 5) WHERE B.load > 1 AND C.load > B.load AND A_2.load > 1"
    )
    assert [p.var for p in node.pattern.leaves()] == ["A_1", "A_2", "B", "C"]


def test_equalities_become_the_key():
    node = match(
        "EVENT q WHEN UNLESS(SEQUENCE(A x, B y, 5), C z, 5) WHERE x.machine = y.machine AND z.machine = y.machine"
    )
    assert node.by == ("machine",)


# --- outputs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "columns"),
    [
        ("", ["x_machine", "x_load", "room", "celsius", "y_machine", "y_load"]),
        ("OUTPUT *", ["x_machine", "x_load", "room", "celsius", "y_machine", "y_load"]),
        ("OUTPUT h.*, x.load", ["room", "celsius", "load"]),
        ("OUTPUT x.load, y.load, y.machine", ["x_load", "y_load", "machine"]),
        ("OUTPUT x.load AS a, y.load", ["a", "load"]),
        ("OUTPUT Vs, Ve, Rt, Id, cbt, x.Vs", ["Vs", "Ve", "Rt", "Id", "cbt", "x_Vs"]),
        ("OUTPUT COUNT(*), SUM(load), AVG(load), MIN(celsius), celsius", "count sum_load avg_load min_celsius celsius"),
        ("OUTPUT x.kind", ["kind"]),
    ],
)
def test_how_outputs_are_called(output, columns):
    query = cedr.query(f"EVENT q WHEN SEQUENCE(A x, HOT h, B y, 5) {output}", feed, hot)
    assert query.columns == (columns.split() if isinstance(columns, str) else columns)


def test_types_of_outputs():
    query = cedr.query(
        "EVENT q WHEN SEQUENCE(A x, HOT h, 5) OUTPUT x.load * 2 AS a, h.celsius + 1 AS b, TIMESTAMP(x.Vs) AS t,"
        " x.machine || h.room AS s, h.Vs - x.Vs > 3 AS l, COUNT(*) AS n",
        feed,
        hot,
    )
    assert list(query.schema.values()) == [pl.Float64, pl.Int64, pl.Datetime("us"), pl.String, pl.Boolean, pl.Int64]


# --- levels and slices ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "level", "latency"),
    [
        ("CONSISTENCY STRONG", cedr.STRONG, None),
        ("CONSISTENCY middle LATENCY Eager", cedr.MIDDLE, "eager"),
        ("CONSISTENCY BLOCK 5 s REMEMBER 1 hour", cedr.Consistency("5s", "1h"), None),
        ("CONSISTENCY BLOCK 5", cedr.Consistency(5, INF), None),
        ("CONSISTENCY REMEMBER 10 LATENCY ordered", cedr.Consistency(0, 10), "ordered"),
        ("CONSISTENCY BLOCK INF REMEMBER FOREVER", cedr.STRONG, None),
    ],
)
def test_levels(text, level, latency):
    plan = cedr.query(f"EVENT q WHEN ANY(A x) {text}", feed).plan
    levels = [node for node in nodes.topological(plan) if isinstance(node, nodes.Level)]
    assert [node.consistency for node in levels if node.consistency] == [level]
    assert [node.latency for node in levels if node.latency] == ([latency] if latency else [])


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("@ [3, 9)", 3, 9),
        ("# [-3, 9)", -3, 9),
        ("@ [3, 9) # [1, 5)", 3, 5),
        ("@ [3, )", 3, INF),
        ("@ [, 9)", MIN, 9),
        ("# [3, INF)", 3, INF),
        ("@ ['1970-01-01 00:00:01', TIMESTAMP '1970-01-01 00:00:02')", 1_000_000, 2_000_000),
    ],
)
def test_slices(text, start, end):
    for query in (
        f"WHEN ANY(A x) {text} WHERE x.load > 1",
        f"WHEN ANY(A x) WHERE x.load > 1 {text}",
        f"WHEN A x {text}",
    ):
        plan = cedr.query(f"EVENT q {query}", feed).plan
        assert isinstance(plan, nodes.Slice)
        assert (plan.start, plan.end) == (start, end)


def test_a_slice_cuts_what_it_meets():
    text = "EVENT q SELECT machine FROM machines SLIDING 4 @ [3, 6)"
    assert cedr.query(text, feed).run(ROWS).table().rows() == [(3, 5, "m"), (3, 6, "n"), (5, 6, "m")]


# --- what is shared ------------------------------------------------------------------------------------------------


def test_two_equal_statements_are_one_node():
    found = cedr.queries(
        "EVENT one WHEN SEQUENCE(A x, B y, 5) WHERE x.load > 1; EVENT two WHEN SEQUENCE(A AS x, B AS y, 5)"
        " WHERE (x.load > 1) CONSISTENCY STRONG; EVENT three WHEN SEQUENCE(A x, B y, 5) WHERE x.load > 1.0",
        feed,
    )
    assert found["one"].plan is found["two"].plan.input
    assert found["one"].plan is not found["three"].plan


def test_a_window_that_is_named_twice_is_one_node():
    found = cedr.queries(
        "EVENT n SELECT COUNT(*) AS n FROM A SLIDING 60 s; EVENT m SELECT MAX(load) AS m FROM A SLIDING 1 minute;"
        " EVENT o SELECT MIN(load) AS m FROM A SLIDING 60 s",
        feed,
    )
    windows = [
        next(node for node in nodes.topological(stream.plan) if isinstance(node, nodes.Sliding))
        for stream in found.values()
    ]
    assert windows[0] is windows[2]


def test_a_statement_that_two_others_read_is_computed_once():
    found = cedr.query(
        """EVENT Pair WHEN SEQUENCE(A x, B y, 5) WHERE x.load > 1;
           EVENT One  WHEN UNLESS(Pair p, C c, 3) OUTPUT p.x_load AS load;
           EVENT Two  WHEN SEQUENCE(Pair p, D d, 5) OUTPUT p.x_load AS load;
           EVENT Both WHEN ALL(One o, Two t, 9)""",
        feed,
    )
    matches = [node for node in nodes.topological(found.plan) if isinstance(node, nodes.Match)]
    assert [node.pattern.keyword for node in matches].count("SEQUENCE") == 2
    assert len([o for o in found.engine().operators if isinstance(o, MatchOperator)]) == len(matches) == 4


# --- explain -------------------------------------------------------------------------------------------------------


def test_explain_shows_where_each_condition_is_asked():
    text = cedr.query(
        """EVENT Alert
           WHEN  UNLESS(SEQUENCE(A x FIRST CONSUME, B AS y, 12 hours) AS s, ATLEAST(1, C AS z, D, 1 hour), 5 minutes)
           WHERE CorrelationKey(machine, EQUAL) AND x.load > 0.9 AND x.load < y.load AND z.load > y.load
             AND s.Vs - x.Vs > 5 minutes AND [load EQUAL 5]""",
        feed,
    ).explain()
    assert (
        "  Match by machine: x_machine, x_load, y_machine, y_load\n"
        "    | UNLESS 5m\n"
        "    |   SEQUENCE 12h s, checked here x.load < y.load, checked here s.Vs - x.Vs > 5 minutes\n"
        "    |     A x FIRST CONSUME, at entry x.load > 0.9\n"
        "    |     B y\n"
        "    |   without ATLEAST 1 1h\n"
        "    |     C z, only those with z.load > y.load\n"
        "    |     D\n"
        "    | of all events: [load EQUAL 5]\n"
        "    | key: x.machine = y.machine = z.machine = D.machine; it replaces CorrelationKey(machine, EQUAL)\n"
        "    Source machines (kind: String, machine: String, load: Float64), vs=ts\n"
    ) in text
    assert "Match <- 0: events that may still take part in a match or forbid one" in text
    assert "by machine: grouped by machine" in text


def test_explain_shows_what_is_computed_once():
    text = cedr.query(
        """EVENT q
           WHEN  ALL(SEQUENCE(A x, B y, 5), UNLESS(SEQUENCE(A u, B v, 5), NOT(C w, SEQUENCE(A, B AS t, 5)), 3), 10)
           WHERE x.load > 1 AND x.load < y.load AND u.load < v.load AND u.load > 1 AND A.load > 1""",
        feed,
    ).explain()
    assert (
        "    | ATLEAST 2 10\n"
        "    |   SEQUENCE 5, checked here x.load < y.load\n"
        "    |     A x, at entry x.load > 1\n"
        "    |     B y\n"
        "    |   UNLESS 3\n"
        "    |     SEQUENCE 5, same as SEQUENCE(x, y), checked there u.load < v.load\n"
        "    |       A u, at entry u.load > 1\n"
        "    |       B v\n"
        "    |     without NOT\n"
        "    |       SEQUENCE 5\n"
        "    |         A, at entry A.load > 1\n"
        "    |         B t\n"
        "    |       without C w\n"
    ) in text


def test_explain_without_a_key():
    text = cedr.query("EVENT q WHEN ATMOST(2, A, B, 5) WHERE A.load > 1", feed).explain()
    assert "    | ATMOST 2 5\n    |   counted A, at entry A.load > 1\n    |   counted B\n" in text
    assert "    | key: none, so all events meet in one shard\n" in text
