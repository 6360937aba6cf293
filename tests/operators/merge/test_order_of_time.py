"""A merge that keeps the order of time does what one that passes over all nodes does: the same output after every
chunk, row by row, the same errors, and the same snapshots.

Inputs have one history. They send it in disorder, with wrong ends and with events that never were; some are ahead of
others, one fails and starts again, one lacks an event.
"""

import random
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from storage.through_bytes import through_bytes

from cedr.columnar import blocks, index
from cedr.columnar.chunk import assemble, chunk_of
from cedr.operators import locality
from cedr.operators.locality import Locality
from cedr.operators.merge.algorithms import ALGORITHMS
from cedr.plan.merge_policy import Policy
from cedr.temporal import Adjust, Cti, Insert, Row, StreamError
from cedr.temporal.time import INF

SCHEMA = {"p": pl.Int64(), "text": pl.String()}
POLICIES = {
    "first": Policy(),
    "reflect": Policy("reflect"),
    "leader": Policy("leader"),
    "half": Policy("half-frozen"),
    "most": Policy("fraction", 0.6),
    "lag": Policy("leader", lag=3),
    "slowest": Policy(progress="slowest"),
}


def history(choose, size, copies):
    """Events `(vs, ve, payload)`: some live long or for ever, many start together."""
    events = {}
    for i in range(size):
        vs = i // 2 + choose.randrange(3)
        payload = Row(p=choose.choice([None, 1, 2, 3]), text=choose.choice(["", "a", "a text longer than a view"]))
        ve = choose.choice([vs + 1, vs + 3, vs + 4, vs + 20, vs + 60, INF])
        events[vs, payload, choose.randrange(3) if copies else 0] = ve
    return [(vs, ve, payload) for (vs, payload, _), ve in events.items()]


def sent(choose, events):
    """Elements of one input, in slices with CTIs."""
    timed = []
    for vs, ve, payload in events:
        steps = [vs, *(vs + choose.randrange(0, 30) for _ in range(choose.choice([0, 0, 0, 1, 2]))), ve]
        timed += changes_of(choose, vs, payload, steps)
    for _ in range(len(events) // 8):  # never were
        vs = choose.randrange(len(events) // 2)
        payload = Row(p=-1 - choose.randrange(1000), text="")
        timed += changes_of(choose, vs, payload, [vs, vs + choose.randrange(1, 30), vs])
    timed.sort(key=lambda one: one[0])
    elements = [element for _, element in timed]
    coming = np.minimum.accumulate([*(e.sync for e in elements), INF][::-1])[::-1].tolist()
    slices, at, front = [], 0, -1
    while at < len(elements):
        n = choose.choice([0, 1, 1, 1, 2, 5])
        part, at = elements[at : at + n], at + n
        promise = min(coming[min(at, len(elements))], INF - 1)
        if promise > front and choose.random() < 0.5:
            front = promise - choose.choice([0, 0, 1]) if promise - 1 > front else promise
            part = [*part, Cti(front)]
        slices.append(part)
    return [*slices, [Cti(INF)]]


def changes_of(choose, vs, payload, ends):
    """Each end in the place of the one before, at the times when it arrives."""
    now = vs + choose.randrange(12)
    for old, new in pairwise(ends):
        if old != new:
            yield now, Insert(vs, new, payload) if old == vs else Adjust(vs, old, new, payload)
        now += choose.choice([0, 0, 1, 5, 30]) + choose.random()


def scripts(choose, events, ports):
    """What happens to each input, in its order."""
    found = [[("rows", part) for part in sent(choose, events)] for _ in range(ports)]
    if ports > 1 and choose.random() < 0.6:
        fails, join = choose.randrange(len(found[1])), choose.randrange(len(events) // 2)
        left = [event for event in events if event[1] >= join or choose.random() < 0.5]
        again = [("rows", part) for part in sent(choose, left)]
        found[1] = [*found[1][:fails], ("detach", None), ("attach", join), *again]
    if ports > 2 and choose.random() < 0.5:
        lacking = [event for event in events if choose.random() < 0.9]
        found[2] = [("rows", part) for part in sent(choose, lacking)]
    return found


def turns(choose, found):
    """Inputs in turn, now one ahead, now the other."""
    places, speeds = [0] * len(found), [choose.choice([1, 3, 9]) for _ in found]
    while any(place < len(steps) for place, steps in zip(places, found, strict=True)):
        left = [port for port, steps in enumerate(found) if places[port] < len(steps)]
        port = choose.choices(left, [speeds[p] for p in left])[0]
        yield port, *found[port][places[port]]
        places[port] += 1
        if choose.random() < 0.02:
            speeds = [choose.choice([1, 3, 9]) for _ in found]


def output(merge, port, action, argument):
    """What follows from a step, or the error. An input that is wrong is detached."""
    try:
        if action == "detach" and merge.attached[port]:
            merge.detach(port)
        elif action == "attach":
            merge.attach(port, argument)
        elif action == "rows" and merge.attached[port]:
            return [str(e) for e in merge.process(port, chunk_of(argument, SCHEMA)).elements()]
    except StreamError as error:
        merge.detach(port, "wrong")
        return [str(error)]
    return []


def same(one, two):
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[k], two[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, pl.DataFrame):
        return one.equals(two)
    return bool(np.array_equal(one, two)) if isinstance(one, np.ndarray) else one == two


def use_blocks(monkeypatch, answer):
    monkeypatch.setattr(Locality, "prefers_blocks", lambda self, rows, arrived, now: answer)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 4)
    monkeypatch.setattr(blocks, "SEGMENT_BITS", 1)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("algorithm", ["R3", "R4"])
def test_the_order_of_time_gives_what_a_pass_gives(algorithm, policy, seed, monkeypatch):
    choose = random.Random(f"{algorithm} {policy} {seed}")
    monkeypatch.setattr(index, "WORTH_COMPACTING", choose.choice([1, 10_000]))
    ports, changes = choose.choice([1, 2, 3, 3]), choose.choice([0.0, 0.1])
    make = lambda: ALGORITHMS[algorithm](SCHEMA, ports, POLICIES[policy])  # noqa: E731
    events = history(choose, 120, copies=algorithm == "R4")
    passing, ordered, in_order, used = make(), make(), True, 0
    for step in turns(choose, scripts(choose, events, ports)):
        use_blocks(monkeypatch, False)
        expected = output(passing, *step)
        in_order ^= choose.random() < changes
        use_blocks(monkeypatch, in_order)
        assert output(ordered, *step) == expected
        assert ordered.cti_out == passing.cti_out
        assert ordered.state_rows() == passing.state_rows()
        used += ordered.due is not None
        if choose.random() < 0.05:
            state = through_bytes(ordered.snapshot())
            assert same(state, through_bytes(passing.snapshot()))
            ordered = make() if choose.random() < 0.5 else ordered
            ordered.restore(state)
    assert ordered.state_rows() == 0
    assert used > 5


# --- many nodes ------------------------------------------------------------------------------------------------------


LIVE, MORE = 100_000, 300


def chunks_of(rng, port, chunk):
    """Events that live for `LIVE` others, a tenth of them with a wrong end at first; what comes has a CTI each."""
    n = LIVE + LIVE // 10 + MORE
    vs = np.arange(n) * 10
    end = vs + LIVE * 10 + vs // 10 % 7
    payload = pl.DataFrame({"p": np.arange(n) % 1000, "text": (np.arange(n) % 77).astype(str)}, schema=SCHEMA)
    first = np.where((np.arange(n) + port) % 10 == 0, end + 1_000, end)
    wrong = np.flatnonzero(first != end)
    number = np.concatenate((np.arange(n), wrong))
    old, new = np.concatenate((vs, first[wrong])), np.concatenate((first, end[wrong]))
    when = np.concatenate((vs + rng.integers(0, 300, n), end[wrong] - rng.integers(1, 300, len(wrong))))
    order = np.argsort(when, kind="stable")
    number, old, new = number[order], old[order], new[order]
    coming = np.minimum.accumulate(np.minimum(old, new)[::-1])[::-1]
    loaded = int(np.searchsorted(when[order], vs[LIVE + LIVE // 10]))
    for a in [*range(0, loaded, LIVE // 4), *range(loaded, loaded + chunk * MORE, chunk)]:
        b = min(a + LIVE // 4, loaded) if a < loaded else a + chunk
        if b < len(number):
            some = number[a:b]
            yield assemble(vs[some], old[a:b], new[a:b], payload[some], int(coming[b]))


@pytest.mark.parametrize("algorithm", ["R3", "R4"])
def test_small_chunks_of_many_nodes(algorithm, monkeypatch):
    monkeypatch.setattr(locality, "PATIENCE", 1)
    inputs = [list(chunks_of(np.random.default_rng(port), port, 1)) for port in range(2)]
    ordered, passing = (ALGORITHMS[algorithm](SCHEMA, 2) for _ in range(2))
    passing.may_use_blocks = False
    for step in range(len(inputs[0])):
        for port, chunks in enumerate(inputs):
            rows = ordered.process(port, chunks[step]).rows
            assert rows.equals(passing.process(port, chunks[step]).rows)
    assert passing.due is None
    assert ordered.due is not None
    assert ordered.live > LIVE // 2
    assert same(ordered.snapshot(), passing.snapshot())
