"""Under strong nothing that was told is changed, whatever promises set free early, unless the input is corrected."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_check import check_against_oracle
from plan.catalogue import QUERIES, SCHEMA, AsOperator, payloads
from punctuated_check import punctuated_runs

from cedr.temporal import STRONG, Adjust

share = settings(max_examples=max(settings.default.max_examples // 6, 1))
VALUES = {"m": [0, 1], "v": [0, 1, 2, 3]}
PROMISES = ["m", "v", ["m", "v"]]

MOVING_ENDS = {"clip", "session", "pattern atmost"}
"""Queries whose results may start before their end is known. Only the perfect flavour holds these back."""


@pytest.mark.parametrize("name", QUERIES)
@share
@given(data=st.data())
def test_strong_changes_nothing(name, data):
    query = QUERIES[name]
    flavour = "perfect" if name in MOVING_ENDS else "ordered"
    stream = query.stream(promises=PROMISES).with_consistency(STRONG, flavour=flavour)
    telling = {"infinite": query.infinite, "adjusts": False}
    arrivals, _ = data.draw(punctuated_runs(payloads, VALUES, query.ports, max_size=5, most=10, **telling))
    out = check_against_oracle(lambda: AsOperator(stream), query.oracle, arrivals, [SCHEMA] * query.ports)
    assert not [e for e in out if isinstance(e, Adjust)]
