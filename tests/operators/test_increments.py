"""Operators in blocks whose snapshots are written as increments: what is read is what an ordinary snapshot has, and
operators that go on from it give the same output."""

import random

import numpy as np
import polars as pl
import pytest
from layouts import use_layout
from operators.test_layouts import OPERATORS as BY_KEY
from operators.test_layouts import output, stream
from operators.test_snapshot_layouts import OPERATORS, SCHEMA, long_stream

from cedr.columnar import blocks, increments, index
from cedr.columnar.stored import incremental
from cedr.operators import future, layout
from cedr.operators.aggregate import AggregateOperator
from cedr.operators.join import JoinOperator
from cedr.operators.outer_join import OuterJoinOperator
from cedr.operators.snapshot import SnapshotOperator
from cedr.operators.top_k import TopKOperator
from cedr.operators.two_layouts import stored_blocks
from cedr.plan import aggregates as agg
from cedr.storage import snapshots
from cedr.storage.folder import Folder
from cedr.storage.snapshots import Snapshots
from cedr.temporal import Insert, Row

EXTREMES = {"most": agg.Max("v"), "least": agg.Min("v")}
BY_SNAPSHOT = {
    **OPERATORS,
    "extremes": (lambda latency: AggregateOperator(SCHEMA, ("m",), EXTREMES, latency), 1),
    "top": (lambda latency: TopKOperator(SCHEMA, 2, ["v"], [True], ["m"], latency=latency), 1),
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    for name, value in {"SMALL": 0, "NOTED": 3, "FEW_BYTES": 0}.items():
        monkeypatch.setattr(increments, name, value)
    monkeypatch.setattr(snapshots, "SMALL_TABLE", 100)
    monkeypatch.setattr(snapshots, "LARGE_TABLE", 2000)


@pytest.fixture
def folder(tmp_path):
    made = Folder(str(tmp_path / "state"), label="state")
    made.make()
    return made


def same(one, two) -> bool:
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[k], two[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, pl.DataFrame):
        return one.equals(two)
    return bool(np.array_equal(one, two)) if isinstance(one, np.ndarray) else one == two


class Checkpoint:
    """Snapshots of an operator in a folder, the two newest of them."""

    def __init__(self, folder, make):
        self.folder, self.make, self.batch = folder, make, 0
        self.here = Snapshots(folder)

    def write(self, operator):
        def increment(afresh=False):
            with incremental(afresh):
                return operator.snapshot()

        self.batch += 1
        written = self.here.write(self.batch, increment(), lambda: increment(afresh=True))
        self.here.forget_before(self.batch - 1)
        return written

    def read(self):
        self.here = Snapshots(self.folder)
        return self.here.read(self.here.manifest(self.batch))

    def restored(self, from_blocks=True):
        """An operator that has what was written; if not `from_blocks`, as if parts of it had been changed."""
        operator, state = self.make(), self.read()
        operator.restore(state if from_blocks else plain(state))
        return operator


def plain(state):
    """The same without links to the blocks that it was read from."""
    if isinstance(state, dict):
        return {name: plain(value) for name, value in state.items()}
    return (
        type(state)(map(plain, state)) if type(state) is list else tuple(state) if isinstance(state, tuple) else state
    )


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", BY_KEY)
def test_joins_and_others_by_key(name, seed, folder, monkeypatch):
    make, choose = BY_KEY[name], random.Random(f"{name} {seed}")
    use_layout(monkeypatch, choose.choice(["blocks", "blocks", "changing"]))
    monkeypatch.setattr(index, "WORTH_COMPACTING", choose.choice([1, 10_000]))
    whole, operator, checkpoint = make(), make(), Checkpoint(folder, make)
    for step in stream(choose, whole.ports, size=150, late=9):
        assert output(operator, step) == output(whole, step)
        if choose.random() < 0.3:
            checkpoint.write(operator)
            assert same(checkpoint.restored().snapshot(), operator.snapshot())
            if choose.random() < 0.4:
                operator = checkpoint.restored(choose.random() < 0.7)
                assert operator.cti_out == whole.cti_out


APART = ("count", "sums by key")
"""At the latency `perfect` these keep end points in the future apart."""
CASES = [
    *((name, latency, "in blocks") for name in BY_SNAPSHOT for latency in ("perfect", "eager")),
    *((name, "perfect", "only the future") for name in APART),
]


@pytest.mark.parametrize(("name", "latency", "blocked"), CASES)
def test_snapshots_and_levels(name, latency, blocked, folder, monkeypatch):
    for setting, value in {"MUCH_STATE": 0, "PATIENCE": 0, "SMALL_CHUNK": 0}.items():
        monkeypatch.setattr(layout, setting, value)
    monkeypatch.setattr(blocks, "BLOCK", 4)
    monkeypatch.setattr(blocks, "SEGMENT_BITS", 1)
    monkeypatch.setattr(future, "WORTH_IT", 0)
    if blocked == "only the future":
        monkeypatch.setattr(SnapshotOperator, "_to_blocks", lambda self: None)
    make, ports = BY_SNAPSHOT[name]
    choose = random.Random(name)
    whole, operator = make(latency), make(latency)
    checkpoint = Checkpoint(folder, lambda: make(latency))
    in_blocks = apart = 0
    streams = [long_stream(7 + port, 150 // ports, 40, 300) for port in range(ports)]
    for port, chunk in (step for both in zip(*streams, strict=True) for step in enumerate(both)):
        one, two = (some.process(port, chunk).elements() for some in (operator, whole))
        assert sorted(map(str, one)) == sorted(map(str, two))
        if choose.random() < 0.4:
            checkpoint.write(operator)
            if choose.random() < 0.3:
                saved = operator.snapshot()
                operator = checkpoint.restored(choose.random() < 0.8)
                assert same(saved, checkpoint.restored().snapshot())
                in_blocks += operator.local is not None or blocked == "only the future"
                if latency == "perfect" and name in APART:
                    apart += operator.future is not None
    assert in_blocks > 5 or name == "top", "top-k saves its arrays"
    assert (apart > 5) == (latency == "perfect" and name in APART)


LARGE = [
    "join",
    "clip",
    "clip without keys",
    "session",
    "semi, perfect",
    "anti, ordered",
    "anti, with a condition",
    "full",
]


@pytest.mark.parametrize("name", LARGE)
def test_only_changes_are_written_before_and_after_a_restart(name, folder, monkeypatch):
    use_layout(monkeypatch, "blocks")
    monkeypatch.setattr(snapshots, "SMALL_TABLE", 0)
    make, operator = large(name, 800)
    checkpoint = Checkpoint(folder, make)
    rows = new_rows(operator)
    assert rows > 250
    checkpoint.write(operator)
    operator, written = checkpoint.restored(), []
    for batch in range(20):
        for port in range(operator.ports):
            output(operator, (port, [Insert(500 + batch, 505 + batch, Row(k=batch % 6, v=port))]))
        written.append(new_rows(operator))
        checkpoint.write(operator)
        if batch % 5 == 4:
            assert same(checkpoint.restored().snapshot(), operator.snapshot())
            operator = checkpoint.restored()
    assert max(written[1:]) < rows / 8, "the first chunk may forget what was settled"
    assert min(written) > 0


def new_rows(operator) -> int:
    """Rows of blocks that the next snapshot has to write."""
    with incremental():
        operator.snapshot()
    parts = operator.parts if isinstance(operator, OuterJoinOperator) else [operator]
    stores = [store for part in parts for store in (part.sides if isinstance(part, JoinOperator) else [part])]
    tables = [
        item.table
        for store in stores
        for some in stored_blocks(store)
        for item in (*some.increments.pieces, *some.increments.changes)
    ]
    return sum(table.rows for table in tables if table.place is None)


def large_join(rows):
    return large("join", rows)


def large(name, rows):
    make = BY_KEY[name]
    operator, choose = make(), random.Random(1)
    for step in stream(choose, make().ports, size=rows, late=rows)[: -make().ports]:  # without the end
        output(operator, step)
    return make, operator


def test_an_operator_goes_on_with_what_is_stored(folder, monkeypatch):
    """After a restart, too, only changes are written."""
    use_layout(monkeypatch, "blocks")
    make, operator = large_join(400)
    checkpoint = Checkpoint(folder, make)
    checkpoint.write(operator)
    pieces = operator.sides[0].blocks.tuples.blocks.increments.pieces
    assert len(pieces) > 10
    assert all(
        piece.table.place is not None and not piece.table.in_memory for piece in pieces if piece.table.nbytes > 100
    )
    operator = checkpoint.restored()
    found = operator.sides[0].blocks.tuples.blocks.increments.pieces
    assert [p.low for p in found] == [p.low for p in pieces]
    assert [p.table.place for p in found] == [p.table.place for p in pieces]


def test_parts_that_another_process_has_removed_are_written_again(folder, monkeypatch):
    use_layout(monkeypatch, "blocks")
    make, operator = large_join(300)
    checkpoint = Checkpoint(folder, make)
    checkpoint.write(operator)
    folder.remove([name for name in folder.names() if name.startswith("part-")])
    checkpoint.write(operator)
    assert same(checkpoint.read(), operator.snapshot())


def test_another_folder_gets_everything(folder, tmp_path, monkeypatch):
    use_layout(monkeypatch, "blocks")
    make, operator = large_join(300)
    Checkpoint(folder, make).write(operator)
    other = Folder(str(tmp_path / "other"), label="state")
    other.make()
    elsewhere = Checkpoint(other, make)
    elsewhere.write(operator)
    assert same(elsewhere.read(), operator.snapshot())
    assert same(elsewhere.restored().snapshot(), operator.snapshot())
