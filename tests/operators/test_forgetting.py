"""State in blocks does not grow: what is settled goes a part at a time, and the state stays in its blocks.

Keys and payloads are new ones all the time, so their numbers have to go, too.
"""

import numpy as np
import polars as pl
import pytest
from layouts import use_layout

from cedr.columnar import blocks, index
from cedr.columnar.chunk import assemble
from cedr.columnar.index import RowIndex
from cedr.columnar.state import Stateful
from cedr.operators import lap, levels
from cedr.operators import layout as layouts
from cedr.operators.aggregate import AggregateOperator
from cedr.operators.clip import ClipOperator
from cedr.operators.join import JoinOperator
from cedr.operators.outer_join import OuterJoinOperator
from cedr.operators.session import SessionOperator
from cedr.operators.top_k import TopKOperator
from cedr.plan import aggregates as agg
from cedr.temporal.time import INF

SCHEMA = {"k": pl.Int64, "v": pl.Int64, "s": pl.String}
ON = (SCHEMA, SCHEMA, ["k"], ["k"])
AGGREGATES = {"n": agg.Count(), "sum": agg.Sum("v"), "most": agg.Max("v"), "text": agg.Max("s"), "mode": agg.Mode("v")}


def aggregate(by, latency="perfect"):
    return lambda: AggregateOperator(SCHEMA, by, AGGREGATES, latency)


OPERATORS = {
    "aggregates by key": aggregate(["k"]),
    "eager aggregates by key": aggregate(["k"], "eager"),
    "aggregates of all": aggregate([]),
    "top-k by key": lambda: TopKOperator(SCHEMA, 2, ["v"], [True], by=["k"]),
    "distinct": lambda: levels.DistinctOperator(SCHEMA),
    "eager distinct": lambda: levels.DistinctOperator(SCHEMA, "eager"),
    "difference": lambda: levels.DifferenceOperator(SCHEMA),
    "coalesce": lambda: levels.CoalesceOperator(SCHEMA),
    "join": lambda: JoinOperator(*ON),
    "join without keys": lambda: JoinOperator(SCHEMA, SCHEMA, [], []),
    "clip": lambda: ClipOperator(*ON),
    "session": lambda: SessionOperator(SCHEMA, 8, ["k"]),
    "semi": lambda: OuterJoinOperator(*ON, "semi"),
    "anti": lambda: OuterJoinOperator(*ON, "anti"),
}
PARTS = ("local", "blocks")


@pytest.fixture(autouse=True)
def in_blocks(monkeypatch):
    use_layout(monkeypatch, "blocks")
    for setting in ("MUCH_STATE", "PATIENCE", "SMALL_CHUNK"):
        monkeypatch.setattr(layouts, setting, 0)
    monkeypatch.setattr(index, "WORTH_COMPACTING", 16)
    monkeypatch.setattr(lap, "AT_ONCE", 3)
    monkeypatch.setattr(lap, "PER_ROW", 16)
    monkeypatch.setattr(blocks, "SEGMENTS_AT_ONCE", 2)


def stream(ports, chunks, seed):
    """Chunks of 0 to 6 rows, some late, of keys that are never used again after a while; one in fifty lives long."""
    random = np.random.default_rng(seed)
    for number in range(chunks):
        n, now = int(random.integers(0, 7)), 4 * number
        vs = now - random.integers(0, 12, n)
        ve = vs + np.where(random.random(n) < 0.02, 400, random.integers(1, 25, n))
        key = vs // 20 * 3 + random.integers(0, 3, n)
        payload = pl.DataFrame(
            {"k": key, "v": vs // 3 + random.integers(0, 3, n)}, schema=dict(list(SCHEMA.items())[:2])
        )
        payload = payload.with_columns(s=pl.format("text {}", pl.col("v")))
        yield number % ports, assemble(vs, vs, ve, payload, now - 12)


def parts_of(holder, seen=()):
    """The state of an operator and of what it is made of, each once."""
    found = [*seen, holder]
    for value in vars(holder).values():
        members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
        for one in members:
            if isinstance(one, Stateful) and all(one is not other for other in found):
                found = parts_of(one, found)
    return found


def in_use(operator):
    """The objects that hold state in blocks."""
    return [vars(part)[name] for part in parts_of(operator) for name in PARTS if vars(part).get(name) is not None]


def numbered(operator):
    return sum(
        len(value) for part in parts_of(operator) for value in vars(part).values() if isinstance(value, RowIndex)
    )


@pytest.mark.parametrize("name", OPERATORS)
def test_state_in_blocks_is_forgotten_there(name, monkeypatch):
    make = OPERATORS[name]
    operator, in_arrays = make(), make()
    same, rows, numbers = None, [], []
    for step, (port, chunk) in enumerate(stream(operator.ports, 900, name.count("e"))):
        out = operator.process(port, chunk)
        with pytest.MonkeyPatch.context() as patch:
            use_layout(patch, "arrays")
            patch.setattr(layouts, "MUCH_STATE", INF)
            expected = in_arrays.process(port, chunk)
        assert sorted(map(str, out.elements())) == sorted(map(str, expected.elements()))
        if step == 20:
            same = in_use(operator)
            assert same
        if step >= 300 and step % 100 == 0:
            assert all(one is other for one, other in zip(same, in_use(operator), strict=True))
            rows.append((operator.state_rows(), in_arrays.state_rows()))
            numbers.append((numbered(operator), numbered(in_arrays)))
    assert max(mine for mine, _ in rows) <= 2 * max(theirs for _, theirs in rows) + 50, rows
    assert max(mine for mine, _ in numbers) <= 3 * max(theirs for _, theirs in numbers) + 200, numbers
