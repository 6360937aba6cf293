"""What `properties` claims holds of the rows that really come out."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_check import run
from plan.catalogue import QUERIES, SCHEMA, AsOperator, a, few, payloads

from cedr import testing
from cedr.plan.nodes.level import Level
from cedr.plan.optimizer import optimize
from cedr.plan.properties import properties
from cedr.temporal import INF, Adjust, canonical
from cedr.temporal.stream import data as data_of


@pytest.mark.parametrize("name", QUERIES)
@few
@given(data=st.data())
def test_claims_hold(name, data):
    query = QUERIES[name]
    promised = {"ordered": data.draw(st.booleans()), "insert_only": data.draw(st.booleans())}
    level, latency = (
        data.draw(st.sampled_from(["strong", "middle"])),
        data.draw(st.sampled_from(["perfect", "ordered"])),
    )
    stream = query.stream(**promised).with_consistency(level).with_latency(latency)
    options = {"ordered": promised["ordered"], "adjusts": not promised["insert_only"] and query.infinite}
    inputs = [
        data.draw(testing.streams(payloads, max_size=5, closed=True, infinite=query.infinite, **options))
        for _ in range(query.ports)
    ]
    arrivals = [
        (port, piece) for port, elements in enumerate(inputs) for piece in data.draw(testing.slicings(elements))
    ]
    out = [e for output in run(lambda: AsOperator(stream), arrivals, [SCHEMA] * 2) for e in output]
    check(properties(optimize(Level(stream.plan)).plan), out)


def check(claimed, out):
    elements = data_of(out)
    syncs = [e.sync for e in elements]
    history = canonical(out)
    if claimed.ordered:
        assert syncs == sorted(syncs)
    if claimed.insert_only:
        assert not any(isinstance(e, Adjust) for e in elements)
    if claimed.finite:
        assert all(e.ve != INF for e in history)
    for t in history.end_points():
        live = history.snapshot(t)
        if claimed.duplicate_free:
            assert all(n == 1 for n in live.values())
        if claimed.key is not None:
            keys = Counter(p.pick(*sorted(claimed.key)) for p in live.elements())
            assert all(n == 1 for n in keys.values())


def test_text():
    claimed = properties(a(ordered=True, insert_only=True).distinct().with_latency("ordered").plan)
    assert str(claimed) == "key (m, v), duplicate-free"
    assert str(properties(a().plan)) == "nothing known"
    assert str(properties(a(vs="t").sliding("5s").plan)) == "insert-only, finite"


def test_perfect():
    assert properties(a(ordered=True, insert_only=True).plan).perfect
