"""Every query, at every level and latency, optimised and as written, gives the oracle's answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from layouts import use_layout
from oracle_check import check_against_oracle, runs
from plan.catalogue import QUERIES, SCHEMA, STATEFUL, AsOperator, few, payloads

from cedr.plan.optimizer import REQUIRED, RULES

LATENCIES = st.sampled_from(["perfect", "ordered", "eager"])
LEVELS = st.sampled_from(
    [
        {"level": "strong"},
        {"level": "strong", "flavour": "perfect"},
        {"level": "middle"},
        {"block": 3},
        {"block": 3, "flavour": "perfect"},
        {"block": 10, "remember": 1000},
    ]
)


def check(query, stream, run, rules=RULES):
    arrivals, restore_at = run
    make = lambda: AsOperator(stream, rules)  # noqa: E731
    check_against_oracle(make, query.oracle, arrivals, [SCHEMA] * query.ports, restore_at)


@pytest.mark.parametrize("name", QUERIES)
@few
@given(data=st.data())
def test_optimised(name, data):
    query = QUERIES[name]
    run = data.draw(runs(payloads, query.ports, max_size=5, infinite=query.infinite, adjusts=query.infinite))
    check(query, query.stream().with_latency(data.draw(LATENCIES)).with_consistency(**data.draw(LEVELS)), run)


@pytest.mark.parametrize("name", [n for n in QUERIES if "join" in n or n in ("session", "clip")])
@few
@given(data=st.data())
def test_changing_layouts(name, data):
    query = QUERIES[name]
    run = data.draw(runs(payloads, query.ports, max_size=5))
    with pytest.MonkeyPatch.context() as patch:
        use_layout(patch, "changing")
        check(query, query.stream().with_latency(data.draw(LATENCIES)).with_consistency(**data.draw(LEVELS)), run)


@pytest.mark.parametrize("name", QUERIES)
@few
@given(data=st.data())
def test_as_written(name, data):
    query = QUERIES[name]
    run = data.draw(runs(payloads, query.ports, max_size=5, infinite=query.infinite, adjusts=query.infinite))
    check(query, query.stream(), run, REQUIRED)


@pytest.mark.parametrize("name", STATEFUL)
@few
@given(data=st.data())
def test_insert_only_sources(name, data):
    query = QUERIES[name]
    run = data.draw(runs(payloads, query.ports, max_size=5, adjusts=False))
    check(query, query.stream(insert_only=True), run)
