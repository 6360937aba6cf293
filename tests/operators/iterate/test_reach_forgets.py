"""Settled reachability forgets edges and nodes that are gone, and goes on as if it had not."""

import polars as pl
from graph_streams import EDGES

from cedr import api, graphs
from cedr.columnar.chunk import chunk_of
from cedr.temporal import INF, Cti, Insert, Row, canonical

SOURCE, BATCHES, LENGTH = 0, 24, 400
SOURCES = {"node": pl.Int64}

# --- chains of ever new nodes --------------------------------------------------------------------------------------
#
#   batch t      0 -> n -> n+1 -> .. -> n+399        lives for [t, t + 1), and 0 -> 7 -> 8 for ever


def chain(t: int) -> list[tuple[int, int]]:
    first = 100 + t * LENGTH
    return [(SOURCE, first), *((n, n + 1) for n in range(first, first + LENGTH - 1))]


def test_numbers_of_what_is_gone_are_forgotten():
    query = graphs.reachability(api.source("a", EDGES), api.source("b", SOURCES), settled=True)
    engine = query.engine()
    engine.push("b", chunk_of([Insert(0, INF, Row(node=SOURCE)), Cti(INF)], SOURCES))
    out, most = [], 0
    for t in range(BATCHES):
        lasting = [Insert(0, INF, Row(start=a, end=b)) for a, b in ((0, 7), (7, 8))] if t == 0 else []
        passing = [Insert(t, t + 1, Row(start=a, end=b)) for a, b in chain(t)]
        if t == BATCHES // 2:
            state = engine.snapshot()
            engine = query.engine()
            engine.restore(state)
        out += engine.push("a", chunk_of([*lasting, *passing, Cti(t + 1)], EDGES)).elements()
        most = max(most, len(engine.operators[-1].edges), len(engine.operators[-1].nodes))
    assert most < BATCHES * LENGTH * 2 // 3
    found = canonical([*out, *engine.push("a", chunk_of([Cti(INF)], EDGES)).elements()])
    expected = {(t, t + 1, b) for t in range(BATCHES) for _, b in chain(t)} | {(0, INF, 7), (0, INF, 8)}
    assert {(e.vs, e.ve, e.payload.end) for e in found} == expected
    assert len(found) == len(expected)
