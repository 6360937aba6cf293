"""Every algorithm, on random streams of one history that keep its restriction: any slicing, interleaving, restore."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from layouts import use_layout
from merge_check import SCHEMA, check_merge, merges

from cedr.operators.merge.algorithms import ALGORITHMS
from cedr.plan.merge_policy import Policy
from cedr.temporal import INF

POLICIES = {
    "first": Policy(),
    "reflect": Policy("reflect"),
    "leader": Policy("leader"),
    "half": Policy("half-frozen"),
    "most": Policy("fraction", 0.6),
    "all": Policy("fraction"),
    "lag": Policy(lag=3),
    "slowest": Policy(progress="slowest"),
    "leader, lag, slowest": Policy("leader", progress="slowest", lag=2),
}
IN_ORDER = ("R0", "R1", "R2")
CASES = [
    (algorithm, name, layout)
    for algorithm in ALGORITHMS
    for name, policy in POLICIES.items()
    if algorithm not in IN_ORDER or policy.emits == "first"
    for layout in (("arrays", "blocks", "changing") if algorithm in ("R3", "R4") else ("arrays",))
    if layout != "changing" or name in ("first", "leader")
]


@pytest.fixture
def in_layout(request, monkeypatch):
    use_layout(monkeypatch, request.param)


@pytest.mark.parametrize(("algorithm", "policy", "in_layout"), CASES, indirect=["in_layout"])
@pytest.mark.usefixtures("in_layout")
@given(data=st.data())
def test_compatible_at_every_step_and_equivalent_at_the_end(algorithm, policy, data):
    history, ports, arrivals, restore_at = data.draw(merges(algorithm))
    make = lambda: ALGORITHMS[algorithm](SCHEMA, ports, POLICIES[policy])  # noqa: E731
    multiset = algorithm not in ("R3", "R3-")
    _, operator = check_merge(make, ports, arrivals, restore_at, multiset, expected=history)
    assert operator.stable == INF
    assert operator.state_size()[0] == 0 or algorithm in IN_ORDER
