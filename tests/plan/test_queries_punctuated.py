"""Every query over streams with promises about parts of them gives the oracle's answer, and strong output is final.

Every punctuation of the output is right and stays right; at the strong level nothing that was emitted is ever removed,
although rows are released key by key.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_check import arrivals_of, check_against_oracle
from plan.catalogue import QUERIES, SCHEMA, AsOperator, few, payloads

from cedr import testing
from cedr.plan.optimizer import REQUIRED, RULES
from cedr.temporal import Adjust

ATTRIBUTES = {"m": [0, 1], "v": [0, 1, 2, 3]}
PROMISES = [["m"], ["v"], ["m", "v"]]


@pytest.mark.parametrize("level", ["strong", "middle"])
@pytest.mark.parametrize("name", QUERIES)
@few
@given(data=st.data())
def test_punctuated(name, level, data):
    query = QUERIES[name]
    streams = [data.draw(punctuated_streams(query.infinite)) for _ in range(query.ports)]
    arrivals = data.draw(arrivals_of(streams))
    restore_at = data.draw(st.sets(st.integers(0, max(len(arrivals) - 1, 0)), max_size=1))
    declared = data.draw(st.sampled_from([PROMISES, PROMISES[:1], []]))
    latency = data.draw(st.sampled_from(["perfect", "ordered", "eager"]))
    rules = data.draw(st.sampled_from([RULES, REQUIRED]))
    stream = query.stream(promises=declared).with_latency(latency).with_consistency(level)
    make = lambda: AsOperator(stream, rules)  # noqa: E731
    out = check_against_oracle(make, query.oracle, arrivals, [SCHEMA] * query.ports, restore_at)
    if level == "strong":
        assert not [e for e in out if isinstance(e, Adjust) and e.ve_new == e.vs]


@st.composite
def punctuated_streams(draw, infinite: bool):
    stream = draw(testing.streams(payloads, max_size=5, closed=True, infinite=infinite, adjusts=infinite))
    return draw(testing.punctuated(stream, ATTRIBUTES, max_punctuations=3, exact=draw(st.booleans())))
