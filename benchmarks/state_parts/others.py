"""What an event costs by state, for the queries that have no bar: processor time of chunks of one event.

Two tables. **Live tuples**: aggregates that look at live tuples, top-k, the latency `ordered`, automata, loops and
logical merge, with few and with many live tuples. **Dense keys**: patterns with FIRST, LAST and CONSUME, by the number
of events of one key within the scope. Keys that would take too long are left out.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from harness import BenchmarkReport, median, spread

import cedr
from cedr.columnar.chunk import Chunk, assemble

STEP = 1_000
DELAY = 50
PARTS = 5
MOST_SECONDS = 2.0
"""After this time no more events of a part are measured, and no key that is denser."""
FEWEST = 12
"""Events that are always measured: state may move to blocks after some small chunks."""

Payload = Callable[[np.random.Generator, int, int], dict[str, object]]
"""The columns of some events, at a number of live tuples."""


def keyed(keys: int) -> Payload:
    return lambda rng, n, live: {"k": rng.integers(0, keys, n), "v": rng.random(n)}


def edges(rng: np.random.Generator, n: int, live: int) -> dict[str, object]:
    """As many nodes as edges: what is reachable is small."""
    return {"start": rng.integers(0, live, n), "end": rng.integers(0, live, n)}


def tosses(rng: np.random.Generator, n: int, live: int) -> dict[str, object]:
    ticks = pl.Series("tick", ["U", "D"]).gather(rng.integers(0, 2, n))
    return {"k": rng.integers(0, max(live // 10, 1), n), "tick": ticks}


@dataclass(frozen=True)
class Measured:
    """A query with `live` tuples; each event comes to all of its sources, one after the other."""

    make: Callable[[int], cedr.Stream]
    payload: Payload
    sources: tuple[str, ...] = ("events",)
    ends: bool = True
    """Whether events have lifetimes of their own."""


def source(name: str = "events") -> cedr.Stream:
    return cedr.source(name, {"k": pl.Int64, "v": pl.Float64}, vs="ts", ve="te")


def global_(**aggregates: object) -> Measured:
    return Measured(lambda live: source().agg(**aggregates), keyed(100))


def by_key(latency: str = "perfect", **aggregates: object) -> Measured:
    return Measured(lambda live: source().group_by("k").agg(**aggregates).with_latency(latency), keyed(1_000))


def automaton(live: int) -> cedr.Stream:
    ticks = cedr.source("events", {"k": pl.Int64, "tick": pl.String}, vs="ts")
    up, down = pl.col("tick") == "U", pl.col("tick") == "D"
    return cedr.regex("up down+ up", ticks, steps={"up": up, "down": down}, by="k", window=live * STEP)


def reachable(live: int) -> cedr.Stream:
    links = cedr.source("events", {"start": pl.Int64, "end": pl.Int64}, vs="ts", ve="te")
    return cedr.reachability(links, links.where(pl.col("start") < 10).select(node="start"))


def merged(live: int) -> cedr.Stream:
    return source("one").merge(source("two"))


LIVE: dict[str, Measured] = {
    "max": global_(m=cedr.max("v")),
    "max by key": by_key(m=cedr.max("v")),
    "first": global_(m=cedr.first("v")),
    "last": global_(m=cedr.last("v")),
    "median by key": by_key(m=cedr.median("v")),
    "count distinct by key": by_key(m=cedr.count_distinct("v")),
    "mode by key": by_key(m=cedr.mode("v")),
    "top 3": Measured(lambda live: source().top_k(3, "v"), keyed(100)),
    "top 3 by key": Measured(lambda live: source().group_by("k").top_k(3, "v"), keyed(1_000)),
    "ordered count": Measured(lambda live: source().agg(n=cedr.count()).with_latency("ordered"), keyed(100)),
    "ordered sum by key": by_key("ordered", s=cedr.sum("v")),
    "sort": Measured(lambda live: source().sort("v"), keyed(100)),
    "automaton": Measured(automaton, tosses, ends=False),
    "reachability": Measured(reachable, edges),
    "merge": Measured(merged, keyed(100), sources=("one", "two")),
}

DENSE = {
    "FIRST": "SEQUENCE(A x FIRST, B y, {w})",
    "FIRST with a condition": "SEQUENCE(A x FIRST, B y, {w}) WHERE x.v < y.v",
    "FIRST LAST of three": "SEQUENCE(A x FIRST, B y LAST, C z, {w})",
    "CONSUME of three": "SEQUENCE(A x FIRST CONSUME, B y FIRST CONSUME, C z CONSUME, {w})",
    "LAST of four": "SEQUENCE(A x LAST, B y LAST, A u LAST, C z, {w})",
    "FIRST in ATLEAST": "ATLEAST(2, A x FIRST, B y FIRST, C z FIRST, {w})",
}


def dense(text: str) -> Callable[[int], cedr.Stream]:
    def make(live: int) -> cedr.Stream:
        pattern, _, where = text.format(w=f"{live * STEP} microseconds").partition(" WHERE ")
        where = f" WHERE {where}" if where else ""
        schema = {"k": pl.Int64, "v": pl.Float64, "kind": pl.String}
        events = cedr.source("events", schema, vs="ts", types="kind")
        return cedr.query(f"EVENT P WHEN {pattern}{where} OUTPUT y.v AS v", events)

    return make


def kinds(rng: np.random.Generator, n: int, live: int) -> dict[str, object]:
    kind = pl.Series("kind", ["A", "B", "C"]).gather(rng.integers(0, 3, n))
    return {"k": np.zeros(n, dtype=np.int64), "v": rng.random(n), "kind": kind}


def feed(query: Measured, live: int, first: int, n: int, chunk: int) -> Iterator[tuple[str, Chunk]]:
    """Events number `first` to `first + n`, a fifth of them late, with CTIs that are `DELAY` events behind."""
    rng = np.random.default_rng(first)
    numbers = np.arange(first, first + n)
    late = np.where(rng.random(n) < 0.2, rng.integers(0, DELAY, n), 0)
    vs = numbers[np.argsort(numbers + late, kind="stable")] * STEP
    ends = vs + (live * STEP if query.ends else 1)
    payload, latest = pl.DataFrame(query.payload(rng, n, live)), np.maximum.accumulate(vs)
    for a in range(0, n, chunk):
        b = min(a + chunk, n)
        part = assemble(vs[a:b], vs[a:b], ends[a:b], payload[a:b], int(latest[b - 1]) - DELAY * STEP)
        for name in query.sources:
            yield name, part


def cost(query: Measured, live: int, n: int) -> list[float]:
    """Microseconds of processor time per event in chunks of one event, in each part of the stream."""
    engine = query.make(live).engine()
    loaded = live + live // 10 + 1
    for name, part in feed(query, live, 0, loaded, max(live // 4, 1)):
        engine.push(name, part)
    found = []
    for number in range(PARTS + 1):
        chunks = list(feed(query, live, loaded + number * n, n, 1))
        start, done = time.process_time(), 0
        while done < len(chunks) and (done < FEWEST or time.process_time() - start < MOST_SECONDS):
            engine.push(*chunks[done])
            done += 1
        found.append((time.process_time() - start) / done * len(query.sources) * 1e6)
    return found[1:]


def names() -> list[str]:
    return [*LIVE, *DENSE]


def run(report: BenchmarkReport, quick: bool, wanted: list[str]) -> None:
    for name in wanted:
        if name in LIVE:
            live_tuples(report, name, (100, 1_000) if quick else (1_000, 100_000), 10 if quick else 60)
        elif name in DENSE:
            dense_key(report, name, (10, 30) if quick else (10, 100, 1_000, 10_000), 5 if quick else 30)


def live_tuples(report: BenchmarkReport, name: str, sizes: tuple[int, int], n: int) -> None:
    cost(LIVE[name], min(sizes), n)  # compiles what it needs
    costs = {}
    for live in sizes:
        found = cost(LIVE[name], live, n)
        costs[live] = median(found)
        report.add(f"{name}, {live:,} live", costs[live], "us/event", spread=spread(found))
    report.add(f"{name}, ratio", costs[sizes[1]] / costs[sizes[0]], "x")


def dense_key(report: BenchmarkReport, name: str, sizes: tuple[int, ...], n: int) -> None:
    query = Measured(dense(DENSE[name]), kinds, ends=False)
    cost(query, min(sizes), n)
    for live in sizes:
        start = time.process_time()
        found = cost(query, live, n)
        report.add(f"{name}, {live:,} events of a key", median(found), "us/event", spread=spread(found))
        if time.process_time() - start > MOST_SECONDS:
            return
