"""Random patterns in shards, through crashes, and on Spark: the oracle's answer, as everywhere."""

from dataclasses import replace
from tempfile import TemporaryDirectory

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from language.test_bitemporal import COLUMNS as STATEMENT_COLUMNS
from language.test_bitemporal import TEXT, table
from operators.patterns.test_bitemporal import SCHEMA as VERSIONS
from operators.patterns.test_bitemporal import believed_if_one_version_at_a_time, over_versions, versions
from random_patterns import KINDS, SCHEMA, asked, payloads
from runtime.spark.tables import COLUMNS, history_of, table_of
from runtime.spark.test_same_answer import in_few, on_spark
from runtime.spark.test_shard import Cluster, history, very_few

import cedr
from cedr.api import source_of_keys
from cedr.runtime.spark.driver.late_files import read_late
from cedr.storage.folder import Folder
from cedr.stream import Stream
from cedr.temporal import Event, History, QueryError, Row, Statement, canonical
from cedr.testing import assert_same, slicings, streams


@st.composite
def questions(draw, depth: int, size: int, most: int = 1):
    """Random patterns over tables as one stream, the streams of their ports in pieces, and the oracle's answer."""
    ports = draw(st.sampled_from([1, 1, 3]))
    pieces, whole = {}, []
    for kind in KINDS[:ports]:
        of_port = payloads(kind if ports > 1 else KINDS)
        elements = draw(streams(of_port, max_size=size, closed=True))
        whole.append(canonical(elements))
        pieces[kind] = draw(slicings(elements))
    patterns = asked(depth=depth, modes=True, ports=(ports,)).filter(lambda found: flat(found) and possible(found))
    found, answers = [], []
    while len(found) < most:
        pattern = draw(patterns)
        answer = pattern.oracle(*whole)
        if len(answer) or draw(st.booleans()):
            found.append(pattern.node)
            answers.append(answer)
    names = sorted({name for node in found for name, _ in node.outputs})
    expected = [
        Event(vs, ve, Row({"pattern": number, **dict.fromkeys(names), **payload}))
        for number, answer in enumerate(answers)
        for vs, ve, payload in answer
    ]
    return in_one(found, names, ports), pieces, History(expected)


def in_one(patterns, names, ports) -> Stream:
    """The matches of several patterns, each with the number of its pattern; columns a pattern has not are missing."""
    members = tuple(source_of_keys(kind, SCHEMA, **COLUMNS).plan for kind in KINDS[:ports])
    found = []
    for number, node in enumerate(patterns):
        own = {**dict.fromkeys(names, pl.lit(None, pl.Int64)), **dict(node.outputs)}
        outputs = (("pattern", pl.lit(number, pl.Int64)), *own.items())
        found.append(Stream(replace(node, members=members, outputs=outputs)))
    return found[0].union(*found[1:]) if len(found) > 1 else found[0]


def flat(found) -> bool:
    """Lists of contributors have tests of their own."""
    return all(name != "cbt" for name, _ in found.node.outputs)


def possible(found) -> bool:
    """Consumption where it would have to be known for all time is refused."""
    try:
        Stream(found.node).engine()
    except QueryError as e:
        return "remove CONSUME" not in str(e)
    return True


def answered(question) -> bool:
    """On Spark there are few tries; each should be meaningful."""
    return len(question[2]) > 0


@very_few
@given(questions(depth=2, size=4), st.integers(1, 3), st.data())
def test_random_patterns_have_one_answer_through_crashes(question, shards, data):
    through_crashes(question, shards, data, SCHEMA)


def through_crashes(question, shards, data, schema, prefix="") -> None:
    stream, pieces, expected = question
    places = st.frozensets(st.tuples(st.integers(1, 3), st.integers(0, 2)), max_size=3)
    with TemporaryDirectory() as folder:
        cluster, changes = Cluster(stream, folder, shards), []
        for number in range(max(map(len, pieces.values()))):
            arriving = {kind: cut[number] if number < len(cut) else [] for kind, cut in pieces.items()}
            packets = cluster.packets(number, {kind: [table_of(e, schema, prefix)] for kind, e in arriving.items()})
            changes.append(cluster.run(number, packets, data.draw(places)))
        changes.append(cluster.run(number + 1, cluster.closing(), data.draw(places)))
        assert read_late(Folder(cluster.job.late)).height == 0
    assert_same(history(changes, stream.schema), expected)


@on_spark
@given(one=questions(depth=3, size=4, most=4).filter(answered), two=questions(depth=2, size=5, most=4).filter(answered))
def test_random_patterns_on_spark(one, two, spark, tmp_path_factory):
    for question in (one, two):
        check_on_spark(question, spark, tmp_path_factory.mktemp("patterns"), SCHEMA)


def check_on_spark(question, spark, folder, schema, prefix="") -> None:
    """Batch and streaming give the answer that is expected."""
    stream, pieces, expected = question
    for kind, cut in pieces.items():
        (folder / kind).mkdir()
        for number, piece in enumerate(in_few(cut)):
            table_of(piece, schema, prefix).write_parquet(folder / kind / f"{number}.parquet")
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


# --- over versions -------------------------------------------------------------------------------------------------

OCCURRENCE = {name: f"o{column}" for name, column in COLUMNS.items()}
"""The columns of time, where those of the payload are about valid time."""


@st.composite
def bitemporal_questions(draw, size: int):
    """A random pattern over tables of versions, the streams of its ports in pieces, and the oracle's answer."""
    depth, modes = draw(st.sampled_from([(2, False), (1, True)]))
    node, oracle = draw(over_versions(depth=depth, modes=modes))
    pieces, whole = {}, []
    for member in node.members:
        of_port = versions(member.name if len(node.members) > 1 else KINDS)
        elements = draw(streams(of_port, max_size=size, max_time=6, closed=True))
        whole.append(canonical(elements))
        pieces[member.name] = draw(slicings(elements))
    members = tuple(source_of_keys(kind, VERSIONS, **OCCURRENCE).plan for kind in pieces)
    return Stream(replace(node, members=members)), pieces, oracle(*whole)


def can_run(question) -> bool:
    try:
        question[0].engine()
    except QueryError as e:
        return "remove CONSUME" not in str(e)
    return True


@very_few
@given(bitemporal_questions(size=4).filter(can_run), st.integers(1, 3), st.data())
def test_random_patterns_over_versions_have_one_answer_through_crashes(question, shards, data):
    with believed_if_one_version_at_a_time(streams_of(question)):
        through_crashes(question, shards, data, VERSIONS, "o")


@on_spark
@given(question=bitemporal_questions(size=8).filter(can_run).filter(answered))
def test_random_patterns_over_versions_on_spark(question, spark, tmp_path_factory):
    with believed_if_one_version_at_a_time(streams_of(question)):
        check_on_spark(question, spark, tmp_path_factory.mktemp("versions"), VERSIONS, "o")


def streams_of(question):
    """Whole streams."""
    return [[e for piece in cut for e in piece] for cut in question[1].values()]


def test_a_provider_that_changes_its_mind_on_spark(spark, tmp_path):
    statements = [Statement(1, 1, 10, 1, ("A", 7)), Statement(2, 5, 9, 2, ("B", 7)), Statement(1, 3, 10, 4, ("A", 7))]
    feed = cedr.source("machines", STATEMENT_COLUMNS, vs="os", types="kind", delay=10)
    query = cedr.query(TEXT, feed.versions(statements=True))
    (tmp_path / "statements").mkdir()
    for number, statement in enumerate(statements):
        table([statement]).select(*STATEMENT_COLUMNS, "os").write_parquet(tmp_path / "statements" / f"{number}.parquet")
    expected = query.run(table(statements)).table()
    files = cedr.files(tmp_path / "statements", max_files=1)
    assert streamed(query, spark, files, tmp_path).sort(pl.all()).equals(expected.sort(pl.all()))
    assert expected.select("_vs", "_ve", "first").rows() == [(2, 4, 1), (4, None, 3)]
