"""Shards through crashes: whatever is lost, repeated or split differently, each micro-batch has one answer."""

from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan.catalogue import MERGES, QUERIES, SCHEMA, few, payloads
from runtime.spark.cluster import Cluster, history
from runtime.spark.tables import COLUMNS, parts, table_of

import cedr
from cedr.runtime.spark.driver.late_files import read_late
from cedr.runtime.spark.shard import state
from cedr.runtime.spark.shard.shard import Shard
from cedr.storage.folder import Folder
from cedr.temporal import canonical
from cedr.testing import assert_same, slicings, streams

ALL = {**QUERIES, **MERGES}

very_few = settings(max_examples=settings.default.max_examples // 10)
"""Each writes and reads hundreds of files."""


@pytest.fixture(scope="module", autouse=True)
def some_are_spilled():
    """Those with several rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "MANY_BYTES", 100)
        yield


@st.composite
def batches(draw, ports: int, infinite: bool):
    """Micro-batches of all sources, and the whole streams."""
    inputs = {}
    for name in ("a", "b")[:ports]:
        inputs[name] = draw(streams(payloads, max_size=6, closed=True, infinite=infinite, adjusts=infinite))
    cut = {name: draw(slicings(stream)) for name, stream in inputs.items()}
    number = max(map(len, cut.values()))
    return inputs, [{name: pieces[i] if i < len(pieces) else [] for name, pieces in cut.items()} for i in range(number)]


@pytest.mark.parametrize("level", ["weak", "strong", {"block": 2, "remember": 5}], ids=str)
@few
@given(data=st.data(), shards=st.integers(1, 3))
def test_a_level_means_the_same_in_shards(level, data, shards):
    """Waiting and forgetting are measured from the highest time of the whole stream, not of a shard's part of it."""
    knobs = level if isinstance(level, dict) else {"level": level}
    source = cedr.source("a", SCHEMA, vs="vs", ve="ve", insert_only=True)
    stream = source.group_by("m").agg(n=cedr.count(), top=cedr.max("v")).with_consistency(**knobs)
    elements = data.draw(streams(payloads, max_size=8, adjusts=False))
    tables = [table_of(piece, SCHEMA) for piece in data.draw(slicings(elements))]
    local = list(stream.updates(iter([t for t in tables if t.height])))
    with TemporaryDirectory() as folder:
        cluster = Cluster(stream, folder, shards)
        batches_ = [cluster.packets(i, {"a": [t]}) for i, t in enumerate(t for t in tables if t.height)]
        changes = [cluster.run(number, packets) for number, packets in enumerate([*batches_, cluster.closing()])]
        late = read_late(Folder(cluster.job.late)).height
    assert_same(history(changes, stream.schema), local[-1].history())
    assert late == local[-1].late().height


@pytest.mark.parametrize("name", ALL)
@very_few
@given(data=st.data())
def test_micro_batches_have_one_answer_through_crashes(name, data):
    query = ALL[name]
    stream = query.stream(**COLUMNS)
    inputs, arriving = data.draw(batches(query.ports, query.infinite))
    shards = data.draw(st.integers(1, 3))
    places = st.frozensets(st.tuples(st.integers(1, 3), st.integers(0, 2)), max_size=4)
    with TemporaryDirectory() as folder:
        cluster, changes = Cluster(stream, folder, shards), []
        for number, pieces in enumerate([*arriving, None]):
            for attempt in range(data.draw(st.integers(1, 2))):
                if pieces is None:
                    packets = cluster.closing()
                else:
                    tables = {source: table_of(elements, SCHEMA) for source, elements in pieces.items()}
                    parts_by_source = {source: data.draw(parts(t)) for source, t in tables.items()}
                    packets = cluster.packets(number, parts_by_source)
                change = cluster.run(number, packets, data.draw(places))
                if attempt:
                    assert change.sort(pl.all()).equals(changes[-1].sort(pl.all()))
                else:
                    changes.append(change)
        assert read_late(Folder(cluster.job.late)).height == 0
    assert_same(history(changes, stream.schema), query.oracle(*(canonical(t) for t in inputs.values())))


def test_the_end_comes_after_all_rounds_of_its_micro_batch():
    """A late row parts the rows into rounds; another source may have ended before, so the end arrives with rows."""
    schema = {"ts": pl.Int64, "k": pl.String, "v": pl.Int64, "cti": pl.Int64}
    rows = [(1, "a", 1, None), (12, "a", 2, None), (None, None, None, 10), (5, "a", 9, None), (13, "b", 5, None)]
    table = pl.DataFrame(rows, schema=schema, orient="row")
    query = cedr.source("a", {"k": str, "v": int}, vs="ts", cti="cti").tumbling(10).group_by("k").agg(v=cedr.sum("v"))
    with TemporaryDirectory() as folder:
        cluster = Cluster(query, folder, 2)
        changes = [cluster.run(0, [*cluster.closing(), *cluster.packets(0, {"a": [table]})])]
        late = read_late(Folder(cluster.job.late))["v"].to_list()
    assert late == [9]
    assert_same(history(changes, query.schema), query.run(table).history())


@pytest.mark.parametrize("shards", [1, 3])
def test_of_two_processes_with_one_batch_the_first_to_log_decides(monkeypatch, shards):
    """A slow task and its repetition: both must give the answer of the one that logged first. In reality their packets
    differ only in how rows are split; here they have different values, which shows whose answer it is."""
    query = cedr.source("a", {"k": int, "v": int}, vs="ts", delay=3).tumbling(10).group_by("k").agg(v=cedr.sum("v"))
    batches_ = [pl.DataFrame({"ts": [9 * b, 9 * b - 3], "k": [1, 2], "v": [b, 5]}) for b in (1, 2, 3)]
    with TemporaryDirectory() as folder:
        slow, quick = Cluster(query, folder, shards), Cluster(query, folder, shards)
        changes = [slow.run(0, slow.packets(0, {"a": [batches_[0]]}))]
        in_the_middle(monkeypatch, lambda: quick.run(1, quick.packets(1, {"a": batches_[1].partition_by("k")})))
        changes.append(slow.run(1, slow.packets(1, {"a": [batches_[1].with_columns(pl.col("v") + 100)]})))
        again = quick.run(1, quick.packets(1, {"a": [batches_[1]]}))
        assert changes[1].sort(pl.all()).equals(again.sort(pl.all()))
        changes.append(slow.run(2, slow.packets(2, {"a": [batches_[2]]})))
        changes.append(slow.run(3, slow.closing()))
    assert_same(history(changes, query.schema), query.run(pl.concat(batches_)).history())


def in_the_middle(monkeypatch, work) -> None:
    """Do this once, when a shard has processed a batch and has not logged it yet."""
    original = Shard._work

    def interrupted(self, *arguments):
        worked = original(self, *arguments)
        monkeypatch.setattr(Shard, "_work", original)
        work()
        return worked

    monkeypatch.setattr(Shard, "_work", interrupted)
