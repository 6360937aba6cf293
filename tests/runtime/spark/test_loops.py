"""Loops in shards, through crashes, and on Spark: the answer of the oracle."""

from tempfile import TemporaryDirectory

import polars as pl
import pytest
from graph_streams import GRAPHS, busy_graph, in_slices
from hypothesis import given, settings
from hypothesis import strategies as st
from runtime.spark.cluster import Cluster, history
from runtime.spark.tables import COLUMNS, history_of, table_of

import cedr
from cedr import reference as ref
from cedr.api import source_of_keys
from cedr.reference.fixed_point import components, distances, fixed_point, reachable
from cedr.runtime.spark.driver.late_files import read_late
from cedr.storage.folder import Folder
from cedr.stream import Stream
from cedr.temporal import Cti, History, Insert, Row, canonical
from cedr.testing import assert_same

very_few = settings(max_examples=max(settings.default.max_examples // 10, 1))


def edges() -> Stream:
    return source_of_keys("a", GRAPHS, **COLUMNS)


def from_all() -> Stream:
    return cedr.reachability(edges(), edges().select(node="start"), settled=True)


def shortest() -> Stream:
    return cedr.shortest_paths(edges(), iterations_per_chunk=2)


def nodes(h: History) -> History:
    return History((e.vs, e.ve, Row(node=e.payload.start)) for e in h)


def within_lengths() -> Stream:
    """What is reachable over edges of one length: all inputs can be spread by it."""
    return (
        edges()
        .select("length", end="start")
        .iterate(
            lambda known: known.join(edges(), left_on=["length", "end"], right_on=["length", "start"]).select(
                "length", end="end_right"
            )
        )
    )


def within_lengths_as_defined(h: History) -> History:
    def hops(known: History, links: History) -> History:
        return ref.inner_join(
            known,
            links,
            lambda p, q: (p.length, p.end) == (q.length, q.start),
            lambda p, q: Row(length=p.length, end=q.end),
        )

    return fixed_point(hops, ref.project(h, lambda p: Row(length=p.length, end=p.start)), h)


def with_itself() -> Stream:
    """Rows of the loop meet others with their start."""
    pairs = edges().select("start", "end")
    return pairs.iterate(
        lambda known: (
            known.select("start")
            .join(known, on="start")
            .join(pairs, left_on="end", right_on="start")
            .select("start", end="end_right")
        )
    )


def added() -> Stream:
    """Some edges come in as seed, others in the body."""
    pairs = edges().select("start", "end")
    short, long = (edges().where(condition).select("start", "end") for condition in (LONG.not_(), LONG))
    return short.iterate(
        lambda known: known.join(pairs, left_on="end", right_on="start").select("start", end="end_right").union(long)
    )


def over_groups() -> Stream:
    """What goes to every shard comes from the shards of an earlier stage."""
    return cedr.reachability(edges().group_by("start").agg(end=cedr.max("end")))


def over_groups_as_defined(h: History) -> History:
    return reachable(ref.aggregate(h, by=["start"], end=ref.max_("end")))


LONG = pl.col("length") > 1
QUERIES = {
    "loop": (shortest, distances),
    "search trees": (from_all, lambda h: reachable(h, nodes(h))),
    "all inputs spread": (within_lengths, within_lengths_as_defined),
    "with itself": (with_itself, reachable),
    "rows added": (added, reachable),
    "after an earlier stage": (over_groups, over_groups_as_defined),
    "in one shard": (lambda: cedr.connected_components(edges()), components),
}


@pytest.mark.parametrize("name", QUERIES)
@very_few
@given(random=st.randoms(use_true_random=False), shards=st.integers(1, 3), data=st.data())
def test_in_shards_through_crashes(name, random, shards, data):
    build, oracle = QUERIES[name]
    elements = busy_graph(random, 6, 3, weighed=True)
    tables = [table_of(piece, GRAPHS) for _, piece in in_slices(random, elements)]
    places = st.frozensets(st.tuples(st.integers(1, 3), st.integers(0, 2)), max_size=3)
    with TemporaryDirectory() as folder:
        cluster = Cluster(build(), folder, shards)
        batches = [cluster.packets(number, {"a": [table]}) for number, table in enumerate(tables)]
        changes = [
            cluster.run(n, packets, data.draw(places)) for n, packets in enumerate([*batches, cluster.closing()])
        ]
    assert_same(history(changes, build().schema), oracle(canonical(elements)))


def changing_automaton() -> Stream:
    """Each length is a key, whose events step from node to node over the edges of the table."""
    nodes = (pl.col(name).cast(pl.String) for name in ("start", "end"))
    table = edges().select(**dict(zip(("source", "target"), nodes, strict=True)), symbol="start")
    return cedr.automaton(edges(), table, start="0", symbol="start", by="length", window=5)


@very_few
@given(random=st.randoms(use_true_random=False), shards=st.integers(1, 3))
def test_automata_whose_table_changes(random, shards):
    elements = busy_graph(random, 6, 3, weighed=True)
    tables = [table_of(piece, GRAPHS) for _, piece in in_slices(random, elements)]
    with TemporaryDirectory() as folder:
        cluster = Cluster(changing_automaton(), folder, shards)
        batches = [cluster.packets(number, {"a": [table]}) for number, table in enumerate(tables)]
        changes = [cluster.run(n, packets) for n, packets in enumerate([*batches, cluster.closing()])]
    expected = changing_automaton().run(pl.concat(tables)).history()
    assert_same(history(changes, changing_automaton().schema), expected)


def test_late_edges_are_reported_once(tmp_path):
    """They would have gone to every shard."""
    elements = [Insert(0, 20, Row(start=1, end=2, length=1)), Cti(10), Insert(5, 20, Row(start=2, end=3, length=1))]
    query = cedr.reachability(edges(), cedr.source("b", {"node": int}, vs="vs"), settled=True)
    cluster = Cluster(query, str(tmp_path), shards=3)
    links, roots = table_of(elements, GRAPHS), pl.DataFrame({"vs": [0, 0, 0], "node": [1, 2, 3]})
    for number, piece in enumerate((links[:2], links[2:])):
        cluster.run(number, cluster.packets(number, {"a": [piece], "b": [roots] if number == 0 else []}))
    assert read_late(Folder(f"{tmp_path}/late"))["reason"].to_list() == ["below_cti"]


# --- on Spark, in three shards -------------------------------------------------------------------------------------

ROADS = pl.DataFrame(
    {"start": [1, 2, 3, 3], "end": [2, 3, 1, 4], "length": [1, 1, 1, 5], "vs": [0, 1, 2, 4], "ve": [20, 9, 20, 12]}
)


def roads() -> Stream:
    return cedr.shortest_paths(cedr.source("a", GRAPHS, vs="vs", ve="ve", delay=5))


def test_of_a_table_on_spark(spark, tmp_path):
    """Without adjusts, whose order in a static table nobody promises."""
    ROADS.write_parquet(tmp_path / "rows.parquet")
    expected = roads().run(ROADS).history()
    static = spark.read.parquet(str(tmp_path / "rows.parquet"))
    assert len(expected) > 4
    assert_same(history_of(pl.DataFrame(roads().batch(spark, static, shards=3).toArrow()), roads().schema), expected)


def test_of_a_stream_on_spark(spark, tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(2):
        ROADS[2 * number : 2 * number + 2].write_parquet(tmp_path / "in" / f"{number}.parquet")
    running = roads().start(
        spark,
        cedr.files(tmp_path / "in", max_files=1),
        sink=cedr.sinks.parquet(tmp_path / "out"),
        checkpoint=str(tmp_path / "checkpoint"),
        trigger={"availableNow": True},
        shards=3,
        close=True,
    )
    running.await_termination()
    assert_same(history_of(running.table(), roads().schema), roads().run(ROADS).history())
    assert sum(p.observedMetrics["cedr"].rows_in for p in running.progress) == 2 * ROADS.height
