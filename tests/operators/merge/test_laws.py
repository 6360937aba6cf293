"""Every algorithm, on random streams of one history that keep its restriction: any slicing, interleaving, restore."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
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
    (algorithm, name)
    for algorithm in ALGORITHMS
    for name, policy in POLICIES.items()
    if algorithm not in IN_ORDER or policy.emits == "first"
]


@pytest.mark.parametrize(("algorithm", "policy"), CASES)
@given(data=st.data())
def test_compatible_at_every_step_and_equivalent_at_the_end(algorithm, policy, data):
    history, ports, arrivals, restore_at = data.draw(merges(algorithm))
    make = lambda: ALGORITHMS[algorithm](SCHEMA, ports, POLICIES[policy])  # noqa: E731
    multiset = algorithm not in ("R3", "R3-")
    _, operator = check_merge(make, ports, arrivals, restore_at, multiset, expected=history)
    assert operator.stable == INF
    assert operator.state_size()[0] == 0 or algorithm in IN_ORDER
