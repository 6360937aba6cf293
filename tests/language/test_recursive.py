"""RECURSIVE SELECT gives what the same loop written with the stream API gives."""

import polars as pl
import pytest
from graph_streams import EDGES, GRAPHS, AsPorts
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_check import check_against_oracle, runs

import cedr
from cedr import api, graphs
from cedr.reference.fixed_point import distances, reachable
from cedr.syntax.errors import LanguageError
from cedr.testing import rows

few = settings(max_examples=max(settings.default.max_examples // 2, 1))
edges = api.source("a", GRAPHS, vs="vs", ve="ve")
WEIGHED = rows(start=st.integers(0, 2), end=st.integers(0, 2), length=st.integers(0, 3))
REACHED = """
EVENT Reached RECURSIVE
SELECT start, "end" FROM a
UNION
SELECT r.start, e.end FROM Reached r JOIN a e ON r.end = e.start
"""
SHORTEST = """
EVENT Way RECURSIVE
SELECT start, "end", length FROM a
UNION
SELECT w.start, e.end, MIN(w.length + e.length) AS length FROM Way w JOIN a e ON w.end = e.start GROUP BY w.start, e.end
"""
ROADS = pl.DataFrame(
    {"start": [1, 2, 3, 3], "end": [2, 3, 1, 4], "length": [1, 1, 1, 5], "vs": [0, 1, 2, 4], "ve": [20, 9, 20, 12]}
)


@pytest.mark.parametrize(("text", "oracle"), [(REACHED, reachable), (SHORTEST, distances)], ids=["all", "shortest"])
@few
@given(run=runs(WEIGHED, max_size=6))
def test_against_the_oracle(text, oracle, run):
    query = cedr.query(text, api.source("a", GRAPHS))
    check_against_oracle(lambda: AsPorts(query), oracle, run[0], [GRAPHS], run[1])


def test_the_same_as_in_the_api():
    assert cedr.query(SHORTEST, edges).run(ROADS).table().equals(graphs.shortest_paths(edges).run(ROADS).table())


def test_several_parts_begin_and_several_go_on():
    """Edges both ways, from the nodes 1 and 3."""
    text = """
    EVENT Near RECURSIVE
    SELECT start AS node FROM a WHERE start = 1 UNION SELECT n.node + 0 AS node FROM Near n
    UNION SELECT start AS node FROM a WHERE start = 3
    UNION SELECT e.end AS node FROM Near n JOIN a e ON n.node = e.start
    """
    seed = edges.where(pl.col("start") == 1).select(node="start")
    other = edges.where(pl.col("start") == 3).select(node="start")
    loop = seed.union(other).iterate(
        lambda near: near.join(edges, left_on="node", right_on="start").select(node="end").union(near)
    )
    assert cedr.query(text, edges).run(ROADS).table().equals(loop.run(ROADS).table())


def test_later_statements_read_the_whole_loop():
    """And not what the body reads under the same name and alias."""
    later = cedr.queries(f"{REACHED}; EVENT Many SELECT start, COUNT(*) AS n FROM Reached r GROUP BY start", edges)
    whole = graphs.reachability(edges.select("start", "end")).group_by("start").agg(n=cedr.count())
    assert later["Many"].run(ROADS).table().equals(whole.run(ROADS).table())


def test_two_equal_loops_that_refer_to_each_other_are_two():
    text = "EVENT {} RECURSIVE SELECT start FROM a UNION SELECT start FROM {} WHERE start > 1"
    with pytest.raises(LanguageError, match="no SELECT reads y"):
        cedr.query(f"{text.format('x', 'x')}; {text.format('y', 'x')}", edges)


def test_slices_and_levels():
    query = cedr.query(f"{REACHED} # [3, 6) CONSISTENCY STRONG", edges)
    expected = graphs.reachability(edges.select("start", "end")).slice(valid=(3, 6)).with_consistency("strong")
    assert query.run(ROADS).table().equals(expected.run(ROADS).table())


def test_without_the_keyword_the_error_shows_it():
    with pytest.raises(LanguageError, match=r"'x' is this statement itself; .* EVENT x RECURSIVE SELECT"):
        cedr.query("EVENT x SELECT start FROM a UNION SELECT start FROM x", api.source("a", EDGES))
