"""Sums that are right: any number, any arrival, any slicing, and nothing left of what has gone.

The oracle computes with fractions; results are compared bit by bit.
"""

import math
import random
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_check import check_against_oracle, runs

import cedr
from cedr import reference as ref
from cedr.columnar.chunk import chunk_of
from cedr.operators import weights
from cedr.operators.aggregate import AggregateOperator
from cedr.plan import aggregates as agg
from cedr.temporal import END, Adjust, Cti, Insert, QueryError, Row, canonical, retract
from cedr.testing import rows

LARGE = 2**62
TYPES = {
    "i": pl.Int64,
    "u": pl.UInt64,
    "d": pl.Decimal(38, 4),
    "x": pl.Float64,
    "f": pl.Float32,
    "b": pl.Boolean,
    "t": pl.Duration("us"),
}
doubles = st.one_of(
    st.floats(),
    st.sampled_from(
        [0.1, 1e40, -1e40, 1e20, 1.7e308, -1.7e308, 5e-324, -5e-324, 2.0**53, 1.0, -0.0, math.inf, -math.inf, math.nan]
    ),
)
payloads = rows(
    i=st.none() | st.sampled_from([0, 1, -1, 7, 2**33, LARGE // 4, -LARGE // 4, 10**12]) | st.integers(-(2**59), 2**59),
    u=st.none() | st.sampled_from([0, 1, 2**60]) | st.integers(0, 2**59),
    d=st.none() | st.decimals(-(10**33), 10**33, places=4, allow_nan=False, allow_infinity=False),
    x=st.none() | doubles,
    f=st.none() | st.floats(width=32),
    b=st.none() | st.booleans(),
    t=st.none() | st.timedeltas(timedelta(days=-99), timedelta(days=99)),
)
SUMS = {f"{what}_{c}": (make(c), slow(c)) for c in TYPES for what, make, slow in [
    ("sum", agg.Sum, ref.sum_), ("avg", agg.Avg, ref.avg), ("stddev", agg.Stddev, ref.stddev)
] if (what, c) != ("stddev", "t")}  # fmt: skip


def bits(value):
    """Doubles by their bits, with one NaN and one zero."""
    if not isinstance(value, float):
        return value
    return "nan" if math.isnan(value) else (value + 0.0).hex()


def compare(actual, expected) -> None:
    def exactly(history):
        return ref.project(history, lambda p: Row({k: bits(v) for k, v in p.items()}))

    assert exactly(actual) == exactly(expected)


@pytest.mark.parametrize("latency", ["perfect", "eager"])
@given(run=runs(payloads))
@settings(max_examples=60)
def test_sums_of_any_numbers(latency, run):
    check_against_oracle(
        lambda: AggregateOperator(TYPES, [], {name: fast for name, (fast, _) in SUMS.items()}, latency),
        lambda h: ref.aggregate(h, [], **{name: slow for name, (_, slow) in SUMS.items()}),
        run[0],
        [TYPES],
        run[1],
        compare=compare,
    )


@given(run=runs(payloads), parts=st.integers(1, 3))
@settings(max_examples=40)
def test_sums_in_parts_are_rounded_once(run, parts):
    """Partial sums of shards, added up: as if there had been one."""
    whole = {name: agg.Whole(name, fast, fast.input_type(TYPES)) for name, (fast, _) in SUMS.items()}
    partial = {name: agg.Partial(fast.column, fast) for name, (fast, _) in SUMS.items()}
    shards = [AggregateOperator(TYPES, [], partial, "eager") for _ in range(parts)]
    total = AggregateOperator(shards[0].schema, [], whole, "eager")
    sent, out = [], []
    for _, elements in run[0]:
        sent += elements
        for i, shard in enumerate(shards):
            mine = [e for e in elements if not hasattr(e, "payload") or hash(repr(e.payload)) % parts == i]
            data = [e for e in shard.process(0, chunk_of(mine, TYPES)).elements() if hasattr(e, "payload")]
            out += total.process(0, chunk_of(data, shard.schema)).elements()
    compare(canonical(out), ref.aggregate(canonical(sent), [], **{name: slow for name, (_, slow) in SUMS.items()}))


def values_of(query, elements, **how):
    return [(e.vs, e.ve, *e.payload.values()) for e in query.run(elements, **how).history()]


def source(dtype):
    return cedr.source("s", {"v": dtype}, insert_only=False)


def test_nothing_is_left_of_values_that_have_gone():
    """
    0.1    |---------------|
    1e40     |-----|
    1e20       |-----|
           1 2 3 . 5 6 . . 9
    """
    stream = [Insert(1, 9, Row(v=0.1)), Insert(2, 5, Row(v=1e40)), Insert(3, 6, Row(v=1e20)), END]
    assert values_of(source(float).agg(s=cedr.sum("v")), stream)[-1] == (6, 9, 0.1)


def test_sums_do_not_depend_on_arrival():
    values = [0.1, 0.2, 0.3, 1e16, -1e16, 1 / 3, 7e-9]
    stream = [Insert(0, 9, Row(v=v)) for v in values]
    expected = [(0, 9, math.fsum(values), float(sum(map(Fraction, values)) / 7))]
    for seed in range(20):
        random.Random(seed).shuffle(stream)
        query = source(float).agg(s=cedr.sum("v"), a=cedr.avg("v"))
        assert values_of(query, [*stream, END], chunk_size=1 + seed % 4) == expected


def test_decimals_stay_exact():
    query = source(pl.Decimal(10, 2)).agg(s=cedr.sum("v"), a=cedr.avg("v"), m=cedr.max("v"), d=cedr.stddev("v"))
    stream = [Insert(0, 9, Row(v=Decimal(v))) for v in ("1.50", "2.10")]
    ((*_, total, mean, most, deviation),) = values_of(query, [*stream, END])
    assert (total, mean, most) == (Decimal("3.60"), 1.8, Decimal("2.10"))
    assert deviation == math.sqrt(0.18)
    assert query.plan.schema["s"] == pl.Decimal(38, 2)


@pytest.mark.parametrize("start", [10**10, 10**12, 2**62])
@pytest.mark.parametrize("kind", [int, float, pl.Decimal(38, 0)])
def test_stddev_of_large_numbers_that_differ_little(start, kind):
    make = {int: int, float: float}.get(kind, Decimal)
    step = 1024 if kind is float else 1
    stream = [Insert(0, 9, Row(v=make(start + step * k))) for k in range(3)]
    assert values_of(source(kind).agg(d=cedr.stddev("v")), [*stream, END]) == [(0, 9, float(step))]


def test_partial_sums_may_leave_the_range_and_come_back():
    stream = [Insert(0, 9, Row(v=v)) for v in (2**63 - 1, 2**63 - 1, -(2**63), -(2**63) + 5)]
    query = source(int).agg(s=cedr.sum("v"), a=cedr.avg("v"))
    assert values_of(query, [*stream, END]) == [(0, 9, 3, 0.75)]


def test_a_sum_that_does_not_fit_is_an_error():
    stream = [Insert(0, 9, Row(v=2**62)), Insert(4, 9, Row(v=2**62)), END]
    with pytest.raises(QueryError, match=r"s=sum\(v\) is 9223372036854775808 from 4 on, .*cast the column to Decimal"):
        source(int).agg(s=cedr.sum("v")).run(stream)
    assert values_of(source(int).agg(a=cedr.avg("v")), stream) == [(0, 4, 2.0**62), (4, 9, 2.0**62)]
    stream = [Insert(0, 9, Row(v=Decimal(10**38 - 1))), Insert(0, 9, Row(v=Decimal(1))), END]
    with pytest.raises(QueryError, match=f"is {10**38} from 0 on"):
        source(pl.Decimal(38, 0)).agg(s=cedr.sum("v")).run(stream)


def test_unsigned_numbers_above_half_the_range():
    stream = [Insert(0, 9, Row(v=v)) for v in (2**63 + 5, 7, 2**62)]
    query = source(pl.UInt64).agg(
        s=cedr.sum("v"), a=cedr.avg("v"), lo=cedr.min("v"), hi=cedr.max("v"), first=cedr.first("v"), q=cedr.median("v")
    )
    total = 2**63 + 12 + 2**62
    assert values_of(query, [*stream, END]) == [(0, 9, total, total / 3, 7, 2**63 + 5, 7, 2**62)]
    by_key = source(pl.UInt64).group_by("v").agg(n=cedr.count())
    assert sorted(values_of(by_key, [*stream, END])) == [(0, 9, 7, 1), (0, 9, 2**62, 1), (0, 9, 2**63 + 5, 1)]


@pytest.mark.parametrize("kind", [pl.Int128, pl.UInt128])
def test_types_without_sums_are_refused_early(kind):
    with pytest.raises(QueryError, match=r"cast it to Decimal\(38, 0\)"):
        source(kind).agg(s=cedr.sum("v")).plan.schema  # noqa: B018


def test_durations():
    stream = [Insert(0, 9, Row(v=timedelta(seconds=s))) for s in (1, 2, 4)]
    query = source(pl.Duration("us")).agg(s=cedr.sum("v"), a=cedr.avg("v"))
    assert values_of(query, [*stream, END]) == [(0, 9, timedelta(seconds=7), timedelta(seconds=7) / 3)]


@pytest.mark.parametrize(("q", "n", "place"), [(0.07, 100, 7), (0.1, 10, 1), (0.3, 10, 3), (0.55, 100, 55), (1, 3, 3)])
def test_a_quantile_means_what_is_written(q, n, place):
    stream = [Insert(0, 9, Row(v=v)) for v in range(1, n + 1)]
    assert values_of(source(int).agg(q=cedr.quantile("v", q)), [*stream, END]) == [(0, 9, place)]
    assert ref.quantile(q)("v")(list(cedr.canonical(stream))) == place


def first_value(frame):
    return frame["v"][0]


def test_functions_of_the_user_get_rows_in_an_order_that_arrival_and_ends_do_not_change():
    """
    v=10  |-------------------|      the end moves to 3, after all before 2 was settled
    v=20  |-----------|
          1   2   3   .   5   .   9
    """
    rows = [Insert(1, 9, Row(v=10)), Insert(1, 5, Row(v=20)), Cti(2), Adjust(1, 9, 3, Row(v=10)), END]
    query = source(int).agg(f=cedr.aggregate("v", function=first_value, dtype=int)).with_latency("eager")
    assert values_of(query, rows, chunk_size=1) == [(1, 3, 10), (3, 5, 20)]
    assert values_of(query, [rows[1], rows[0], *rows[2:]], chunk_size=1) == [(1, 3, 10), (3, 5, 20)]


@given(run=runs(rows(v=st.none() | st.integers(0, 3), x=st.none() | st.sampled_from([math.nan, 0.5, -1.0]))))
def test_functions_of_the_user(run):
    schema = {"v": pl.Int64, "x": pl.Float64}
    text = agg.UserDefined(names=("x", "v"), function=lambda f: repr(f.rows()), result=pl.String())
    check_against_oracle(
        lambda: AggregateOperator(schema, [], {"r": text}),
        lambda h: ref.aggregate(
            h, [], r=ref.function_of(["x", "v"], lambda found: repr([tuple(row.values()) for row in found]))
        ),
        run[0],
        [schema],
        run[1],
    )


def test_functions_of_the_user_return_what_they_declare():
    stream = [Insert(0, 9, Row(v=2)), Insert(0, 9, Row(v=1)), END]

    def result(function, dtype):
        return values_of(source(int).agg(r=cedr.aggregate("v", function=function, dtype=dtype)), stream)

    assert result(lambda f: f["v"].to_list(), pl.List(pl.Int64)) == [(0, 9, (1, 2))]
    assert result(lambda f: f["v"].to_numpy(), pl.List(pl.Int64)) == [(0, 9, (1, 2))]
    with pytest.raises(QueryError, match=r"declare the type of the list's values, such as dtype=pl.List\(pl.Float64\)"):
        result(lambda f: f["v"].to_list(), list)
    with pytest.raises(QueryError, match=r"first_value\(v\) returned 1 of type int, which is not String; .*dtype"):
        result(first_value, str)


def test_digits_are_carried_before_they_overflow(monkeypatch):
    monkeypatch.setattr(weights, "CARRY_AFTER", 3)
    values = [2**62, 2**61, -5, 3, 2**40, -(2**62), 12, -(2**61)]
    schema = {"v": pl.Int64, "x": pl.Float64}
    stream = [Insert(0, 9, Row(v=v, x=v / 3)) for v in values]
    fast = {"s": agg.Sum("v"), "a": agg.Avg("v"), "x": agg.Sum("x"), "d": agg.Stddev("x")}
    slow = {"s": ref.sum_("v"), "a": ref.avg("v"), "x": ref.sum_("x"), "d": ref.stddev("x")}
    check_against_oracle(
        lambda: AggregateOperator(schema, [], fast),
        lambda h: ref.aggregate(h, [], **slow),
        [(0, [e]) for e in [*stream, retract(0, 9, stream[0].payload), END]],
        [schema],
        compare=compare,
    )


def test_a_hundred_thousand_rows():
    """Late, corrected and of every magnitude, in chunks of any size: as math.fsum has it."""
    rng = np.random.default_rng(5)
    n = 100_000
    x = rng.standard_normal(n) * 10.0 ** rng.integers(-20, 20, n)
    i = rng.integers(-(2**62), 2**62, n)
    k = rng.integers(0, 50, n)
    data = pl.DataFrame({"k": k, "x": x, "i": i, "vs": rng.permutation(n) // 1000})
    query = (
        cedr.source("s", {"k": int, "x": float, "i": int}, vs="vs")
        .tumbling(10).group_by("k").agg(s=cedr.sum("x"), a=cedr.avg("x"), i=cedr.avg("i"), d=cedr.stddev("i"))
    )  # fmt: skip
    expected = {
        (w * 10, key): (math.fsum(xs), nearest(sum(map(Fraction, xs)), len(xs)), sum(xi) / len(xi))
        for (w, key), xs, xi in data.group_by(pl.col("vs") // 10, "k").agg("x", "i").select(
            pl.struct("vs", "k"), "x", "i").map_rows(lambda r: ((r[0]["vs"], r[0]["k"]), r[1], r[2])).rows()
    }  # fmt: skip
    for size in (7_000, n):
        found = query.run(data, chunk_size=size).history()
        assert {(e.vs, e.payload.k): (e.payload.s, e.payload.a, e.payload.i) for e in found} == expected


def nearest(total, n):
    exact = total / n
    return exact.numerator / exact.denominator
