"""When a pattern emits if the query sets no latency: at once where nothing blocks, else when it is certain.

A at 0, and UNLESS(A, B, 5) without a B: an eager pattern emits the match with the A, a perfect one when 5 have passed
"""

import polars as pl
import pytest

import cedr
from cedr import api
from cedr.columnar.chunk import chunk_of
from cedr.temporal import Cti, Insert, Row, retract

feed = api.source("feed", {"kind": str}, types="kind")
alarm = cedr.query("EVENT q WHEN UNLESS(A x, B y, 5) OUTPUT x.kind", feed)
A, B = Insert(0, 1, Row(kind="A")), Insert(3, 4, Row(kind="B"))
MATCH = Insert(0, 5, Row(kind="A"))


def emitted(query, *elements):
    """The rows after each element; CTIs aside."""
    updates = query.updates(list(elements), chunk_size=1, close=False)
    return [[e for e in update.elements() if not isinstance(e, Cti)] for update in updates]


@pytest.mark.parametrize("level", [{}, {"level": "middle"}, {"level": "weak"}, {"block": 0, "remember": 100}])
def test_a_query_that_does_not_block_answers_at_once(level):
    query = alarm.with_consistency(**level) if level else alarm
    assert emitted(query, A) == [[MATCH]]


def test_it_takes_back_what_was_wrong():
    assert emitted(alarm, A, B) == [[MATCH], [retract(0, 5, Row(kind="A"))]]


@pytest.mark.parametrize("level", [{"level": "strong"}, {"block": 3}])
def test_a_query_that_blocks_answers_when_it_is_certain(level):
    steps = emitted(alarm.with_consistency(**level), A, Cti(3), Cti(9))
    assert steps[0] == steps[1] == []
    assert steps[2] == [MATCH]


def test_a_latency_that_is_given_counts():
    assert emitted(alarm.with_latency("perfect"), A, Cti(3))[:1] == [[]]
    assert emitted(alarm.with_latency("perfect").with_consistency("middle"), A)[:1] == [[]]


def test_aggregates_emit_when_their_window_is_over():
    counts = feed.tumbling(5).agg(n=cedr.count())
    later = Insert(7, 8, Row(kind="A"))
    assert emitted(counts, A, later) == [[], [Insert(0, 5, Row(n=1))]]
    assert emitted(counts.with_latency("eager"), A) == [[Insert(0, 5, Row(n=1))]]


def test_a_running_query_keeps_its_latency_when_its_level_changes():
    engine = alarm.with_consistency("strong").engine()
    schema = {"kind": pl.String}
    engine.push("feed", chunk_of([A, Cti(1)], schema))
    assert alarm.change_level(engine, "middle").elements() == []
    assert MATCH in engine.push("feed", chunk_of([Cti(9)], schema)).elements()
