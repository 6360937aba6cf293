"""Whole queries under punctuations: at any level, saved and restored, and while the level changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_check import arrivals_of
from plan.catalogue import QUERIES, SCHEMA, a, few, payloads
from storage.through_bytes import through_bytes

import cedr
from cedr import testing
from cedr.columnar.chunk import chunk_of
from cedr.temporal import INF, MIDDLE, STRONG, Consistency, Insert, Row, canonical, validate
from cedr.temporal.punctuation import punctuation

LEVELS = st.sampled_from([STRONG, MIDDLE, Consistency(4, INF)])
PROMISES = {"promises": ["m", "v", ["m", "v"]]}


def push(engine, port, elements):
    return engine.push("ab"[port], chunk_of(elements, SCHEMA)).elements()


@pytest.mark.parametrize("name", QUERIES)
@few
@given(data=st.data())
def test_the_answer_is_the_oracles_whatever_is_promised(name, data):
    """The output is a valid stream, its own punctuations kept, and right in the end."""
    query = QUERIES[name]
    options = {"infinite": query.infinite, "adjusts": query.infinite, "closed": True}
    streams = []
    for _ in range(query.ports):
        stream = data.draw(testing.streams(payloads, max_size=5, **options))
        streams.append([*data.draw(testing.punctuated(stream[:-1], {"m": [0, 1], "v": [0, 1, 2, 3]})), stream[-1]])
    stream = query.stream(**PROMISES).with_latency(data.draw(st.sampled_from(["perfect", "ordered", "eager"])))
    level = data.draw(LEVELS)
    engine = stream.with_consistency(level).engine()
    out = []
    for port, elements in data.draw(arrivals_of(streams)):
        match data.draw(st.integers(0, 7)):
            case 6:
                state = through_bytes(engine.snapshot())
                engine = stream.with_consistency(level).engine()
                engine.restore(state)
            case 7:
                level = data.draw(LEVELS)
                out += stream.change_level(engine, level).elements()
        out += push(engine, port, elements)
    validate(out)
    testing.assert_same(canonical(out), query.oracle(*map(canonical, streams)))
    assert engine.take_late().height == 0


def test_what_was_promised_counts_when_the_level_changes():
    #          1         5         9
    # m=0      ##########                promised before 6
    # m=1      ####################
    query = a(**PROMISES).group_by("m").agg(n=cedr.count()).with_latency("ordered")
    engine = query.engine()
    push(engine, 0, [punctuation(6, m=0)])
    query.change_level(engine, STRONG)
    out = push(engine, 0, [Insert(6, 9, Row(m=0, v=1)), Insert(1, 9, Row(m=1, v=1)), punctuation(9, m=0)])
    assert [str(e) for e in out] == ["insert m=0, n=1 [6, 9)", "no more m=0 before 9"]
    assert push(engine, 0, [Insert(5, 9, Row(m=0, v=1))]) == []
    assert engine.take_late()["reason"].to_list() == ["below_punctuation"]
