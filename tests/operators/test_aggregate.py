"""Aggregates against the oracle: every latency, any equivalent stream, any slicing, restored in the middle."""

import math
from collections import Counter

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from oracle_check import check_against_oracle, run, runs

from cedr import reference as ref
from cedr.kernels import tuples
from cedr.operators.aggregate import AggregateOperator
from cedr.plan import aggregates as agg
from cedr.temporal import END, INF, Adjust, Cti, Insert, Row, ordered, perfect, retract
from cedr.temporal.stream import data
from cedr.testing import rows, streams

SCHEMA = {"m": pl.Int64, "v": pl.Int64, "x": pl.Float64, "s": pl.String}
LATENCIES = ["perfect", "ordered", "eager"]
payloads = rows(
    m=st.integers(0, 1),
    v=st.one_of(st.none(), st.integers(-3, 3)),
    x=st.one_of(st.none(), st.sampled_from([0.5, -1.25, 2.0])),
    s=st.one_of(st.none(), st.sampled_from("abc")),
)


def sorted_values(rows: pl.DataFrame) -> str:
    return "".join(sorted(s or "-" for s in rows["s"]))


AGGREGATES = {
    "count": (agg.Count(), ref.count()),
    "count_v": (agg.Count("v"), ref.count("v")),
    "sum_v": (agg.Sum("v"), ref.sum_("v")),
    "sum_x": (agg.Sum("x"), ref.sum_("x")),
    "avg_v": (agg.Avg("v"), ref.avg("v")),
    "avg_x": (agg.Avg("x"), ref.avg("x")),
    "stddev_v": (agg.Stddev("v"), ref.stddev("v")),
    "stddev_x": (agg.Stddev("x"), ref.stddev("x")),
    "min_v": (agg.Min("v"), ref.min_("v")),
    "max_x": (agg.Max("x"), ref.max_("x")),
    "max_s": (agg.Max("s"), ref.max_("s")),
    "first_s": (agg.First("s"), ref.first("s")),
    "last_v": (agg.Last("v"), ref.last("v")),
    "median_v": (agg.Quantile("v", 0.5), ref.quantile(0.5)("v")),
    "different_v": (agg.CountDistinct("v"), ref.count_distinct("v")),
    "mode_v": (agg.Mode("v"), ref.mode("v")),
    "text": (
        agg.UserDefined(names=("s",), function=sorted_values, result=pl.String()),
        lambda events: "".join(sorted(e.payload.s or "-" for e in events)),
    ),
}


@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("by", [(), ("m",)])
@pytest.mark.parametrize("name", AGGREGATES)
@given(run=runs(payloads))
def test_each_aggregate(name, by, latency, run):
    fast, slow = AGGREGATES[name]
    check_against_oracle(
        lambda: AggregateOperator(SCHEMA, by, {"r": fast}, latency),
        lambda h: ref.aggregate(h, by, r=slow),
        run[0],
        [SCHEMA],
        run[1],
    )


@pytest.mark.parametrize("latency", LATENCIES)
@given(run=runs(payloads, max_size=10))
def test_all_together(latency, run):
    check_against_oracle(
        lambda: AggregateOperator(SCHEMA, ["m", "s"], {name: a for name, (a, _) in AGGREGATES.items()}, latency),
        lambda h: ref.aggregate(h, ["m", "s"], **{name: a for name, (_, a) in AGGREGATES.items()}),
        run[0],
        [SCHEMA],
        run[1],
    )


@pytest.mark.parametrize("latency", LATENCIES)
@given(run=runs(payloads, max_size=12, adjusts=False))
def test_without_adjusts_extremes_remember_only_the_best(latency, run):
    extremes = {"lo": agg.Min("v"), "hi": agg.Max("x"), "text": agg.Max("s"), "n": agg.Count(), "t": agg.Sum("x")}
    meaning = {"lo": ref.min_("v"), "hi": ref.max_("x"), "text": ref.max_("s"), "n": ref.count(), "t": ref.sum_("x")}
    check_against_oracle(
        lambda: AggregateOperator(SCHEMA, ["m"], extremes, latency, insert_only=True),
        lambda h: ref.aggregate(h, ["m"], **meaning),
        run[0],
        [SCHEMA],
        run[1],
    )


def elements(latency, stream, slice_size):
    slices = [(0, stream[i : i + slice_size]) for i in range(0, len(stream), slice_size)]
    out = run(lambda: AggregateOperator(SCHEMA, ["m"], {"n": agg.Count()}, latency), slices, [SCHEMA])
    return [e for produced in out for e in produced]


@pytest.mark.parametrize("size", [1, 3, 100])
@given(stream=streams(payloads, ordered=True, adjusts=False, closed=True))
def test_perfect_latency_turns_perfect_input_into_perfect_output(size, stream):
    out = elements("perfect", stream, size)
    assert perfect(data(out))


@pytest.mark.parametrize("size", [1, 3, 100])
@given(stream=streams(payloads, ordered=True, closed=True))
def test_ordered_latency_turns_ordered_input_into_ordered_output(size, stream):
    out = elements("ordered", stream, size)
    assert ordered(data(out))


def test_an_end_past_the_watermark_is_replaced_not_grown():
    """In one chunk [1,2) is removed and [1,∞) comes: the same count from the same start, but 2 is still ahead."""
    p = Row(m=0, v=None, x=None, s=None)
    stream = [Insert(1, 2, p), Cti(1), Insert(1, INF, p), retract(1, 2, p), retract(1, INF, p), END]
    slices = [(0, stream[:1]), (0, stream[1:4]), (0, stream[4:])]
    out = run(lambda: AggregateOperator(SCHEMA, ["m"], {"n": agg.Count()}, "ordered"), slices, [SCHEMA])
    assert ordered([e for part in out for e in data(part)])


# perfect          |#|         | adjusted: retracted, and emitted again at the end: four elements
# ordered          |#|-------> | adjusted in place: three
ADJUSTED_IN_PLACE = [
    Insert(1, 2, Row(m=1, v=None, x=None, s=None)),
    Insert(3, INF, Row(m=0, v=None, x=None, s=None)),
    Adjust(1, 2, INF, Row(m=1, v=None, x=None, s=None)),
    END,
]


@given(stream=streams(payloads, closed=True))
@example(stream=ADJUSTED_IN_PLACE)
def test_lower_latency_never_emits_less(stream):
    """Theorems 8 and 9, slice by slice: what perfect has emitted and not taken back, ordered has, and eager has.

    It is about results, not about the number of elements. The paper's ordered operators emit no end before it is past;
    ours emit the end known so far, and one adjust then does what an operator of perfect latency needs two elements for.
    """
    slices = [(0, [e]) for e in stream]
    out = {
        latency: run(
            lambda latency=latency: AggregateOperator(SCHEMA, ["m"], {"n": agg.Count()}, latency), slices, [SCHEMA]
        )
        for latency in LATENCIES
    }
    for n in range(1, len(slices) + 1):
        emitted = [results(out[latency][:n]) for latency in LATENCIES]
        assert emitted[0] <= emitted[1] <= emitted[2]


def results(out):
    """What is emitted and not taken back, as a bag."""
    found = Counter()
    for e in (e for part in out for e in data(part)):
        if isinstance(e, Adjust):
            found[(e.vs, e.ve, e.payload)] -= 1
        end = e.ve_new if isinstance(e, Adjust) else e.ve
        if end > e.vs:
            found[(e.vs, end, e.payload)] += 1
    return +found


def test_infinities_and_nan_leave_no_trace_when_taken_back():
    for bad in (math.nan, math.inf, -math.inf):
        good, wrong = Row(m=0, v=1, x=0.1, s=None), Row(m=0, v=1, x=bad, s=None)
        stream = [Insert(0, 9, good), Insert(0, 9, wrong), retract(0, 9, wrong), END]
        (out,) = run(
            lambda: AggregateOperator(SCHEMA, [], {"r": agg.Sum("x"), "d": agg.Stddev("x")}), [(0, stream)], [SCHEMA]
        )
        assert [e.payload for e in out[:-1]] == [Row(r=0.1, d=None)]


def test_state_is_bounded_by_what_is_live():
    operator = AggregateOperator(SCHEMA, ["m"], {"n": agg.Count(), "top": agg.Max("s")}, "ordered")
    from cedr.columnar.chunk import chunk_of

    for t in range(0, 20000, 100):
        events = [Insert(t + i, t + i + 50, Row(m=t + i, v=i, x=None, s=str(t))) for i in range(100)]
        operator.process(0, chunk_of([*events, Cti(t)], SCHEMA))
    assert operator.metrics.state_rows < 1000
    assert len(operator.groups) < 6000


def test_every_kernel_that_a_description_names_exists():
    named = {a.kernel for a in agg.ColumnAggregate.__subclasses__() if a.kernel}
    assert {"distinct_counts", "most_frequent"} <= named
    assert all(callable(getattr(tuples, kernel)) for kernel in named)
