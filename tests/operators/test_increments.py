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
from cedr.operators import layout
from cedr.operators.aggregate import AggregateOperator
from cedr.operators.top_k import TopKOperator
from cedr.plan import aggregates as agg
from cedr.storage import snapshots
from cedr.storage.folder import Folder
from cedr.storage.snapshots import Snapshots

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
        self.here.write(self.batch, increment(), lambda: increment(afresh=True))
        self.here.forget_before(self.batch - 1)

    def read(self):
        self.here = Snapshots(self.folder)
        return self.here.read(self.here.manifest(self.batch))

    def restored(self):
        operator = self.make()
        operator.restore(self.read())
        return operator


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
            assert same(checkpoint.read(), operator.snapshot())
            if choose.random() < 0.3:
                operator = checkpoint.restored()
            else:
                checkpoint.here.read(checkpoint.here.manifest(checkpoint.batch))


@pytest.mark.parametrize("latency", ["perfect", "eager"])
@pytest.mark.parametrize("name", BY_SNAPSHOT)
def test_snapshots_and_levels(name, latency, folder, monkeypatch):
    for setting, value in {"MUCH_STATE": 0, "PATIENCE": 0, "SMALL_CHUNK": 0}.items():
        monkeypatch.setattr(layout, setting, value)
    monkeypatch.setattr(blocks, "BLOCK", 4)
    monkeypatch.setattr(blocks, "SEGMENT_BITS", 1)
    make, ports = BY_SNAPSHOT[name]
    choose = random.Random(name)
    whole, operator = make(latency), make(latency)
    checkpoint = Checkpoint(folder, lambda: make(latency))
    in_blocks = 0
    streams = [long_stream(7 + port, 150 // ports, 40, 300) for port in range(ports)]
    for port, chunk in (step for both in zip(*streams, strict=True) for step in enumerate(both)):
        one, two = (some.process(port, chunk).elements() for some in (operator, whole))
        assert sorted(map(str, one)) == sorted(map(str, two))
        if choose.random() < 0.4:
            checkpoint.write(operator)
            if choose.random() < 0.3:
                saved = operator.snapshot()
                operator = checkpoint.restored()
                assert same(saved, checkpoint.read())
                in_blocks += operator.local is not None
    assert in_blocks > 5 or name == "top", "top-k saves its arrays"


def large_join(rows):
    make = BY_KEY["join"]
    operator, choose = make(), random.Random(1)
    for step in stream(choose, 2, size=rows, late=rows)[:-2]:  # without the end
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
