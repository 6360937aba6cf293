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
from runtime.spark.tables import COLUMNS, table_of
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
from cedr.temporal import Adjust, Cti, Element, Insert, Row, canonical
from cedr.temporal.errors import StorageError
from cedr.temporal.time import INF
from cedr.testing import assert_same

ALL = {**QUERIES, **MERGES}

very_few = settings(max_examples=max(2, settings.default.max_examples // 25))
"""Each writes and reads hundreds of files."""
PARTS = 5
OF_TWO_KEYS = ("merge of plans",)
"""Its plans are only the same for the keys 0 and 1."""


@pytest.fixture(scope="module", autouse=True)
def small():
    """Some packets are spilled; indices are compacted at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "MANY_BYTES", 100)
        patch.setattr(index, "WORTH_COMPACTING", 1)
        yield


def dense_stream(random: Random, keys: int, infinite: bool) -> list[Element]:
    """Many tuples of some keys that live at the same time, with adjusts and CTIs: each cell has some when it is
    split. Shrinking streams do not."""
    found: list[Element] = []
    live, cti = [], 0
    for _ in range(26):
        kind = random.random()
        if kind < 0.6 or not live:
            vs = cti + random.randrange(8)
            ve = INF if infinite and random.random() < 0.15 else vs + 1 + random.randrange(12)
            live.append((vs, ve, Row(m=random.randrange(keys), v=random.choice([None, 0, 1, 2, 3]))))
            found.append(Insert(*live[-1]))
        elif kind < 0.8 and infinite:
            vs, ve, payload = live.pop(random.randrange(len(live)))
            new = random.choice([vs, max(vs, cti) + 1 + random.randrange(9)])
            if new != ve and min(ve, new) >= cti:
                found.append(Adjust(vs, ve, new, payload))
                live += [(vs, new, payload)] if new > vs else []
        else:
            cti += random.randrange(3)
            found.append(Cti(cti))
    return [*found, Cti(INF)]


@pytest.mark.parametrize("name", ALL)
@very_few
@given(seed=st.integers(0, 2**32), numbers=st.sampled_from([(2, 5, 3, 1), (1, 4, 7), (3, 2, 6)]))
def test_another_number_of_shards_changes_nothing(name, seed, numbers):
    """In every micro-batch but the first another number, after the last one with a crash of all shards."""
    query, random = ALL[name], Random(seed)
    stream = query.stream(**COLUMNS)
    inputs = {
        source: dense_stream(random, 2 if name in OF_TWO_KEYS else 7, query.infinite)
        for source in ("a", "b")[: query.ports]
    }
    with TemporaryDirectory() as folder:
        cluster, changes = Cluster(stream, folder, numbers[0]), []
        for batch in range(PARTS):
            if 0 < batch < len(numbers):
                cluster.rescale(numbers[batch], batch - 1)
            pieces = {s: e[len(e) * batch // PARTS : len(e) * (batch + 1) // PARTS] for s, e in inputs.items()}
            tables = {source: [table_of(elements, SCHEMA)] for source, elements in pieces.items()}
            changes.append(cluster.run(batch, cluster.packets(batch, tables)))
        cluster.shards = {}
        changes.append(cluster.run(PARTS, cluster.closing()))
        assert read_late(Folder(cluster.job.late)).height == 0
    never = stream.run({source: table_of(elements, SCHEMA) for source, elements in inputs.items()})
    assert_same(history(changes, stream.schema), never.history())


RISING = cedr.automaton(
    cedr.source("a", {"m": int, "v": int}, vs="ts", delay=50),
    [("S", "low", "1"), ("1", "rise", "2"), ("2", "rise", "F")],
    start="S",
    final="F",
    steps={"low": pl.col("v") == 0, "rise": cedr.step(pl.col("v") > pl.col("r"), r=pl.col("v"))},
    registers={"r": 0},
    by="m",
    window=60,
)


def test_runs_of_automata_stay_with_their_keys():
    """The runs of 16 keys are open when shards change, and each is completed afterwards.

    v  0   1   2     for every key, one micro-batch each
    t  0+  20+ 40+
    """
    tables = [pl.DataFrame({"ts": [20 * v + m for m in range(16)], "m": range(16), "v": v}) for v in range(3)]
    with TemporaryDirectory() as folder:
        cluster, changes = Cluster(RISING, folder, 2), []
        for batch, shards in enumerate((2, 5, 3)):
            if batch:
                cluster.rescale(shards, batch - 1)
            changes.append(cluster.run(batch, cluster.packets(batch, {"a": [tables[batch]]})))
        changes.append(cluster.run(3, cluster.closing()))
        assert len(cluster.job.cells(1)) > 2
    found = RISING.run(pl.concat(tables)).history()
    assert len(found) == 16
    assert_same(history(changes, RISING.schema), found)


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


def test_a_full_disk_while_shards_are_split_loses_nothing(monkeypatch, tmp_path):
    """At every write: the error names the disk, the old number counts, and a start with space left goes on."""
    query = EAGER["with keys"]
    (tmp_path / "never").mkdir()
    never = SmallRun(tmp_path / "never", query=query)
    never.run_from(0)
    here, tmp_path = FailingDisk(), tmp_path / "changed"
    tmp_path.mkdir()
    monkeypatch.setattr(disk, "local", here)
    SmallRun(tmp_path, query=query).run(0)
    SmallRun(tmp_path, 0, query=query).run(1)
    errors: list[str] = []
    while (run := SmallRun(tmp_path, 1, query=query)).job.shards == 2:
        here.full = here.writes + len(errors)
        try:
            run.rescale(5, 1)
        except StorageError as e:
            errors.append(str(e))
        here.full = None
    assert len(errors) >= 3
    assert all("No space left on device" in error for error in errors)
    assert run.job.shards == 5
    run.run_from(2)
    assert run.table() == never.table()


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
