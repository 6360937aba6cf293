"""What a chunk costs when the state is large: cost per event by live tuples, for small chunks.

Each query first gets as many tuples as it shall hold, in large chunks, then small chunks in a steady state: as many
tuples end as arrive. Events come at a fixed rate, 20 % of them late by up to 50 events, and each chunk has a CTI 50
events behind the latest start, as a source with a delay gives it. So what a chunk changes is the same at all sizes, and
the ratio of the costs shows what depends on the size of the state. Each size is measured in a process of its own.

What a snapshot of large state writes is measured by `state_parts/checkpoint.py`.

Eager aggregates emit the snapshots of the future, too: a tuple that is added to a group of n changes n of them. They
are measured with ten tuples a group.

Queries without a bar, by live tuples and by events of one key: `state_parts/others.py`.
`--only memory` measures state that is larger than memory instead (`state_parts/memory.py`).
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from harness import BenchmarkReport, median, one_core, spread

import cedr
from cedr.columnar.chunk import Chunk, assemble
from cedr.temporal.errors import QueryError

sys.path.insert(0, str(Path(__file__).parent))

from state_parts import checkpoint, memory, others

STEP = 1_000
"""Microseconds between two events."""
DELAY = 50
"""Events that a late event may be behind, and the CTI is."""
SCHEMA = {"k": pl.Int64, "v": pl.Float64}
PIECE = 500_000


@dataclass(frozen=True)
class StateQuery:
    """A query that holds about `live` tuples: `make(live)`. `ends`: its tuples have lifetimes, not only starts."""

    make: Callable[[int], cedr.Stream]
    sources: tuple[str, ...] = ("events",)
    keys: Callable[[int], int] = lambda live: max(live // 10, 1)
    ends: bool = True
    kinds: bool = False


def source(name: str = "events") -> cedr.Stream:
    return cedr.source(name, SCHEMA, vs="ts", ve="te")


def span(live: int) -> int:
    """How long some events take."""
    return live * STEP


def pattern(live: int) -> cedr.Stream:
    events = cedr.source("events", {**SCHEMA, "kind": pl.String}, vs="ts", types="kind")
    text = f"EVENT F WHEN NOT(C z, SEQUENCE(A x, B y, {span(live)} microseconds)) WHERE CorrelationKey(k, EQUAL)"
    return cedr.query(f"{text} OUTPUT x.k AS k, x.v AS first, y.v AS second", events).with_latency("perfect")


def sum_by_key(live: int) -> cedr.Stream:
    return source().group_by("k").agg(s=cedr.sum("v"))


def distinct(live: int) -> cedr.Stream:
    return source().select("k").distinct()


def sliding_sum(live: int) -> cedr.Stream:
    return cedr.source("events", SCHEMA, vs="ts").sliding(span(live)).group_by("k").agg(s=cedr.sum("v"))


QUERIES: dict[str, StateQuery] = {
    "count": StateQuery(lambda live: source().agg(n=cedr.count())),
    "sum by key": StateQuery(sum_by_key, keys=lambda live: 100),
    "distinct": StateQuery(distinct, keys=lambda live: live),
    "sliding sum": StateQuery(sliding_sum, keys=lambda live: 1_000, ends=False),
    "eager sum by key": StateQuery(lambda live: sum_by_key(live).with_latency("eager")),
    "eager distinct": StateQuery(lambda live: distinct(live).with_latency("eager"), keys=lambda live: live),
    "eager sliding sum": StateQuery(lambda live: sliding_sum(live).with_latency("eager"), ends=False),
    "join": StateQuery(lambda live: source("left").join(source("right"), on="k"), ("left", "right"), lambda live: live),
    "pattern": StateQuery(pattern, ends=False, kinds=True),
    "session": StateQuery(
        lambda live: cedr.source("events", SCHEMA, vs="ts").session(span(live), by="k"),
        keys=lambda live: live,
        ends=False,
    ),
}


@dataclass(frozen=True)
class Setting:
    """Chunks of one size at a small and at a large number of live tuples, and how much more the latter may cost."""

    chunk: int
    small: int
    large: int
    bar: float
    events: int


SETTINGS = (Setting(1, 1_000, 1_000_000, 2.0, 1_000), Setting(1_000, 10_000, 10_000_000, 1.5, 50_000))
QUICK = (Setting(1, 100, 1_000, 2.0, 50), Setting(100, 1_000, 2_000, 1.5, 1_000))


def events(query: StateQuery, live: int, first: int, n: int, chunk: int) -> Iterator[tuple[str, Chunk]]:
    """Events number `first` to `first + n` in chunks, each to the next of the sources."""
    at = first
    while at < first + n:
        size = min(PIECE - PIECE % chunk, first + n - at) if chunk < PIECE else min(chunk, first + n - at)
        rng = np.random.default_rng(at)
        numbers = np.arange(at, at + size)
        late = np.where(rng.random(size) < 0.2, rng.integers(0, DELAY, size), 0)
        vs = numbers[np.argsort(numbers + late, kind="stable")] * STEP
        ends = vs + (span(live) if query.ends else 1)
        columns = {"k": rng.integers(0, query.keys(live), size), "v": rng.random(size)}
        if query.kinds:
            columns["kind"] = pl.Series(["A", "B", "C"]).gather(rng.integers(0, 3, size))
        payload = pl.DataFrame(columns)
        latest = np.maximum.accumulate(vs)
        for a in range(0, size, chunk):
            b = min(a + chunk, size)
            name = query.sources[(at + a) // chunk % len(query.sources)]
            yield name, assemble(vs[a:b], vs[a:b], ends[a:b], payload[a:b], int(latest[b - 1]) - DELAY * STEP)
        at += size


def measured(name: str, live: int, chunk: int, n: int) -> tuple[list[float], float, int]:
    """Microseconds per event in five parts of the stream, rows out per event, and rows of state."""
    query = QUERIES[name]
    engine = query.make(live).engine()
    load = min(max(live // 4, chunk), 1_000_000)
    loaded = -(-(live + live // 10) // load) * load
    for source_name, part in events(query, live, 0, loaded, load):
        engine.push(source_name, part)
    feed = list(events(query, live, loaded, 6 * n, chunk))
    each, rows, costs = len(feed) // 6, 0, []
    for part_of_feed in range(6):
        start = time.perf_counter()
        for source_name, part in feed[part_of_feed * each : (part_of_feed + 1) * each]:
            rows += len(engine.push(source_name, part))
        costs.append((time.perf_counter() - start) / n * 1e6)
    state = sum(op.metrics.state_rows for op in engine.operators)
    return costs[1:], rows / (6 * n), state


PROBE = """
import json, sys
sys.path.insert(0, {folder!r})
import state
state.one_core()
print(json.dumps(state.measured({name!r}, {live}, {chunk}, {events})))
"""


def probe(name: str, live: int, setting: Setting) -> tuple[list[float], float, int]:
    code = PROBE.format(
        folder=str(Path(__file__).parent), name=name, live=live, chunk=setting.chunk, events=setting.events
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    costs, rows, state = json.loads(out.stdout)
    return costs, rows, state


CHECKPOINT = {
    "checkpoint of a sum": QUERIES["sum by key"],
    "checkpoint of a join": QUERIES["join"],
    "checkpoint of a session": QUERIES["session"],
    "checkpoint of a semi join": StateQuery(
        lambda live: source("left").join(source("right"), on="k", how="semi"), ("left", "right"), lambda live: live
    ),
}
"""Queries whose snapshots are measured."""


def chosen(only: str) -> list[str]:
    available = [*QUERIES, *CHECKPOINT, *others.names()]
    wanted = [name.strip() for name in only.split(",")] if only else available
    for name in wanted:
        if name not in available:
            raise QueryError(f"--only {only}: nothing is called {name!r}; there are: {', '.join(available)}, memory")
    return wanted


def run(report: BenchmarkReport, quick: bool = False, only: str = "") -> None:
    one_core()
    if only == "memory":  # takes hours, so it runs only on request
        memory.run(report, quick)
        return
    for setting in QUICK if quick else SETTINGS:
        for name in chosen(only):
            if name in QUERIES:
                compare(report, name, setting, quick)
    for name in chosen(only):
        if name in CHECKPOINT:
            query = CHECKPOINT[name]
            checkpoint.measure(report, name, query.make, partial(events, query), quick)
    others.run(report, quick, chosen(only))


def compare(report: BenchmarkReport, name: str, setting: Setting, quick: bool) -> None:
    costs = {}
    for live in (setting.small, setting.large):
        found, rows, state = probe(name, live, setting)
        costs[live] = median(found)
        note = f"{rows:.2f} rows out per event, {state:,} state rows"
        title = f"{name}, chunks of {setting.chunk:,}, {live:,} live"
        report.add(title, costs[live], "us/event", spread=spread(found), note=note)
    ratio = costs[setting.large] / costs[setting.small]
    bar = None if quick else setting.bar
    report.add(f"{name}, chunks of {setting.chunk:,}, ratio", ratio, "x", bar=bar, at_most=True)
