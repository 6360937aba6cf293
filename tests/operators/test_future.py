"""End points that time has not reached are kept apart: what needs them nevertheless, and when that does not pay."""

import numpy as np
import polars as pl
import pytest
from operators.test_increments import Checkpoint

from cedr.columnar import blocks, index
from cedr.columnar.chunk import assemble, chunk_of
from cedr.operators import future, layout
from cedr.operators.aggregate import AggregateOperator
from cedr.plan import aggregates as agg
from cedr.storage.folder import Folder
from cedr.temporal import Adjust, Cti, Insert, Row
from cedr.temporal.time import INF

SCHEMA = {"k": pl.Int64, "v": pl.Int64}


def sums(latency="perfect", **more):
    return AggregateOperator(SCHEMA, ("k",), {"n": agg.Count(), "s": agg.Sum("v"), **more}, latency)


@pytest.fixture
def at_once(monkeypatch):
    """From the first chunk on."""
    for setting, value in {"MUCH_STATE": 0, "PATIENCE": 0, "SMALL_CHUNK": 0}.items():
        monkeypatch.setattr(layout, setting, value)
    monkeypatch.setattr(blocks, "BLOCK", 4)
    monkeypatch.setattr(blocks, "SEGMENT_BITS", 1)
    monkeypatch.setattr(index, "WORTH_COMPACTING", 1)
    monkeypatch.setattr(future, "WORTH_IT", 0)


@pytest.fixture(params=["arrays", "blocks"])
def rest(request, at_once, monkeypatch):
    """Where the end points are that time has reached."""
    if request.param == "arrays":
        monkeypatch.setattr(AggregateOperator, "_to_blocks", lambda self: None)
    return request.param


def feed(operator, *elements):
    return sorted(map(str, operator.process(0, chunk_of(list(elements), SCHEMA)).elements()))


def one(vs, ve, k=1, v=1):
    return Insert(vs, ve, Row(k=k, v=v))


def test_the_end_of_an_emitted_snapshot_moves_into_the_future(rest):
    #      0    5        12            50        100
    #  A   |------------------------------------------
    #  B        |------------------------|     is taken back, so the snapshot from 0 on ends at 100
    operator = sums()
    feed(operator, one(0, 100), one(5, 50), one(12, 90, k=2))
    feed(operator, Cti(4))
    assert operator.future is not None
    out = feed(operator, Adjust(5, 50, 5, Row(k=1, v=1)), Cti(6))
    assert str(Adjust(0, 5, 100, Row(k=1, n=1, s=1))) in out, out
    # What comes now, before 100, is for the operator itself; it cuts the snapshot that was emitted.
    out = feed(operator, one(60, 70), Cti(7))
    assert str(Adjust(0, 100, 60, Row(k=1, n=1, s=1))) in out, out
    out = feed(operator, Cti(INF))
    assert {str(Insert(60, 70, Row(k=1, n=2, s=2))), str(Insert(70, 100, Row(k=1, n=1, s=1)))} <= {*out}, out


def handed_over(operator, *, others=()):
    #       0    5      50     60     100         200
    #  k=1  |-------------------------|
    #  k=1  |-------------------------------------|      later it ends at 60
    #  k=1       |-------|   is taken back: the first snapshot ends at 100, which was in the future
    feed(operator, *others, one(0, 100), one(0, 200), one(5, 50))
    feed(operator, Cti(4))
    feed(operator, Adjust(5, 50, 5, Row(k=1, v=1)), Cti(6))
    assert operator.future is not None


EARLIER = Adjust(0, 200, 60, Row(k=1, v=1))
CUT = str(Adjust(0, 100, 60, Row(k=1, n=2, s=2)))


def test_what_was_handed_over_is_known_after_a_restart(rest, tmp_path):
    folder = Folder(str(tmp_path / "state"), label="state")
    folder.make()
    operator, checkpoint = sums(), Checkpoint(folder, sums)
    handed_over(operator, others=[one(1, 500, k=3)])
    checkpoint.write(operator)
    restored = checkpoint.restored()
    assert restored.future is not None
    assert CUT in feed(restored, EARLIER, Cti(7)) == feed(operator, EARLIER, Cti(7))


def test_what_was_handed_over_is_known_when_groups_have_new_numbers(rest, monkeypatch):
    operator = sums()
    monkeypatch.setattr(index, "WORTH_COMPACTING", 100)
    handed_over(operator, others=[one(-3, -2, k=k) for k in range(10, 14)])
    monkeypatch.setattr(index, "WORTH_COMPACTING", 1)
    for time in range(7, 40):
        feed(operator, Cti(time))
    assert len(operator.groups) == 1
    assert CUT in feed(operator, EARLIER)


def test_groups_that_only_have_tuples_in_the_future_stay(rest):
    operator = sums()
    operator.waits = True
    feed(operator, *(one(0, 2, k=k) for k in range(10)), one(50, 60, k=77))
    for time in range(40):
        feed(operator, Cti(time))
    assert operator.future is not None
    assert len(operator.groups) <= 2
    assert str(Insert(50, 60, Row(k=77, n=1, s=1))) in feed(operator, Cti(INF))


def test_state_in_the_future_does_not_change_what_is_emitted_when_groups_come_and_go(rest):
    random = np.random.default_rng(5)
    apart, whole = sums(), sums()
    compacted = 0
    for number in range(200):
        n = int(random.integers(1, 6))
        vs = 10 * number + random.integers(0, 30, n)
        rows = pl.DataFrame({"k": number // 4 + random.integers(0, 3, n), "v": random.integers(1, 5, n)})
        chunk = assemble(vs, vs, vs + random.integers(90, 300, n), rows, 10 * number)
        before = len(apart.groups)
        out = apart.process(0, chunk)
        compacted += len(apart.groups) < before
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(layout, "MUCH_STATE", INF)
            assert sorted(map(str, out.elements())) == sorted(map(str, whole.process(0, chunk).elements()))
    assert apart.future is not None
    assert (apart.local is not None) == (rest == "blocks")
    assert compacted > 1
    assert apart.metrics.state_rows <= whole.metrics.state_rows + 20


def extended(many, times):
    """A tuple whose lifetime is extended again and again, among many others. A snapshot of it was emitted, as it once
    seemed to end, so its end has to be known at once."""
    #       0        310                                              20,000   20,001  ..
    #  k=2  |---------------------------------------------------------|- - - - |- - -
    #  k=2           |---------- taken back
    #  k=1  |||||||||--------------------------------------------||||||
    yield [one(0, 20_000, k=2), *(one(t, 10_000 + t) for t in range(1, many)), Cti(1)]
    yield [one(310, 400, k=2), Cti(309)]
    yield [Adjust(310, 400, 310, Row(k=2, v=1)), Cti(310)]
    for end in range(20_000, 20_000 + times):
        yield [Adjust(0, end, end + 1, Row(k=2, v=1)), Cti(311)]


def test_searching_the_same_rows_again_and_again_does_not_pay(at_once, monkeypatch):
    monkeypatch.setattr(future, "PATIENCE", 5)
    apart, whole = sums(), sums()
    kept_apart = []
    for elements in extended(300, 12):
        out = feed(apart, *elements)
        kept_apart.append(apart.future is not None)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(layout, "MUCH_STATE", INF)
            assert out == feed(whole, *elements)
    assert kept_apart[2:6] == [True] * 4
    assert not kept_apart[-1]
    assert not apart.future_pays


@pytest.mark.parametrize(
    "make",
    [
        lambda: sums("eager"),
        lambda: sums("ordered"),
        lambda: sums(most=agg.Max("v")),
    ],
    ids=["eager", "ordered", "maximum"],
)
def test_what_reads_the_future_does_not_keep_it_apart(make, at_once):
    operator = make()
    for number in range(10):
        feed(operator, one(number, number + 100), Cti(number))
    assert operator.future is None


def test_a_snapshot_of_an_earlier_version_is_read(rest):
    operator = sums()
    feed(operator, one(0, 100), one(5, 50), Cti(4))
    state = operator.snapshot()
    assert not len(state["later"][0]), "a snapshot that is not an increment has all end points together"
    earlier = {name: value for name, value in state.items() if name != "later"}
    earlier["format"] = operator._earlier_format
    other = sums()
    other.restore(earlier)
    assert feed(other, Cti(INF)) == feed(operator, Cti(INF))
