"""Random patterns in shards, through crashes, and on Spark: the oracle's answer, as everywhere."""

from dataclasses import replace
from tempfile import TemporaryDirectory

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from language.test_bitemporal import COLUMNS as SAID
from language.test_bitemporal import TEXT, table
from random_patterns import KINDS, SCHEMA, asked, payloads
from runtime.spark.tables import COLUMNS, history_of, table_of
from runtime.spark.test_same_answer import in_few, on_spark
from runtime.spark.test_shard import Cluster, history, very_few

import cedr
from cedr.runtime.spark import answers
from cedr.runtime.spark.folder import Folder
from cedr.stream import Stream
from cedr.temporal import QueryError, Statement, canonical
from cedr.testing import assert_same, slicings, streams


@st.composite
def questions(draw, depth: int, size: int):
    """A random pattern over tables, the streams of its ports in pieces, and the oracle's answer."""
    found = draw(asked(depth=depth, modes=True).filter(lambda found: flat(found) and possible(found)))
    members = tuple(cedr.source(kind, SCHEMA, **COLUMNS).plan for kind in KINDS[: found.ports])
    pieces, whole = {}, []
    for kind in KINDS[: found.ports]:
        of_port = payloads(kind if found.ports > 1 else KINDS)
        elements = draw(streams(of_port, max_size=size, closed=True))
        whole.append(canonical(elements))
        pieces[kind] = draw(slicings(elements))
    return Stream(replace(found.node, members=members)), pieces, found.oracle(*whole)


def flat(found) -> bool:
    """Lists of contributors have tests of their own."""
    return all(name != "cbt" for name, _ in found.node.outputs)


def possible(found) -> bool:
    """Consumption where it would have to be known for all time is refused."""
    try:
        Stream(found.node).engine()
    except QueryError as e:
        return "leave out CONSUME" not in str(e)
    return True


def answered(question) -> bool:
    """On Spark there are few tries; each should say something."""
    return len(question[2]) > 0


@very_few
@given(questions(depth=2, size=4), st.integers(1, 3), st.data())
def test_random_patterns_have_one_answer_through_crashes(question, shards, data):
    stream, pieces, expected = question
    places = st.frozensets(st.tuples(st.integers(1, 3), st.integers(0, 2)), max_size=3)
    with TemporaryDirectory() as folder:
        cluster, changes = Cluster(stream, folder, shards), []
        for number in range(max(map(len, pieces.values()))):
            arriving = {kind: cut[number] if number < len(cut) else [] for kind, cut in pieces.items()}
            packets = cluster.packets(number, {kind: [table_of(e, SCHEMA)] for kind, e in arriving.items()})
            changes.append(cluster.run(number, packets, data.draw(places)))
        changes.append(cluster.run(number + 1, cluster.closing(), data.draw(places)))
        assert answers.read_late(Folder(cluster.job.late)).height == 0
    assert_same(history(changes, stream.schema), expected)


@on_spark
@given(one=questions(depth=3, size=4).filter(answered), two=questions(depth=2, size=5).filter(answered))
def test_random_patterns_on_spark(one, two, spark, tmp_path_factory):
    for stream, pieces, expected in (one, two):
        folder = tmp_path_factory.mktemp("patterns")
        for kind, cut in pieces.items():
            (folder / kind).mkdir()
            for number, piece in enumerate(in_few(cut)):
                table_of(piece, SCHEMA).write_parquet(folder / kind / f"{number}.parquet")
        static = {kind: spark.read.parquet(str(folder / kind)) for kind in pieces}
        assert_same(history_of(pl.DataFrame(stream.batch(spark, static).toArrow()), stream.schema), expected)
        files = {kind: cedr.files(folder / kind, max_files=1) for kind in pieces}
        assert_same(history_of(streamed(stream, spark, files, folder), stream.schema), expected)


def streamed(stream, spark, data, folder) -> pl.DataFrame:
    sink, trigger = cedr.sinks.memory(), {"availableNow": True}
    running = stream.start(spark, data, sink=sink, checkpoint=str(folder / "ck"), trigger=trigger, close=True)
    running.await_termination()
    assert running.late().height == 0
    return running.table()


def test_a_provider_that_changes_its_mind_on_spark(spark, tmp_path):
    said = [Statement(1, 1, 10, 1, ("A", 7)), Statement(2, 5, 9, 2, ("B", 7)), Statement(1, 3, 10, 4, ("A", 7))]
    feed = cedr.source("machines", SAID, vs="os", types="kind", delay=10)
    query = cedr.query(TEXT, feed.versions(statements=True))
    (tmp_path / "said").mkdir()
    for number, statement in enumerate(said):
        table([statement]).select(*SAID, "os").write_parquet(tmp_path / "said" / f"{number}.parquet")
    expected = query.run(table(said)).table()
    files = cedr.files(tmp_path / "said", max_files=1)
    assert streamed(query, spark, files, tmp_path).sort(pl.all()).equals(expected.sort(pl.all()))
    assert expected.select("_vs", "_ve", "first").rows() == [(2, 4, 1), (4, None, 3)]
