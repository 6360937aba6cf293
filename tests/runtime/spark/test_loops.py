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
from cedr.reference.fixed_point import distances, reachable
from cedr.stream import Stream
from cedr.temporal import History, Row, canonical
from cedr.testing import assert_same

very_few = settings(max_examples=max(settings.default.max_examples // 10, 1))


def edges() -> Stream:
    return cedr.source("a", GRAPHS, **COLUMNS)


def from_all() -> Stream:
    return cedr.reachability(edges(), edges().select(node="start"), settled=True)


def shortest() -> Stream:
    return cedr.shortest_paths(edges(), turns=2)


def nodes(h: History) -> History:
    return History((e.vs, e.ve, Row(node=e.payload.start)) for e in h)


QUERIES = {"loop": (shortest, distances), "search trees": (from_all, lambda h: reachable(h, nodes(h)))}


@pytest.mark.parametrize("name", QUERIES)
@very_few
@given(random=st.randoms(use_true_random=False), shards=st.integers(1, 3), data=st.data())
def test_in_shards_through_crashes(name, random, shards, data):
    build, oracle = QUERIES[name]
    told = busy_graph(random, 6, 3, weighed=True)
    tables = [table_of(piece, GRAPHS) for _, piece in in_slices(random, told)]
    places = st.frozensets(st.tuples(st.integers(1, 3), st.integers(0, 2)), max_size=3)
    with TemporaryDirectory() as folder:
        cluster = Cluster(build(), folder, shards)
        batches = [cluster.packets(number, {"a": [table]}) for number, table in enumerate(tables)]
        changes = [
            cluster.run(n, packets, data.draw(places)) for n, packets in enumerate([*batches, cluster.closing()])
        ]
    assert_same(history(changes, build().schema), oracle(canonical(told)))


def test_on_spark(spark, tmp_path):
    """Without adjusts, whose order in a static table nobody promises."""
    rows = pl.DataFrame(
        {"start": [1, 2, 3, 3], "end": [2, 3, 1, 4], "length": [1, 1, 1, 5], "vs": [0, 1, 2, 4], "ve": [20, 9, 20, 12]}
    )
    rows.write_parquet(tmp_path / "rows.parquet")
    source = cedr.source("a", GRAPHS, vs="vs", ve="ve")
    query = cedr.shortest_paths(source)
    expected = query.run(rows).history()
    static = spark.read.parquet(str(tmp_path / "rows.parquet"))
    assert len(expected) > 4
    assert_same(history_of(pl.DataFrame(query.batch(spark, static).toArrow()), query.schema), expected)
