"""Another number of shards in the middle of a stream: the answer is that of a query that never changed it."""

from random import Random
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix.values import COLUMNS as COLUMNS_OF_TYPES
from plan.catalogue import MERGES, QUERIES, SCHEMA
from runtime.spark.cluster import Cluster, history
from runtime.spark.small_run import BATCHES, LATE, SmallRun
from runtime.spark.tables import COLUMNS, parts, table_of
from runtime.spark.test_shard_punctuated import QUERIES as PUNCTUATED
from runtime.spark.test_shard_punctuated import source, streams_in_batches
from runtime.spark.test_shard_punctuated import table_of as punctuated_table
from storage.failing_disk import FailingDisk, PowerCut

import cedr
from cedr.columnar import index
from cedr.columnar.sharding import can_be_key
from cedr.operators.base import Operator
from cedr.operators.splitting import WHOLE, part_of
from cedr.plan.nodes.level import Level
from cedr.plan.partitioning import staged
from cedr.runtime.spark.driver.late_files import read_late
from cedr.runtime.spark.shard import state
from cedr.runtime.spark.shard.cells import SPACE, Layout, StageCells, even_cells, places_of, rescaled
from cedr.runtime.spark.shard.rescale import why_whole
from cedr.storage import disk
from cedr.storage.folder import Folder
from cedr.temporal import canonical
from cedr.testing import assert_same, rows, slicings, streams

ALL = {**QUERIES, **MERGES}

very_few = settings(max_examples=settings.default.max_examples // 10)


@pytest.fixture(scope="module", autouse=True)
def small():
    """Some packets are spilled; indices are compacted at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "MANY_BYTES", 100)
        patch.setattr(index, "WORTH_COMPACTING", 1)
        yield


many_keys = rows(m=st.integers(0, 6), v=st.one_of(st.none(), st.integers(0, 3)))
"""So that the keys of one cell are split."""


@st.composite
def batches(draw, ports: int, infinite: bool):
    """Micro-batches of all sources, and the whole streams."""
    inputs = {}
    for name in ("a", "b")[:ports]:
        inputs[name] = draw(streams(many_keys, max_size=10, closed=True, infinite=infinite, adjusts=infinite))
    cut = {name: draw(slicings(stream)) for name, stream in inputs.items()}
    number = max(map(len, cut.values()))
    return inputs, [{name: pieces[i] if i < len(pieces) else [] for name, pieces in cut.items()} for i in range(number)]


@pytest.mark.parametrize("name", ALL)
@very_few
@given(data=st.data())
def test_another_number_of_shards_changes_nothing(name, data):
    query = ALL[name]
    stream = query.stream(**COLUMNS)
    inputs, arriving = data.draw(batches(query.ports, query.infinite))
    numbers = data.draw(st.sampled_from([(2, 5, 3, 1), (1, 4, 7), (3, 2, 6)]))
    when = data.draw(st.lists(st.integers(0, len(arriving)), min_size=len(numbers) - 1, max_size=len(numbers) - 1))
    with TemporaryDirectory() as folder:
        cluster, changes, others = Cluster(stream, folder, numbers[0]), [], list(numbers[1:])
        for number, pieces in enumerate([*arriving, None]):
            for _ in range(when.count(number)):
                cluster.rescale(others.pop(0), number - 1)
            if pieces is None:
                packets = cluster.closing()
            else:
                tables = {source: table_of(elements, SCHEMA) for source, elements in pieces.items()}
                packets = cluster.packets(number, {source: data.draw(parts(t)) for source, t in tables.items()})
            crashes = frozenset(
                place
                for place in [(s, cell.number) for s in range(1, cluster.job.last + 1) for cell in cluster.job.cells(s)]
                if data.draw(st.integers(0, 3)) == 0
            )
            changes.append(cluster.run(number, packets, crashes))
        assert not others
        assert read_late(Folder(cluster.job.late)).height == 0
    never = stream.run({source: table_of(elements, SCHEMA) for source, elements in inputs.items()})
    assert_same(history(changes, stream.schema), never.history())


# --- cells -------------------------------------------------------------------------------------------------------


def test_cells_cover_the_hash_and_refine_each_other():
    """A row stays in its cell, or goes to one of the cells that its cell was split into."""
    rows = pl.DataFrame({"k": range(2000)})
    stage, shards = StageCells(even_cells(2), {}), 2
    for wanted in (5, 3, 1, 7, 2, 16):
        before = [stage.cells[place].number for place in places_of(rows, ("k",), stage.cells)]
        stage, _ = rescaled(stage, wanted, can_split=True)
        shards = wanted
        assert [c.begin for c in stage.cells] == [0, *(c.end for c in stage.cells[:-1])]
        assert stage.cells[-1].end == SPACE
        assert {c.shard for c in stage.cells} == set(range(shards))
        after = [stage.cells[place].number for place in places_of(rows, ("k",), stage.cells)]
        assert all(new in stage.within(old) for old, new in zip(before, after, strict=True))


def test_numbers_of_cells_are_never_used_again():
    two = StageCells(even_cells(2), {})
    five, splits = rescaled(two, 5, can_split=True)
    assert [[c.number for c in split.parts] for split in splits] == [[2, 3, 4], [5, 6, 7]]
    assert [c.shard for c in five.cells] == [0, 1, 2, 2, 3, 4]
    three, splits = rescaled(five, 3, can_split=True)
    assert not splits
    assert [(c.number, c.shard) for c in three.cells] == [(2, 0), (3, 0), (4, 1), (5, 1), (6, 2), (7, 2)]
    assert five.within(0) == (2, 3, 4)
    layout = Layout(5, (five,), 1, 7)
    assert Layout.from_bytes(layout.to_bytes()) == layout


def test_a_stage_that_cannot_be_split_keeps_its_cells():
    stage, splits = rescaled(StageCells(even_cells(2), {}), 5, can_split=False)
    assert not splits
    assert [(c.number, c.shard) for c in stage.cells] == [(0, 1), (1, 3)]


# --- which operators can be split --------------------------------------------------------------------------------


def every_operator(cls: type = Operator) -> set[type]:
    below = {c for sub in cls.__subclasses__() for c in every_operator(sub)}
    concrete = {cls} if not getattr(cls, "__abstractmethods__", None) and cls.__module__.startswith("cedr.") else set()
    return below | concrete


def test_every_operator_is_split_or_says_why_not():
    """An operator with state that is neither would be copied to every cell, or keep its stage from growing."""
    unknown = part_of.dispatch(object)
    undecided = {c.__name__ for c in every_operator() if part_of.dispatch(c) is unknown} - WHOLE.keys()
    assert not undecided


def test_stages_that_stay_whole_name_the_operator():
    query = cedr.source("a", {"k": str, "v": int}, vs="ts").sliding(10).agg(n=cedr.count())
    plan = staged(Level(query.plan))
    assert "PartialAggregate" in why_whole(plan, plan.stages[0])
    keyed = cedr.source("a", {"k": str, "v": int}, vs="ts").sliding(10).group_by("k").agg(n=cedr.count())
    plan = staged(Level(keyed.plan))
    assert [why_whole(plan, stage) for stage in plan.stages] == [None]


# --- crashes and tables ------------------------------------------------------------------------------------------

SUMS = cedr.source("readings", {"k": int, "v": int}, vs="ts", delay=5).sliding(25).group_by("k").agg(v=cedr.sum("v"))
EAGER = {
    "with keys": SUMS.with_latency("eager"),
    "without": SUMS.with_latency("eager").select("v"),
}
"""Tuples in the table change after shards were split; in the second, the rows do not show which shard they are from."""


@pytest.mark.parametrize("name", EAGER)
def test_a_power_cut_while_shards_are_split_loses_nothing(name, monkeypatch, tmp_path):
    """At every step either the old or the new number counts, and the table is right at the end."""
    query, numbers = EAGER[name], {2: 5, 3: 3, 4: 1}
    (tmp_path / "never").mkdir()
    never = SmallRun(tmp_path / "never", query=query)
    never.run_from(0)
    here, tmp_path = FailingDisk(), tmp_path / "changed"
    tmp_path.mkdir()
    monkeypatch.setattr(disk, "local", here)
    random, run, done, cuts = Random(1), None, None, 0
    while done != BATCHES:
        try:
            run = run or SmallRun(tmp_path, done, query=query)
            batch = 0 if done is None else done + 1
            wanted = numbers.get(batch, run.job.shards)
            if run.job.shards != wanted:
                here.cut = here.steps + 4 * cuts
                run.rescale(wanted, done)
            here.cut, cuts = None, 0
            run.run(batch, parts=random.randint(1, 3))
            done = batch
        except PowerCut:
            here.fail(random)
            run, cuts = None, cuts + 1
            assert SmallRun(tmp_path, done, query=query).job.shards in (2, 5, 3, 1)
    run = SmallRun(tmp_path, done, query=query)
    assert run.job.shards == 1
    assert run.table() == never.table()
    assert run.late_rows() == LATE


# --- keys of all types -------------------------------------------------------------------------------------------

AS_KEYS = {name: values for name, values in COLUMNS_OF_TYPES.items() if can_be_key(values.dtype) and name != "Null"}


@pytest.mark.parametrize("name", AS_KEYS)
def test_keys_of_every_type_go_where_their_rows_go(name):
    """A stored key has the hash of the rows that will come: also a missing one, NaN, zones, decimals and texts."""
    keys = AS_KEYS[name].rename("k")
    a = cedr.source("a", {"k": keys.dtype, "x": pl.Int64}, vs="ts", delay=100)
    b = cedr.source("b", {"k": keys.dtype, "y": pl.Int64}, vs="ts", delay=100)
    sums = a.sliding(40).group_by("k").agg(x=cedr.sum("x"), top=cedr.max("x"))
    query = sums.join(b.sliding(30), on="k", how="left").with_latency("eager")
    both = [
        pl.DataFrame({"ts": [7 * i + n for n in range(len(keys))], "k": keys, name: [i + n for n in range(len(keys))]})
        for i, name in enumerate("xyxyxy")
    ]
    with TemporaryDirectory() as folder:
        cluster, changes = Cluster(query, folder, 2), []
        for number, shards in enumerate((2, 5, 3)):
            if number:
                cluster.rescale(shards, number - 1)
            tables = {"a": [both[2 * number]], "b": [both[2 * number + 1]]}
            changes.append(cluster.run(number, cluster.packets(number, tables)))
        changes.append(cluster.run(3, cluster.closing()))
        assert len(cluster.job.cells(1)) > 2
    expected = query.run({"a": pl.concat(both[::2]), "b": pl.concat(both[1::2])})
    assert_same(history(changes, query.schema), expected.history())


# --- promises ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PUNCTUATED)
@very_few
@given(data=st.data())
def test_promises_about_keys_stay_with_their_keys(name, data):
    build, oracle = PUNCTUATED[name]
    ports = build.__code__.co_argcount
    inputs, arriving = data.draw(streams_in_batches(ports))
    stream = build(*(source(port) for port in ("a", "b")[:ports]))
    when = data.draw(st.integers(0, len(arriving)))
    with TemporaryDirectory() as folder:
        cluster, changes = Cluster(stream, folder, 2), []
        for number, pieces in enumerate([*arriving, None]):
            if number == when:
                cluster.rescale(5, number - 1)
            if pieces is None:
                packets = cluster.closing()
            else:
                packets = cluster.packets(number, {name: [punctuated_table(e)] for name, e in pieces.items()})
            changes.append(cluster.run(number, packets))
        assert read_late(Folder(cluster.job.late)).height == 0
    assert_same(history(changes, stream.schema), oracle(*(canonical(t) for t in inputs.values())))
