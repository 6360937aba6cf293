"""Events of an automaton in levels give what one table of all events gives: the same output after every chunk."""

import random

import numpy as np
import polars as pl
import pytest
from operators.automata.random_automata import SCHEMA, STEPS, native
from storage.through_bytes import through_bytes

from cedr import api, automata
from cedr.columnar import index
from cedr.columnar.chunk import assemble, chunk_of
from cedr.operators.automata import levels
from cedr.physical import operator_of
from cedr.temporal import Adjust, Cti, Insert, Row
from cedr.temporal.time import INF

SIZES = {
    "many": {"FEW_EVENTS": 0, "GROWTH": 1, "SHARE": 0, "AHEAD": 1, "CREDIT": 1},
    "by chunk": {"FEW_EVENTS": 6, "GROWTH": 2, "SHARE": 3, "AHEAD": 2, "CREDIT": 4},
}


@pytest.fixture
def event_levels():
    """Each test here sets sizes by itself."""


def use(monkeypatch, **sizes):
    for name, size in sizes.items():
        monkeypatch.setattr(levels, name, size)


def stream(choose, size, late):
    """Chunks of a valid stream: late events, corrections, equal events, numbers of events, progress."""
    front, live, chunks = 0, [], []
    for i in range(size):
        elements = []
        for _ in range(choose.choice([0, 1, 1, 1, 2, 4])):
            at = choose.randrange(len(live)) if live and choose.random() < 0.35 else None
            if at is not None and min(live[at][:2]) >= front:
                vs, old, payload = live.pop(at)
                new = choose.choice([vs, vs + 1, vs + 3, vs + 9, INF])
                if new != old and min(old, new) >= front:
                    elements.append(Adjust(vs, old, new, payload))
                    old = new
                live += [(vs, old, payload)] * (old != vs)
            else:
                vs = max(front, i // 2 + choose.randrange(-late, late))
                number = choose.choice([None, *range(i // 3, i // 3 + 4)])
                payload = Row(m=choose.choice([0, 0, 1, None]), v=choose.choice([None, 0, 1, 2, 3]), n=number)
                live.append((vs, vs + choose.choice([1, 2, 5, 12, 40]), payload))
                elements.append(Insert(*live[-1]))
        if choose.random() < 0.4:
            front = max(front, i // 2 - choose.randrange(3 * late))
            elements.append(Cti(front))
        chunks.append(elements)
    return [*chunks, [Cti(INF)]]


def query(choose):
    table = [("S", choose.choice(["any", "low", "count"]), "1"), ("1", "count", "F")]
    if choose.random() < 0.5:
        table.append((choose.choice("S1F"), choose.choice(sorted(STEPS)), choose.choice("S1F")))
    order, window = choose.choice([None, "n"]), choose.choice([None, 4, 9])
    final = choose.choice([None, ["F"], ["F", "1"]])
    by = choose.choice([(), ("m",)])
    return lambda: native(table, by=by, order=order, window=window, final=final)


def output(operator, elements):
    return sorted(str(e) for e in operator.process(0, chunk_of(elements, SCHEMA)).elements())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("sizes", SIZES)
def test_levels_give_what_one_table_gives(sizes, seed, monkeypatch):
    choose = random.Random(f"{sizes} {seed}")
    monkeypatch.setattr(index, "WORTH_COMPACTING", choose.choice([1, 10_000]))
    make = query(choose)
    in_one, in_levels = make(), make()
    for elements in stream(choose, 40, choose.choice([2, 5, 12])):
        use(monkeypatch, FEW_EVENTS=INF)
        expected = output(in_one, elements)
        use(monkeypatch, **SIZES[sizes])
        assert output(in_levels, elements) == expected
        assert in_levels.cti_out == in_one.cti_out
        if choose.random() < 0.2:
            rows, state = in_levels.levels.rows, through_bytes(in_levels.snapshot())
            if choose.random() < 0.5:
                in_levels = make()
            in_levels.restore(state)
            assert in_levels.levels.rows == rows == len(state["events"])
    assert in_levels.state_size()[0] == in_one.state_size()[0] == 0


# --- many events -----------------------------------------------------------------------------------------------------

COINS = {"k": pl.Int64, "tick": pl.String}


def coins(choose, first, n, keys, late):
    """`n` tosses, a tenth of them late, and a promise about all but the last of them."""
    at = np.arange(first, first + n)
    at = np.maximum(at - np.where(choose.random(n) < 0.1, choose.integers(0, late, n), 0), 0)
    rows = pl.DataFrame(
        {"k": choose.integers(0, keys, n), "tick": pl.Series(["U", "D"]).gather(choose.integers(0, 2, n))}
    )
    return assemble(at, at, at + 1, rows, max(first - late, 0))


def last_toss_is_followed(keys):
    up, down = pl.col("tick") == "U", pl.col("tick") == "D"
    by = {"by": "k"} if keys > 1 else {}
    events = api.source("events", COINS)
    return operator_of(
        automata.regex("up down+ up", events, steps={"up": up, "down": down}, window=20_000 * 4, **by).plan, []
    )


@pytest.mark.parametrize("keys", [1, 5_000])
def test_small_chunks_after_many_events(keys, monkeypatch):
    in_one, in_levels = last_toss_is_followed(keys), last_toss_is_followed(keys)
    choose, at = np.random.default_rng(keys), 0
    for n in (50_000, 50_000, 1, 700, 1, 2_000, 3, 60, 1, 900, 1):
        chunk = coins(choose, at, n, keys, 20_000)
        at += n
        monkeypatch.setattr(levels, "FEW_EVENTS", INF)
        expected = in_one.process(0, chunk).rows
        monkeypatch.setattr(levels, "FEW_EVENTS", 1024)
        columns = expected.columns
        assert in_levels.process(0, chunk).rows.sort(columns).equals(expected.sort(columns))
    assert len(in_levels.levels.levels) > 1
    assert in_levels.levels.rows == len(in_one.levels.flat()[0]) > 90_000
