"""Sequences that select and consume step by step: against the oracle, and in dense keys against all chains."""

from random import Random

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operators.patterns.pattern_check import LATENCIES, check, pattern_runs
from random_patterns import Pair, ask

import cedr
from cedr.operators.patterns.selection import MatchSelection
from cedr.plan.patterns import tree as plan
from cedr.reference import patterns as ref

SELECTIONS, CONSUMPTIONS = ("EACH", "FIRST", "LAST"), ("REUSE", "CONSUME")


def event(kind, var, **modes):
    return Pair(
        ref.ReferenceEventType(kind, var, **modes), plan.EventType(kind, 0, pl.col("kind") == kind, var=var, **modes)
    )


@st.composite
def sequences(draw):
    """Sequences of two to four events of few types, with or without a key, some with an event that may not be there."""
    params = [
        event(
            draw(st.sampled_from("AAB")),
            f"v{number}",
            selection=draw(st.sampled_from(SELECTIONS)),
            consumption=draw(st.sampled_from(CONSUMPTIONS)),
        )
        for number in range(draw(st.integers(2, 4)))
    ]
    w = draw(st.sampled_from([9, 6, 4, 3]))
    found = Pair(ref.SEQUENCE(*(p.oracle for p in params), w=w), plan.Sequence(tuple(p.plan for p in params), w))
    if draw(st.integers(0, 3)) == 0:
        threat = event("C", "z")
        found = Pair(ref.NOT(threat.oracle, found.oracle), plan.Not(found.plan, threat.plan))
    by_key = draw(st.booleans())
    where = ((ref.ReferenceCorrelationKey("m"),), (plan.CorrelationKey("m"),)) if by_key else ((), ())
    return ask(found, where)


@pytest.mark.parametrize("latency", LATENCIES)
@given(data=st.data())
def test_selected_chains_are_those_of_the_oracle(latency, data):
    query = data.draw(sequences())
    check(query, latency, data.draw(pattern_runs(query, sizes=(6, 11))))


def random_sequence(random, steps):
    modes = [(random.choice(SELECTIONS), random.choice(CONSUMPTIONS)) for _ in range(steps)]
    if steps > 2 and all(selection == "EACH" for selection, _ in modes):
        modes[random.randrange(steps - 1)] = ("LAST", "CONSUME")
    params = [f"{random.choice('ABC')} x{i} {' '.join(mode)}" for i, mode in enumerate(modes)]
    shown = ", ".join(f"x{i}.number AS n{i}" for i in range(steps))
    pattern = f"SEQUENCE({', '.join(params)}, {random.choice((9, 17))})"
    return f"EVENT P WHEN {pattern} WHERE CorrelationKey(k, EQUAL) OUTPUT {shown}"


@pytest.mark.parametrize("seed", range(40))
def test_dense_keys_give_what_comparing_all_chains_gives(seed, monkeypatch):
    """Events that start together are in the order of their ids in both."""
    random = Random(seed)
    text = random_sequence(random, random.choice((2, 3, 3, 4)))
    rows = [(random.randrange(45), random.choice("ABC"), random.randrange(2), number) for number in range(110)]
    rows.sort(key=lambda row: row[0] + random.randrange(8))
    schema = {"ts": pl.Int64, "kind": pl.String, "k": pl.Int64, "number": pl.Int64}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    source = cedr.source("events", {"kind": str, "k": int, "number": int}, vs="ts", delay=10, types="kind")

    def found(chunk_size):
        matches = cedr.query(text, source).run(table, chunk_size=chunk_size).table()
        return sorted(matches.rows(), key=str)

    step_by_step = [found(chunk_size) for chunk_size in (7, 1_000)]
    monkeypatch.setattr(MatchSelection, "goes_step_by_step", lambda self, part: False)
    assert step_by_step == [found(1_000)] * 2
