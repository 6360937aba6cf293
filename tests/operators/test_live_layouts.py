"""Live tuples in blocks: the same answers as the oracle, and chunk by chunk the same as with tuples in arrays."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operators.test_increments import Checkpoint
from oracle_check import check_against_oracle, run, runs

from cedr import reference as ref
from cedr.columnar.chunk import assemble
from cedr.operators import layout as layouts
from cedr.operators.aggregate import AggregateOperator
from cedr.operators.top_k import TopKOperator
from cedr.plan import aggregates as agg
from cedr.storage.folder import Folder
from cedr.temporal.time import INF
from cedr.testing import rows

SCHEMA = {"m": pl.Int64, "v": pl.Int64, "s": pl.String}
LATENCIES = ["perfect", "ordered", "eager"]
payloads = rows(
    m=st.integers(0, 2), v=st.one_of(st.none(), st.integers(-3, 3)), s=st.one_of(st.none(), st.sampled_from("abc"))
)


def texts(rows: pl.DataFrame) -> str:
    return "".join(s or "-" for s in rows["s"])


LIVE = {
    "least": (agg.Min("v"), ref.min_("v")),
    "most": (agg.Max("v"), ref.max_("v")),
    "first": (agg.First("v"), ref.first("v")),
    "last": (agg.Last("v"), ref.last("v")),
    "median": (agg.Quantile("v", 0.5), ref.quantile(0.5)("v")),
    "different": (agg.CountDistinct("v"), ref.count_distinct("v")),
    "mode": (agg.Mode("v"), ref.mode("v")),
    "most_text": (agg.Max("s"), ref.max_("s")),
    "last_text": (agg.Last("s"), ref.last("s")),
    "sum": (agg.Sum("v"), ref.sum_("v")),
}
TEXTS = agg.UserDefined(names=("s",), function=texts, result=pl.String())
FAST, SLOW = ({name: pair[side] for name, pair in LIVE.items()} for side in (0, 1))
EXTREMES = {"least": agg.Min("v"), "most": agg.Max("v"), "n": agg.Count()}
EXTREMES_SLOW = {"least": ref.min_("v"), "most": ref.max_("v"), "n": ref.count()}


def live(by, latency):
    return AggregateOperator(SCHEMA, by, FAST, latency)


@pytest.mark.usefixtures("snapshot_layout")
@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("by", [(), ("m",)])
@given(run=runs(payloads, max_size=12))
def test_live_aggregates(by, latency, run):
    check_against_oracle(lambda: live(by, latency), lambda h: ref.aggregate(h, by, **SLOW), run[0], [SCHEMA], run[1])


@pytest.mark.usefixtures("snapshot_layout")
@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("by", [(), ("m",)])
@given(run=runs(payloads, max_size=12, adjusts=False))
def test_extremes_of_what_is_never_retracted(by, latency, run):
    make = lambda: AggregateOperator(SCHEMA, by, EXTREMES, latency, insert_only=True)  # noqa: E731
    check_against_oracle(make, lambda h: ref.aggregate(h, by, **EXTREMES_SLOW), run[0], [SCHEMA], run[1])


def top(k, by, latency, rank=None):
    return TopKOperator(SCHEMA, k, ["v"], [True], by, rank, latency)


@pytest.mark.usefixtures("snapshot_layout")
@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize(("by", "rank"), [((), "place"), (("m",), None)])
@given(run=runs(payloads, max_size=10), k=st.integers(1, 3))
def test_top_k(by, rank, latency, run, k):
    group = (lambda p: p.m) if by else (lambda p: None)
    check_against_oracle(
        lambda: top(k, by, latency, rank),
        lambda h: ref.top_k(h, k, ["v"], group, True, rank),
        run[0],
        [SCHEMA],
        run[1],
    )


MAKERS = {
    "top 2": lambda latency: top(2, (), latency),
    "top 3 by key": lambda latency: top(3, ("m",), latency, "place"),
    "all": lambda latency: live((), latency),
    "all by key": lambda latency: live(("m",), latency),
    "of the user": lambda latency: AggregateOperator(SCHEMA, ("m",), {"t": TEXTS}, latency),
}


@pytest.mark.usefixtures("snapshot_layout")
@pytest.mark.parametrize("latency", ["perfect", "eager"])
@pytest.mark.parametrize("name", MAKERS)
@given(data=st.data())
def test_each_chunk_is_the_same_as_from_arrays(name, latency, data):
    make = MAKERS[name]
    arrivals, restore_at = data.draw(runs(payloads, max_size=15))
    found = run(lambda: make(latency), arrivals, [SCHEMA], restore_at)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layouts, "MUCH_STATE", INF)
        expected = run(lambda: make(latency), arrivals, [SCHEMA])
    assert [sorted(map(str, out)) for out in found] == [sorted(map(str, out)) for out in expected]


def long_stream(seed, chunks, keys, window, retracts):
    """Chunks of 1 to 30 rows, disordered, some with the same lifetimes, some retracted and replaced later."""
    random = np.random.default_rng(seed)
    now, held = 0, []
    for _ in range(chunks):
        n = int(random.integers(1, 4 if random.random() < 0.9 else 30))
        vs = now + random.integers(0, 20, n) // 5 * 5 - random.integers(0, 8, n) * 5 * (random.random(n) < 0.3)
        ve = vs + np.where(random.random(n) < 0.5, window, random.integers(1, window, n))
        now += 10
        table = np.column_stack((vs, vs, ve, random.integers(0, keys, n), random.integers(-9, 9, n)))
        changes = []
        for _ in range(int(random.integers(3)) if retracts and held else 0):
            a, _, b, k, v = held.pop(int(random.integers(len(held))))
            if a >= now - 45:  # the same lifetime with another value
                changes += [(a, b, a, k, v), (a, a, b, k, v + 1)]
            held = held or [(0, 0, 0, 0, 0)]
        held += [tuple(map(int, row)) for row in table]
        table = np.array([*table.tolist(), *changes], dtype=np.int64)
        text = pl.Series("s", ["a", "b", "c", None]).gather(table[:, 4] % 4)
        payload = pl.DataFrame([pl.Series("m", table[:, 3]), pl.Series("v", table[:, 4]), text])
        yield assemble(table[:, 0], table[:, 1], table[:, 2], payload, now - 50)


@pytest.mark.usefixtures("snapshot_layout")
@pytest.mark.parametrize("latency", ["perfect", "eager"])
@pytest.mark.parametrize("rank", [None, "place"])
def test_a_long_stream_gives_the_same_rows_of_top_k(rank, latency):
    local, flat, seen = top(3, ("m",), latency, rank), top(3, ("m",), latency, rank), set()
    for number, chunk in enumerate(long_stream(3, 100, 4, 100, True)):
        one = local.process(0, chunk)
        seen.add(local.live.blocks is not None)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(layouts, "MUCH_STATE", INF)
            two = flat.process(0, chunk)
        assert sorted(map(str, one.elements())) == sorted(map(str, two.elements()))
        if number % 40 == 39:
            state = local.snapshot()
            local = top(3, ("m",), latency, rank)
            local.restore(state)
    assert True in seen
    assert flat.live.blocks is None


@pytest.mark.usefixtures("snapshot_layout")
@pytest.mark.parametrize("latency", ["perfect", "eager"])
@pytest.mark.parametrize("retracts", [True, False])
@pytest.mark.parametrize(("keys", "window"), [(1, 60), (5, 300), (100, 300)])
def test_a_long_stream_gives_the_same_chunks(keys, window, retracts, latency):
    def make():
        aggregates = FAST if retracts else EXTREMES
        return AggregateOperator(SCHEMA, ("m",), aggregates, latency, insert_only=not retracts)

    local, flat, seen = make(), make(), set()
    for number, chunk in enumerate(long_stream(keys + window, 120, keys, window, retracts)):
        one = local.process(0, chunk)
        stores = [*local.live.values(), *local.extremes.values()]
        seen.add(all(store.blocks is not None for store in stores))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(layouts, "MUCH_STATE", INF)
            two = flat.process(0, chunk)
        assert sorted(map(str, one.elements())) == sorted(map(str, two.elements()))
        if number % 50 == 49:
            state = local.snapshot()
            local = make()
            local.restore(state)
    assert True in seen
    of_flat = [*flat.live.values(), *flat.extremes.values()]
    assert not any(store.blocks is not None for store in of_flat)
    held = [store.blocks.flat() if store.blocks is not None else store.tuples for store in stores]
    assert max(tuples.rows for tuples in held) < 3 * max(store.tuples.rows for store in of_flat) + 100
    for tuples in held[len(local.live) :]:
        lifetimes = list(zip(tuples.key.tolist(), tuples.vs.tolist(), tuples.ve.tolist(), strict=True))
        assert len(lifetimes) == len(set(lifetimes)), "only the best value of a lifetime is kept"


@pytest.mark.parametrize("latency", ["perfect", "eager"])
@pytest.mark.parametrize("name", ["all by key", "top 3 by key"])
def test_operators_go_on_from_what_increments_have_written(name, latency, tmp_path, monkeypatch):
    for setting in ("MUCH_STATE", "PATIENCE", "SMALL_CHUNK"):
        monkeypatch.setattr(layouts, setting, 0)
    folder = Folder(str(tmp_path / "state"), label="state")
    folder.make()
    make = lambda: MAKERS[name](latency)  # noqa: E731
    checkpoint, whole, operator = Checkpoint(folder, make), make(), make()
    in_blocks = 0
    for number, chunk in enumerate(long_stream(5, 60, 6, 200, True)):
        one, two = (some.process(0, chunk).elements() for some in (operator, whole))
        assert sorted(map(str, one)) == sorted(map(str, two))
        in_blocks += operator.local is not None
        if number % 6 == 5:
            checkpoint.write(operator)
            operator = checkpoint.restored()
    assert in_blocks > 20
