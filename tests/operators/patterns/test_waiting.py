"""Matches that wait are found again in blocks as in arrays, and each waits as long as it has to."""

import random

import numpy as np
import polars as pl
import pytest
from storage.through_bytes import through_bytes

import cedr
from cedr.columnar.chunk import assemble
from cedr.operators import layout
from cedr.operators.patterns.levels import NO_KEY
from cedr.operators.patterns.waiting import Region, WaitingMatches, WaitingStore
from cedr.temporal.time import INF


@pytest.fixture
def small_blocks(event_levels, monkeypatch):
    monkeypatch.setattr(layout, "PATIENCE", 1)


def matches(choose, n):
    found = [(choose.choice([NO_KEY, 0, 1, 2, 5]), choose.choice([choose.randrange(30), INF - 1])) for _ in range(n)]
    return WaitingMatches(*(np.array([x[i] for x in found], dtype=np.int64) for i in (0, 1, 1)))


def region(choose):
    groups = [g for g in (NO_KEY, 0, 1, 2, 3, 5) if choose.random() < 0.4]
    low = [choose.randrange(30) for _ in groups]
    high = [choose.choice([x, x + 3, INF - 1, INF]) for x in low]
    return Region(*(np.array(column, dtype=np.int64) for column in (groups, low, high)))


def earliest(found):
    return [int(found.vs[(found.g == NO_KEY) == alone].min(initial=INF)) for alone in (True, False)]


@pytest.mark.parametrize("seed", range(10))
def test_blocks_give_what_arrays_give(seed, small_blocks):
    choose = random.Random(seed)
    in_arrays, in_blocks = WaitingStore(), WaitingStore()
    for _ in range(50):
        more, near, until = matches(choose, choose.choice([0, 1, 2, 8])), region(choose), choose.choice([5, 20, INF])
        for store in (in_arrays, in_blocks):
            store.drop(near)
            store.add(more)
            store.choose_layout(store is in_blocks and choose.random() < 0.9)
        expected = in_arrays.flat()
        assert earliest(in_blocks.firsts()) == earliest(expected)
        if in_blocks.in_blocks:
            due = set(zip(expected.g[expected.vs <= until], expected.vs[expected.vs <= until], strict=True))
            assert set(zip(*in_blocks.due(until), strict=True)) == due
        if choose.random() < 0.1:
            assert sorted(zip(*in_blocks.flat(), strict=True)) == sorted(zip(*expected, strict=True))


# --- many that wait --------------------------------------------------------------------------------------------------

SCHEMA = {"k": pl.Int64, "kind": pl.String}
QUERY = "EVENT P WHEN UNLESS(A x, B y, 40000) WHERE x.k = y.k OUTPUT x.k AS k"


def events(choose, first, n, cti):
    at = np.arange(first, first + n)
    late = np.where(choose.random(n) < 0.1, choose.integers(0, 2_000, n), 0)
    at = np.maximum(at - late, cti)
    kinds = pl.Series(["A", "A", "A", "B"]).gather(choose.integers(0, 4, n))
    rows = pl.DataFrame({"k": choose.integers(0, 20_000, n), "kind": kinds})
    return assemble(at, at, np.full(n, INF), rows, max(first - 2_000, 0))


@pytest.mark.parametrize("latency", ["perfect", "ordered"])
def test_small_chunks_while_many_matches_wait(latency, monkeypatch):
    def engine():
        source = cedr.source("events", SCHEMA, vs="ts", types="kind")
        return cedr.query(QUERY, source).with_latency(latency).engine()

    in_arrays, in_blocks = engine(), engine()
    choose, at, blocks = np.random.default_rng(1), 0, 0
    for n in (50_000, *[1, 40, 300] * 5, 30_000, 1, 200):
        chunk = events(choose, at, n, max(at - 2_000, 0))
        at += n
        monkeypatch.setattr(layout, "MUCH_STATE", INF)
        expected = in_arrays.push("events", chunk).rows
        monkeypatch.setattr(layout, "MUCH_STATE", 1_000)
        monkeypatch.setattr(layout, "PATIENCE", 2)
        if n == 200:
            state = through_bytes(in_blocks.snapshot())
            in_blocks = engine()
            in_blocks.restore(state)
        found = in_blocks.push("events", chunk).rows
        assert found.sort(found.columns).equals(expected.sort(found.columns))
        blocks += in_blocks.operators[-1].waiting.in_blocks
    assert blocks > 4
