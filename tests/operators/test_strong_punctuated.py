"""Under strong nothing that was emitted is changed, whatever promises release early, unless the input is corrected."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_check import check_against_oracle
from plan.catalogue import QUERIES, SCHEMA, AsOperator, payloads
from punctuated_check import punctuated_runs

import cedr
from cedr import reference as ref
from cedr.temporal import INF, STRONG, Adjust, Cti, Insert, Row

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
    options = {"infinite": query.infinite, "adjusts": False}
    arrivals, _ = data.draw(punctuated_runs(payloads, VALUES, query.ports, max_size=5, max_punctuations=10, **options))
    out = check_against_oracle(lambda: AsOperator(stream), query.oracle, arrivals, [SCHEMA] * query.ports)
    assert not [e for e in out if isinstance(e, Adjust)]


@pytest.mark.parametrize("name", QUERIES)
@share
@given(data=st.data(), latency=st.sampled_from(["perfect", "ordered"]))
def test_strong_takes_nothing_back(name, latency, data):
    """Ends of what is emitted early may move, and of what is corrected; but only corrections remove anything."""
    query = QUERIES[name]
    stream = query.stream(promises=PROMISES).with_consistency(STRONG).with_latency(latency)
    options = {"infinite": query.infinite, "adjusts": False}
    arrivals, _ = data.draw(punctuated_runs(payloads, VALUES, query.ports, max_size=5, max_punctuations=10, **options))
    out = check_against_oracle(lambda: AsOperator(stream), query.oracle, arrivals, [SCHEMA] * query.ports)
    assert not [e for e in out if isinstance(e, Adjust) and e.ve_new == e.vs]


def test_an_input_that_is_ahead_is_no_progress():
    query = QUERIES["union of both kinds"]
    stream = query.stream().with_consistency(STRONG, flavour="ordered")
    ahead, behind = Row(m=0, v=None), Row(m=1, v=None)
    arrivals = [
        (0, [Insert(2, INF, ahead), Cti(INF)]),
        (1, [Insert(0, 1, behind), Insert(0, INF, behind), Cti(1)]),
        (1, [Cti(INF)]),
    ]
    out = check_against_oracle(lambda: AsOperator(stream), query.oracle, arrivals, [SCHEMA] * 2)
    assert not [e for e in out if isinstance(e, Adjust)]


def test_what_starts_at_a_cti_is_not_emitted_before_it_is_sure():
    stream = cedr.source("a", SCHEMA).group_by("m").agg(n=cedr.count()).with_consistency(STRONG).with_latency("ordered")
    row = Row(m=0, v=None)
    arrivals = [(0, [Insert(0, 5, row), Insert(0, 9, row), Cti(5)]), (0, [Insert(5, 6, row), Cti(INF)])]
    out = check_against_oracle(lambda: AsOperator(stream), counted, arrivals, [SCHEMA])
    assert not [e for e in out if isinstance(e, Adjust)]


def counted(history):
    return ref.aggregate(history, ("m",), n=ref.count())
