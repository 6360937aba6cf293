"""Sequences in which nothing may lie between: when they may look no further back than to what forbids, and when not."""

import polars as pl
import pytest

import cedr
from cedr.temporal import Insert, Row


def found(pattern: str, timeline: str) -> list[tuple[int, ...]]:
    """The starts of `a` and of the match; `timeline` has an event type for each time from 0 on, or a dot."""
    source = cedr.source("events", {"kind": str, "at": int})
    types = {kind: source.where(pl.col("kind") == kind) for kind in "ABCZ"}
    events = [Insert(t, t + 1, Row(kind=kind, at=t)) for t, kind in enumerate(timeline) if kind != "."]
    return cedr.query(f"EVENT E WHEN {pattern} OUTPUT a.at AS a", **types).run(events).table().select("a", "vs").rows()


@pytest.mark.parametrize(
    ("pattern", "timeline", "expected"),
    [
        ("NOT(Z, SEQUENCE(A a, B, 10))", "AZAB", [(2, 3)]),
        ("NOT(Z, SEQUENCE(A a, B, C, 10))", "A.ABZC", []),
        ("NOT(Z, SEQUENCE(A a, B, C, 10))", "AZABC", [(2, 4)]),
        # FIRST takes the A at 0, and the Z after it forbids that match; the A at 2 was never selected.
        ("NOT(Z, SEQUENCE(A a FIRST, B, 10))", "AZA.B", []),
        ("NOT(Z, SEQUENCE(A a LAST, B, 10))", "AZA.B", [(2, 4)]),
        ("CANCEL-WHEN(SEQUENCE(A a, C, 10), Z)", "AZAC", [(2, 3)]),
        # For CANCEL-WHEN a sequence begins with the root of its first contributor, which is the A.
        ("CANCEL-WHEN(SEQUENCE(SEQUENCE(A a, B, 10), C, 10), Z)", "AZB.C", []),
        ("NOT(Z, SEQUENCE(SEQUENCE(A a, B, 10), C, 10))", "AZB.C", [(0, 4)]),
    ],
)
def test_what_lies_between(pattern, timeline, expected):
    assert found(pattern, timeline) == expected
