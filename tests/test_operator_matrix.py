"""Every operator of the API, at every latency and every level, gives the oracle's answer.

The queries come from `plan.catalogue`; what it leaves out of the API is added here, and a test sees to it that nothing
is left out. Each cell of the matrix runs a query over random closed streams in slices of one, of all and in between,
saved, written, read and restored at random points: the answer is right *to* each output CTI and right in the end.

At weak consistency elements are given up on. Then what is answered is the oracle's answer to the others.
"""

import inspect
import re
from collections import Counter

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_check import check_against_oracle, runs
from plan.catalogue import MERGES, QUERIES, SCHEMA, STATEFUL, AsOperator, Query, a, b, pair, payloads, same_m

import cedr
from cedr import automata, testing
from cedr import reference as ref
from cedr.columnar.chunk import chunk_of
from cedr.plan import aggregates
from cedr.reference import automata as ra
from cedr.runtime.engine import Engine
from cedr.stream import GroupedStream, Stream
from cedr.temporal import END, INF, MIDDLE, STRONG, WEAK, Adjust, Consistency, Event, History, Insert, Row, canonical
from cedr.temporal.stream import data as data_of

share = settings(max_examples=max(settings.default.max_examples // 10, 1))
"""There are hundreds of cells; each gets a tenth of what a law gets."""

LEVELS = {"strong": STRONG, "middle": MIDDLE, "block 3": Consistency(block=3, remember=INF)}


def all_values(frame: pl.DataFrame) -> str:
    return "".join(sorted("-" if v is None else str(v) for v in frame["v"]))


def next_of_v(loop: History, other: History) -> History:
    return ref.inner_join(loop, other, lambda p, q: p.v == q.m, lambda p, q: Row(m=p.m, v=q.v))


ONES = [(0, 1, 1), (1, 1, 1), (1, 0, 0)]

MORE = {
    "more aggregates": Query(
        lambda a: a.group_by("m").agg(
            avg=cedr.avg("v"),
            dev=cedr.stddev("v"),
            first=cedr.first("v"),
            last=cedr.last("v"),
            q=cedr.quantile("v", 0.25),
        ),
        lambda h: ref.aggregate(
            h,
            by=["m"],
            avg=ref.avg("v"),
            dev=ref.stddev("v"),
            first=ref.first("v"),
            last=ref.last("v"),
            q=ref.quantile(0.25)("v"),
        ),
    ),
    "user-defined aggregate": Query(
        lambda a: a.agg(text=cedr.aggregate("v", function=all_values, dtype=pl.String)),
        lambda h: ref.aggregate(
            h, text=lambda es: "".join(sorted("-" if e.payload.v is None else str(e.payload.v) for e in es))
        ),
    ),
    "iterate": Query(
        lambda a, b: a.iterate(lambda loop: loop.join(b, left_on="v", right_on="m").select("m", v="v_right")),
        lambda g, h: ref.fixed_point(next_of_v, g, h),
    ),
    "automaton as a loop": Query(
        lambda a: automata.automaton(a, ONES, start=0, symbol="v", by="m", plan="recursive"),
        lambda h: ra.automaton(h, ONES, start=0, symbol="v", by=["m"]),
    ),
    "top_k of all": Query(lambda a: a.top_k(2, by="v"), lambda h: ref.top_k(h, 2, lambda p: p.v)),
}
MATRIX = {**QUERIES, **MERGES, **MORE}


def latencies(query: Query) -> list[str]:
    """Those that make a difference."""
    emits_early = any(
        hasattr(step.node, "latency") and step.name != "Level" for step in query.stream().fragment().steps
    )
    return ["perfect", "ordered", "eager"] if emits_early else ["perfect"]


CELLS = [
    pytest.param(name, latency, level, id=f"{name}-{latency}-{level}")
    for name, query in MATRIX.items()
    for latency in latencies(query)
    for level in LEVELS
]


def rounded(history: History) -> History:
    """Floating point results are compared to 9 digits."""
    return History(
        Event(vs, ve, Row({k: round(v, 9) if isinstance(v, float) else v for k, v in p.items()}))
        for vs, ve, p in history
    )


def compare(actual: History, expected: History) -> None:
    testing.assert_same(rounded(actual), rounded(expected))


@pytest.mark.parametrize(("name", "latency", "level"), CELLS)
@share
@given(data=st.data())
def test_the_answer_is_the_oracles(name, latency, level, data):
    query = MATRIX[name]
    stream = query.stream().with_latency(latency).with_consistency(LEVELS[level])
    options = {"infinite": query.infinite, "adjusts": query.infinite}
    arrivals, restore_at = data.draw(runs(payloads, query.ports, max_size=4, **options))
    make = lambda: AsOperator(stream)  # noqa: E731
    check_against_oracle(make, query.oracle, arrivals, [SCHEMA] * query.ports, restore_at, compare)


RUNNING = {"engine", "run", "updates", "change_level", "start", "batch"}
NO_OPERATORS = {"schema", "columns", "fragment", "explain", "findings", "why", "why_not", *RUNNING}
MADE_OF_OTHERS = {"versions"}
"""What is select, inserts and clip; tests/language/test_bitemporal.py has its own oracle."""
LEVEL_METHODS = {"with_consistency", "with_latency"}


def test_no_operator_of_the_api_is_left_out():
    methods = {name for kind in (Stream, GroupedStream) for name in vars(kind) if not name.startswith("_")}
    used = {name for query in MATRIX.values() for name in query.build.__code__.co_names}
    assert methods - NO_OPERATORS - MADE_OF_OTHERS - LEVEL_METHODS <= used
    functions = {name for name, f in vars(aggregates).items() if inspect.isfunction(f) and name in cedr.__all__}
    assert {"count", "mode"} < functions <= used
    assert {"automaton", "regex"} <= used
    made = {name for name, f in vars(automata).items() if getattr(f, "__module__", "") == automata.__name__}
    assert made - {"step", "as_states", "as_window", "as_step", "planned"} <= used


# --- weak ----------------------------------------------------------------------------------------------------------
#
#   arrives     5    7    6    9         remember=0: after 7, what lies before 7 is given up on
#   kept        5    7         9
#   late                  6


def at_the_sources(query: Query) -> Stream:
    return query.build(*(source().finalize(0) for source in (a, b)[: query.ports]))


def by_level(query: Query) -> Stream:
    return query.stream().with_consistency(WEAK)


def checks_its_sources(stream: Stream) -> bool:
    """Whether the rows that are given up on are those that come in, and not what a step before made of them."""
    steps = stream.fragment().steps
    readers = [step for step in steps if any(isinstance(origin, str) for origin in step.inputs)]
    return all(step.name == "Finalize" for step in readers)


PLAIN = {
    "plain aggregate": Query(
        lambda a: a.group_by("m").agg(s=cedr.sum("v")), lambda h: ref.aggregate(h, by=["m"], s=ref.sum_("v"))
    ),
    "plain distinct": Query(lambda a: a.distinct(), ref.distinct),
    "plain coalesce": Query(lambda a: a.coalesce(), ref.coalesce),
    "plain difference": Query(lambda a, b: a.difference(b), ref.difference),
    "plain join": Query(lambda a, b: a.join(b, on="m"), lambda g, h: ref.join(g, h, same_m, combine=pair)),
    "plain full join": Query(
        lambda a, b: a.join(b, on="m", how="full"), lambda g, h: ref.join(g, h, same_m, "full", pair)
    ),
    "plain session": Query(lambda a: a.session(4, by="m"), lambda h: ref.session(h, 4, lambda p: p.m)),
}
"""Operators right above their sources, with all columns in use: there the planner puts Finalize on the source."""

WAYS = (at_the_sources, by_level)
WEAKLY = [
    pytest.param(way, query, id=f"{way.__name__}-{name}")
    for way in WAYS
    for name, query in {**MATRIX, **PLAIN}.items()
    if checks_its_sources(way(query))
]


def run_weakly(engine: Engine, arrivals) -> tuple[list, list[list], list[list]]:
    """What is put out, and of each port the elements that were kept and those that were late."""
    out, late = [], [set(), set()]
    inputs = [[], []]
    for port, elements in arrivals:
        chunk = chunk_of(elements, SCHEMA)
        out += engine.push("ab"[port], chunk).elements()
        inputs[port] += chunk.elements()  # with one CTI, as Finalize counts them
        found = engine.take_late()
        late[port] |= {int(re.match(r"element (\d+)", text)[1]) for text in found["message"]} if len(found) else set()
    kept = [data_of(e for i, e in enumerate(inputs[p]) if i not in late[p]) for p in (0, 1)]
    return out, kept, [[inputs[p][i] for i in sorted(late[p])] for p in (0, 1)]


def net(elements) -> History:
    """The canonical history, where adjusts whose tuple was given up on only count if they cancel out."""
    tuples = Counter()
    for e in elements:
        match e:
            case Insert(vs, ve, p):
                tuples[vs, ve, p] += 1
            case _:
                tuples[e.vs, e.ve, e.payload] -= 1
                tuples[e.vs, e.ve_new, e.payload] += 1
    assert all(n >= 0 for n in tuples.values())
    return History((vs, ve, p) for (vs, ve, p), n in tuples.items() if ve > vs for _ in range(n))


def test_the_weak_matrix_has_all_operators_with_state():
    names = {param.id for param in WEAKLY}
    assert names >= {f"at_the_sources-{name}" for name in {**STATEFUL, **MORE, **PLAIN}}
    assert names >= {f"by_level-{name}" for name in PLAIN}


@pytest.mark.parametrize(("way", "query"), WEAKLY)
@share
@given(data=st.data())
def test_a_weak_answer_is_the_oracles_for_what_was_not_late(way, query, data):
    options = {"infinite": query.infinite, "adjusts": query.infinite}
    arrivals, _ = data.draw(runs(payloads, query.ports, max_size=4, **options))
    out, kept, _ = run_weakly(way(query).engine(), arrivals)
    compare(canonical(out), query.oracle(*(net(k) for k in kept[: query.ports])))


@given(run=runs(payloads, max_size=8, adjusts=False))
def test_weak_loses_nothing_what_comes_out_and_what_is_late_is_what_came_in(run):
    arrivals, _ = run
    engine = a().distinct().with_consistency(WEAK).engine()
    came = [e for _, elements in arrivals for e in data_of(elements)]
    _, (kept, _), (late, _) = run_weakly(engine, arrivals)
    finalize = next(row for row in engine.metrics().iter_rows(named=True) if row["operator"] == "Finalize")
    assert Counter(kept) + Counter(late) == Counter(came)
    assert finalize["rows_in"] == len(came)
    assert finalize["rows_out"] == len(kept)
    assert finalize["late"] == len(late)


@given(run=runs(payloads, max_size=6))
def test_what_is_late_is_counted(run):
    arrivals, _ = run
    engine = a().distinct().with_consistency(WEAK).engine()
    _, _, (late, _) = run_weakly(engine, arrivals)
    assert engine.metrics()["late"].sum() == len(late)


def test_late_rows_can_be_taken_whatever_pieces_they_came_in():
    """Two adjusts that are late for different reasons, one of them from a chunk that another row left."""
    late, held = Row(m=0, v=2), Row(m=0, v=3)
    engine = a().where(pl.col("v") > 1).agg(n=cedr.count()).with_consistency(WEAK).engine()
    engine.push("a", chunk_of([Insert(13, 32, Row(m=1, v=3))], SCHEMA))
    engine.push("a", chunk_of([Adjust(5, 21, INF, held), Adjust(2, 8, INF, late), END], SCHEMA))
    assert engine.take_late()["reason"].to_list() == ["forgotten", "unknown_tuple"]
