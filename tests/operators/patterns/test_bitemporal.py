"""Patterns over versions against the oracle: at each instant of occurrence time, the pattern over valid time."""

import random
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oracle_check import arrivals_of, check_against_oracle, run
from random_patterns import KINDS, asked, by_kind, composite_id

from cedr import api, testing
from cedr.columnar.chunk import chunk_of
from cedr.physical import operator_of
from cedr.plan.nodes import Match
from cedr.plan.patterns import tree as plan
from cedr.reference import patterns as ref
from cedr.temporal import INF, Adjust, Cti, Event, History, Insert, QueryError, Row, Version, canonical
from cedr.testing import rows

SCHEMA = {"id": pl.Int64, "vs": pl.Int64, "ve": pl.Int64, "kind": pl.String, "m": pl.Int64, "n": pl.Int64}
LATENCIES = st.sampled_from(["perfect", "ordered", "eager"])


def versions(kinds):
    """Few events with few valid lifetimes, so that they are modified and come back."""
    return rows(
        id=st.integers(0, 2),
        vs=st.integers(0, 6),
        ve=st.sampled_from([8, INF]),
        kind=st.sampled_from(kinds),
        m=st.sampled_from([0, 0, 1, None]),
        n=st.sampled_from([1, 0, 1, None]),
    )


def as_version(p: Row) -> Version:
    return Version(p.id, p.vs, p.ve, p.pick("kind", "m", "n"))


def as_row(p: Version) -> Row:
    return Row({"id": p.id, "vs": p.vs, "ve": p.ve, **p.payload})


@st.composite
def over_versions(draw, **options):
    """A random query over versions, with its oracle."""
    query = draw(asked(**options))
    members = tuple(api.source(kind, SCHEMA).plan for kind in KINDS[: query.ports])
    outputs = tuple((name, e) for name, e in query.node.outputs if name != "cbt")
    node = replace(query.node, members=members, outputs=outputs, bitemporal=True)
    shown = replace(query.query, ids=ref.Ids(composite=composite_id), output=without_lineage(query.query.output))

    def oracle(*histories):
        inputs = {
            kind: History(Event(vs, ve, as_version(p)) for vs, ve, p in h) for kind, h in by_kind(*histories).items()
        }
        return History(Event(os, oe, as_row(p)) for os, oe, p in shown.run_bitemporal(inputs))

    return node, oracle


def without_lineage(output):
    return lambda match: Row({name: value for name, value in output(match).items() if name != "cbt"})


@pytest.mark.parametrize(("depth", "modes"), [(1, False), (2, False), (1, True)])
@given(data=st.data(), latency=LATENCIES)
def test_patterns_over_versions(depth, modes, data, latency):
    node, oracle = data.draw(over_versions(depth=depth, modes=modes))
    try:
        node.schema  # noqa: B018 checks the node
    except QueryError as e:
        assert "remove CONSUME" in str(e)  # noqa: PT017 other errors are failures
        return
    kinds = KINDS if len(node.members) > 1 else [KINDS]
    streams = [
        data.draw(testing.streams(versions(k), max_size=8 // len(kinds) + 1, max_time=6, closed=True)) for k in kinds
    ]
    arrivals = data.draw(arrivals_of(streams))
    restore_at = data.draw(st.sets(st.integers(0, max(len(arrivals) - 1, 0)), max_size=2))
    make = lambda: operator_of(replace(node, latency=latency), [])  # noqa: E731
    with believed_if_one_version_at_a_time(streams if modes else []):
        check_against_oracle(make, oracle, arrivals, [SCHEMA] * len(kinds), restore_at)


@contextmanager
def believed_if_one_version_at_a_time(streams):
    """Consumption goes by ids. A provider that has two versions of one event at a time leaves it open which of them is
    consumed, and operator and oracle may choose differently."""
    try:
        yield
    except AssertionError:
        assume(all(one_at_a_time(elements[:n]) for elements in streams for n in range(len(elements) + 1)))
        raise


def one_at_a_time(elements):
    events = sorted(canonical(elements), key=lambda e: (e.payload.kind, e.payload.id, e.vs))
    alike = [(a, b) for a, b in pairwise(events) if (a.payload.kind, a.payload.id) == (b.payload.kind, b.payload.id)]
    return all(a.ve <= b.vs for a, b in alike)


def test_versions_at_a_time():
    a = Row(id=1, vs=1, ve=INF, kind="A", m=0, n=0)
    assert one_at_a_time([Insert(1, 3, a), Insert(3, INF, a.replace(vs=2)), Insert(2, 4, a.replace(id=2))])
    assert not one_at_a_time([Insert(1, 4, a), Insert(3, INF, a.replace(vs=2))])


#   occurrence   1         3
#   A id=1       [1, ∞)
#   B id=2       [4, 9)    [2, 9)        at 3 the provider corrects the start of B from 4 to 2


def node(pattern, **options):
    outputs = (("m", pl.col("a.m")),)
    return Match((api.source("feed", SCHEMA).plan,), pattern, (), outputs, bitemporal=True, **options)


A, B = (plan.EventType(k, 0, pl.col("kind") == k, var=k.lower()) for k in "AB")


def test_a_modification_moves_a_match():
    a = Row(id=1, vs=1, ve=INF, kind="A", m=0, n=0)
    b = Row(id=2, vs=4, ve=9, kind="B", m=0, n=0)
    elements = [Insert(1, INF, a), Insert(1, INF, b), Adjust(1, INF, 3, b), Insert(3, INF, b.replace(vs=2))]
    make = lambda: operator_of(node(plan.Sequence((A, B), 10), latency="eager"), [])  # noqa: E731
    out = run(make, [(0, elements[:2]), (0, elements[2:])], [SCHEMA])
    found = Row(id=composite_id([1, 2]), vs=4, ve=11, m=0)
    assert out[0] == [Insert(1, INF, found)]
    assert sorted(out[1], key=str) == [Adjust(1, INF, 3, found), Insert(3, INF, found.replace(vs=2))]


def test_what_occurred_long_ago_is_forgotten():
    operator = operator_of(node(plan.Sequence((A, B), 10)), [])
    for t in range(0, 20000, 50):
        rows_ = [Row(id=t + i, vs=t, ve=t + 3, kind="AB"[i % 2], m=0, n=i) for i in range(4)]
        operator.process(0, chunk_of([*(Insert(t, t + 9, p) for p in rows_), Cti(t)], SCHEMA))
    assert operator.metrics.state_rows < 50
    assert operator.cti_out == t
    assert len(operator.payloads[0]) < 9000


@pytest.mark.parametrize(
    ("schema", "outputs", "message"),
    [
        ({"id": pl.Int64, "vs": pl.Int64, "m": pl.Int64, "kind": pl.String}, "m", "no column 've'"),
        ({**SCHEMA, "vs": pl.String}, "m", "column 'vs' of versions is String; it must be Int64"),
        (SCHEMA, "vs", "OUTPUT yields 'vs', which is a part of the header here"),
    ],
)
def test_refused(schema, outputs, message):
    members = (api.source("feed", schema).plan,)
    with pytest.raises(QueryError, match=message):
        Match(members, plan.Sequence((A, B), 10), (), ((outputs, pl.col("a.m")),), bitemporal=True).schema  # noqa: B018


#   occurrence   0    1
#   A id=0       [0, 8)              stated twice until 1: each statement is a match, as A is consumed once in each of
#   A id=0       [0, 8) ...          the two stretches of occurrence time


def test_what_is_consumed_at_one_occurrence_time_is_there_at_the_next():
    a = Row(id=0, vs=0, ve=8, kind="A", m=0, n=1)
    consumed = plan.Sequence((replace(A, consumption="CONSUME"),), 8)
    make = lambda: operator_of(node(consumed, latency="eager"), [])  # noqa: E731
    out = run(make, [(0, [Insert(0, 1, a), Insert(0, INF, a)])], [SCHEMA])
    assert sorted((e.vs, e.ve) for e in out[0]) == [(0, 1), (0, INF)]


@pytest.mark.parametrize("latency", ["perfect", "ordered", "eager"])
def test_what_is_kept_of_keys_is_what_all_versions_give(latency):
    """Next to an operator that evaluates all keys with every chunk."""
    choose = random.Random(5)
    keyed = replace(node(plan.Sequence((A, B), 10), latency=latency), where=(plan.CorrelationKey("m"),))
    kept, evaluated = operator_of(keyed, []), operator_of(keyed, [])
    live, emitted = [], 0
    for t in range(60):
        elements = []
        for i in range(4):
            m = choose.choice([0, 1, 2, 3, None])
            payload = Row(id=4 * t + i, vs=choose.randrange(9), ve=99, kind=choose.choice("AB"), m=m, n=0)
            live.append((t, t + 9, payload))
            elements.append(Insert(*live[-1]))
        if t % 3 == 2:
            vs, ve, payload = live.pop(choose.randrange(len(live) - 16, len(live) - 4))
            elements.append(Adjust(vs, ve, t + 1, payload))
        chunk = chunk_of([*elements, Cti(t - 3)], SCHEMA)
        evaluated.found = None
        outs = [operator.process(0, chunk) for operator in (kept, evaluated)]
        assert outs[0].rows.sort(pl.all()).equals(outs[1].rows.sort(pl.all()))
        assert outs[0].cti == outs[1].cti
        emitted += len(outs[0])
    assert emitted > 100
