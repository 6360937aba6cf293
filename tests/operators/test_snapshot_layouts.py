"""State in blocks: the same answers as the oracle, and chunk by chunk the same as with state in sorted arrays."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_check import check_against_oracle, run, runs

from cedr import reference as ref
from cedr.columnar.chunk import assemble
from cedr.operators import layout as layouts
from cedr.operators import levels
from cedr.operators.aggregate import AggregateOperator
from cedr.plan import aggregates as agg
from cedr.temporal.time import INF
from cedr.testing import rows

SCHEMA = {"m": pl.Int64, "v": pl.Int64, "x": pl.Float64}
LATENCIES = ["perfect", "ordered", "eager"]
payloads = rows(
    m=st.integers(0, 2),
    v=st.one_of(st.none(), st.integers(-3, 3)),
    x=st.one_of(st.none(), st.sampled_from([0.5, -1e300, 2.0, float("inf")])),
)
SUMS = {
    "n": (agg.Count(), ref.count()),
    "known": (agg.Count("v"), ref.count("v")),
    "sum": (agg.Sum("v"), ref.sum_("v")),
    "avg": (agg.Avg("v"), ref.avg("v")),
    "floats": (agg.Sum("x"), ref.sum_("x")),
}
LEVELS = {
    "DistinctOperator": ref.distinct,
    "CoalesceOperator": ref.coalesce,
    "DifferenceOperator": ref.difference,
    "IntersectOperator": ref.intersect,
}


def aggregate(by, latency):
    return AggregateOperator(SCHEMA, by, {name: fast for name, (fast, _) in SUMS.items()}, latency)


def level_operator(name, latency):
    return getattr(levels, name)(SCHEMA, latency)


@pytest.mark.usefixtures("layout_of_sums")
@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("by", [(), ("m",)])
@given(run=runs(payloads, max_size=12))
def test_sums(by, latency, run):
    slow = {name: a for name, (_, a) in SUMS.items()}
    check_against_oracle(
        lambda: aggregate(by, latency), lambda h: ref.aggregate(h, by, **slow), run[0], [SCHEMA], run[1]
    )


few = rows(m=st.integers(0, 1), v=st.just(1), x=st.just(0.5))


@pytest.mark.usefixtures("snapshot_layout")
@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("name", LEVELS)
@given(data=st.data())
def test_levels(name, latency, data):
    ports = getattr(levels, name).ports
    arrivals, restore_at = data.draw(runs(few, ports=ports, max_size=10 // ports))
    make = lambda: level_operator(name, latency)  # noqa: E731
    check_against_oracle(make, LEVELS[name], arrivals, [SCHEMA] * ports, restore_at)


OPERATORS = {
    "count": (lambda latency: aggregate((), latency), 1),
    "sums by key": (lambda latency: aggregate(("m",), latency), 1),
    **{
        name: (lambda latency, name=name: level_operator(name, latency), getattr(levels, name).ports) for name in LEVELS
    },
}


@pytest.mark.usefixtures("layout_of_sums")
@pytest.mark.parametrize("latency", ["perfect", "eager"])
@pytest.mark.parametrize("name", OPERATORS)
@given(data=st.data())
def test_each_chunk_is_the_same_as_from_arrays(name, latency, data):
    make, ports = OPERATORS[name]
    arrivals, restore_at = data.draw(runs(payloads if ports == 1 else few, ports=ports, max_size=15 // ports))
    found = run(lambda: make(latency), arrivals, [SCHEMA] * ports, restore_at)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layouts, "MUCH_STATE", INF)
        expected = run(lambda: make(latency), arrivals, [SCHEMA] * ports)
    assert [sorted(map(str, out)) for out in found] == [sorted(map(str, out)) for out in expected]


def long_stream(seed, chunks, keys, window):
    """Chunks of 1 to 40 rows, disordered, some of them corrected later; CTIs 50 behind."""
    random = np.random.default_rng(seed)
    now, live = 0, []
    for _ in range(chunks):
        n = int(random.integers(1, 6 if random.random() < 0.9 else 40))
        vs = now + np.sort(random.integers(0, 20, n)) - random.integers(0, 40, n) * (random.random(n) < 0.3)
        ve = vs + random.integers(1, window, n)
        now += 10
        new = [
            (int(a), int(a), int(b), int(k), int(v))
            for a, b, k, v in zip(vs, ve, random.integers(0, keys, n), random.integers(-9, 9, n), strict=True)
        ]
        wrong = [live.pop(int(random.integers(len(live)))) for _ in range(min(len(live), int(random.integers(3))))]
        wrong = [(a, b, k, v) for a, b, k, v in wrong if b > now - 40]
        ends = [max(a, now - 40 + int(random.integers(window))) for a, *_ in wrong]
        changed = [
            (a, b, c, k, v) for (a, b, k, v), c in zip(wrong, ends, strict=True) if b != c and min(b, c) >= now - 50
        ]
        live += [(a, c, k, v) for a, _, c, k, v in (*new, *changed) if c > a]
        table = np.array([*new, *changed], dtype=np.int64)
        payload = pl.DataFrame({"m": table[:, 3], "v": table[:, 4], "x": table[:, 4] / 4})
        yield assemble(table[:, 0], table[:, 1], table[:, 2], payload, now - 50)


@pytest.mark.parametrize("latency", ["perfect", "eager"])
@pytest.mark.parametrize("name", ["count", "sums by key", "DistinctOperator", "CoalesceOperator"])
@pytest.mark.parametrize(("keys", "window"), [(1, 60), (5, 300), (200, 300)])
def test_a_long_stream_gives_the_same_chunks(layout_of_sums, name, latency, keys, window):
    make, _ = OPERATORS[name]
    local, flat = make(latency), make(latency)
    seen = set()
    for number, chunk in enumerate(long_stream(keys + window, 150, keys, window)):
        one = local.process(0, chunk)
        seen |= {part for part in ("local", "future") if getattr(local, part, None) is not None}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(layouts, "MUCH_STATE", INF)
            two = flat.process(0, chunk)
        assert sorted(map(str, one.elements())) == sorted(map(str, two.elements()))
        if number % 50 == 49:
            state = local.snapshot()
            local = make(latency)
            local.restore(state)
    assert flat.local is None
    assert seen or (layout_of_sums == "future" and (latency == "eager" or name not in ("count", "sums by key")))
    assert local.metrics.state_rows < 3 * flat.metrics.state_rows + 100
