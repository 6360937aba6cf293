"""State in blocks gives what state in arrays gives: the same output after every chunk, and the same snapshots.

The streams are longer than those of the other laws, with several keys, so that progress changes keys that a chunk does
not touch.
"""

import pickle
import random

import polars as pl
import pytest

from cedr.columnar import blocks, index
from cedr.columnar.chunk import chunk_of
from cedr.operators import locality
from cedr.operators.clip import ClipOperator
from cedr.operators.join import JoinOperator
from cedr.operators.locality import Locality
from cedr.operators.outer_join import OuterJoinOperator
from cedr.operators.session import SessionOperator
from cedr.temporal import Adjust, Cti, Insert, Row
from cedr.temporal.time import INF

SCHEMA = {"k": pl.Int64, "v": pl.Int64}
SMALLER = pl.col("v") < pl.col("v_right")
ON = (SCHEMA, SCHEMA, ["k"], ["k"])


def outer(how, latency, residual=None):
    return lambda: OuterJoinOperator(*ON, how, residual, latency=latency)


OPERATORS = {
    "join": lambda: JoinOperator(*ON),
    "cross join": lambda: JoinOperator(SCHEMA, SCHEMA, [], []),
    "clip": lambda: ClipOperator(*ON),
    "clip without keys": lambda: ClipOperator(SCHEMA, SCHEMA, [], []),
    "session": lambda: SessionOperator(SCHEMA, 4, ["k"]),
    "session without keys": lambda: SessionOperator(SCHEMA, 2),
    **{f"{how}, {latency}": outer(how, latency) for how in ("semi", "anti") for latency in ("perfect", "ordered")},
    "anti, eager": outer("anti", "eager"),
    "anti, with a condition": outer("anti", "perfect", SMALLER),
    "semi, with a condition": outer("semi", "ordered", SMALLER),
    "full": outer("full", "perfect"),
}


def stream(choose, ports, size=100, late=6):
    """Chunks of a valid stream: late rows, corrections, equal tuples, progress with rows and without."""
    front, live, chunks = [0] * ports, [[] for _ in range(ports)], []
    for i in range(size):
        port = choose.randrange(ports)
        elements = []
        for _ in range(choose.choice([0, 1, 1, 1, 2, 4])):
            mine = live[port]
            at = choose.randrange(len(mine)) if mine and choose.random() < 0.35 else None
            if at is not None and min(mine[at][:2]) >= front[port]:
                vs, old, payload = mine.pop(at)
                new = choose.choice([vs, vs + 1, vs + 3, vs + 9, INF])
                if new != old and min(old, new) >= front[port]:
                    elements.append(Adjust(vs, old, new, payload))
                    old = new
                mine += [(vs, old, payload)] * (old != vs)
            else:
                vs = max(front[port], i // 3 + choose.randrange(-late, late))
                tuple_ = (vs, vs + choose.choice([1, 2, 5, 12]), Row(k=choose.choice([None, *range(6)]), v=vs % 3))
                mine.append(tuple_)
                elements.append(Insert(*tuple_))
        if choose.random() < 0.4:
            front[port] = max(front[port], i // 3 - choose.randrange(late))
            elements.append(Cti(front[port]))
        chunks.append((port, elements))
    return [*chunks, *((port, [Cti(INF)]) for port in range(ports))]


def output(operator, step):
    port, elements = step
    return sorted(str(e) for e in operator.process(port, chunk_of(elements, SCHEMA)).elements())


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 4)
    monkeypatch.setattr(blocks, "SEGMENT_BITS", 1)
    monkeypatch.setattr(locality, "FEW", 8)


def use_blocks(monkeypatch, answer):
    def prefers_blocks(self, rows, arrived, now):
        return answer()

    monkeypatch.setattr(Locality, "prefers_blocks", prefers_blocks)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", OPERATORS)
def test_blocks_give_what_arrays_give(name, seed, monkeypatch):
    make, choose = OPERATORS[name], random.Random(f"{name} {seed}")
    monkeypatch.setattr(index, "WORTH_COMPACTING", choose.choice([1, 10_000]))
    changes = choose.choice([0.0, 0.1])
    now = {"blocks": True}
    in_arrays, in_blocks = make(), make()
    for step in stream(choose, in_arrays.ports):
        use_blocks(monkeypatch, lambda: False)
        expected = output(in_arrays, step)
        if choose.random() < changes:
            now["blocks"] = not now["blocks"]
        use_blocks(monkeypatch, lambda: now["blocks"])
        assert output(in_blocks, step) == expected
        assert in_blocks.cti_out == in_arrays.cti_out
        if choose.random() < 0.05:
            state = pickle.loads(pickle.dumps(in_blocks.snapshot()))
            if choose.random() < 0.5:
                in_blocks = make()
            in_blocks.restore(state)
    assert in_blocks.state_size()[0] == in_arrays.state_size()[0] == 0
