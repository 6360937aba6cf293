"""State larger than memory: a keyed join and a sliding count with many live tuples, in memory and with a limit.

Each query first gets as many tuples as it shall hold, then as many chunks in a steady state as are measured. It runs in
a process of its own, once without a limit and once with `state_memory`; reported are the largest resident size of the
process and the events per second of processor time, in the steady state. Answers of the measured part are compared with
DuckDB for a sample of keys.
"""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from harness import BenchmarkReport

import cedr
from cedr.columnar.chunk import Chunk, assemble
from cedr.columnar.mapped import MEMORY

STEP = 1_000
"""Microseconds between two events."""
CHUNK = 5_000
SAMPLE = 200
"""One key of this many is compared."""
SOURCES = {"join": ("left", "right"), "sliding count": ("events",)}
BAR_BYTES, BAR_THROUGHPUT = 2.0, 0.3


@dataclass(frozen=True)
class MemorySetting:
    """Live tuples with and without a limit, the limit, and events that are measured. What fits into memory may be less
    than what does not; then throughput in memory is that of the smaller state."""

    live: int
    in_memory: int
    limit: str
    events: int


FULL = MemorySetting(100_000_000, 25_000_000, "1g", 500_000)
QUICK = MemorySetting(200_000, 200_000, "2m", 40_000)


def keys(live: int) -> int:
    return max(live // 10, 1)


def query(name: str, live: int) -> cedr.Stream:
    if name == "join":
        schema = {"k": pl.Int64, "v": pl.Float64}
        left, right = (cedr.source(side, schema, vs="ts", ve="te") for side in SOURCES[name])
        return left.join(right, on="k")
    return cedr.source("events", {"k": pl.Int64}, vs="ts").sliding(live * STEP).group_by("k").agg(n=cedr.count())


def chunks(name: str, live: int, first: int, n: int) -> Iterator[tuple[str, Chunk]]:
    """Events number `first` to `first + n`. Tuples of the join live as long as `live` events take."""
    for at in range(first, first + n, CHUNK):
        size = min(CHUNK, first + n - at)
        rng = np.random.default_rng(at)
        vs = np.arange(at, at + size) * STEP
        columns = {"k": rng.integers(0, keys(live), size)}
        if name == "join":
            columns["v"] = rng.random(size)
        ends = vs + (live * STEP if name == "join" else 1)
        source = SOURCES[name][at // CHUNK % len(SOURCES[name])]
        yield source, assemble(vs, vs, ends, pl.DataFrame(columns), int(vs[-1]))


def measured(name: str, live: int, limit: str | None, n: int) -> dict[str, float | bool]:
    engine = query(name, live).engine(state_memory=limit)
    loaded = (live + live // 20) // CHUNK * CHUNK
    began = time.perf_counter()
    for source, chunk in chunks(name, live, 0, loaded):
        engine.push(source, chunk)
    load = time.perf_counter() - began
    feed = list(chunks(name, live, loaded, n))
    emitted, cpu, wall = [], time.process_time(), time.perf_counter()
    for source, chunk in feed:
        out = engine.push(source, chunk)
        emitted.append(out.rows.filter(pl.col("k") % SAMPLE == 0))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "rate": n / cpu,
        "wall": n / wall,
        "load": loaded / load,
        "peak": peak,
        "disk": MEMORY.on_disk / 2**30,
        "rows": sum(operator.metrics.state_rows for operator in engine.operators),
        "same": same(name, live, loaded, n, pl.concat(emitted)),
    }


# --- the same in DuckDB -----------------------------------------------------------------------------------------------

JOIN = """
SELECT greatest(l._vs, r._vs) AS vs, least(l._ve_new, r._ve_new) AS ve, l.k, l.v, r.v AS v_right
FROM events l JOIN events r ON l.k = r.k
WHERE l.source = 'left' AND r.source = 'right' AND l._vs < r._ve_new AND r._vs < l._ve_new
AND greatest(l._vs, r._vs) >= $1
ORDER BY ALL
"""
COUNT = """
WITH times AS (SELECT k, _vs AS t, 1 AS n FROM events UNION ALL SELECT k, _vs + $1, -1 FROM events),
changes AS (SELECT k, t, sum(n) AS n FROM times GROUP BY ALL),
counts AS (SELECT k, t AS vs, lead(t) OVER by_key AS ve, sum(n) OVER by_key AS n FROM changes
           WINDOW by_key AS (PARTITION BY k ORDER BY t)),
periods AS (SELECT k, vs, ve, n FROM counts WHERE n > 0)
SELECT p.vs, p.ve, p.k, p.n::BIGINT AS n FROM periods p SEMI JOIN (SELECT k, min(_vs) AS a, max(_vs) AS b FROM emitted
GROUP BY k) e ON p.k = e.k AND p.vs BETWEEN e.a AND e.b ORDER BY ALL
"""


def same(name: str, live: int, loaded: int, n: int, emitted: pl.DataFrame) -> bool:
    """Whether the answer to the measured chunks is DuckDB's, for a sample of keys."""
    import duckdb

    parts = [
        chunk.rows.filter(pl.col("k") % SAMPLE == 0).with_columns(source=pl.lit(source))
        for source, chunk in chunks(name, live, 0, loaded + n)
    ]
    with duckdb.connect(config={"threads": 1}) as store:
        store.execute("SET enable_progress_bar = false")
        store.register("events", pl.concat(parts))
        store.register("emitted", emitted)
        if name == "join":
            wanted = store.execute(JOIN, [loaded * STEP]).pl()
        else:
            wanted = store.execute(COUNT, [live * STEP]).pl()
    found = emitted.select(vs="_vs", ve="_ve_new", **{column: column for column in wanted.columns[2:]})
    return found.height > 0 and found.cast(dict(wanted.schema)).sort(found.columns).equals(wanted)


# --- the report -------------------------------------------------------------------------------------------------------

PROBE = """
import json, sys
sys.path.insert(0, {folder!r})
from harness import one_core
from state_parts import memory
one_core()
print(json.dumps(memory.measured({name!r}, {live}, {limit!r}, {events})))
"""


def probe(name: str, live: int, limit: str | None, events: int) -> dict[str, float | bool]:
    folder = str(Path(__file__).parents[1])
    code = PROBE.format(folder=folder, name=name, live=live, limit=limit, events=events)
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found: dict[str, float | bool] = json.loads(out.stdout.splitlines()[-1])
    return found


def run(report: BenchmarkReport, quick: bool = False) -> None:
    setting = QUICK if quick else FULL
    for name in SOURCES:
        plain = probe(name, setting.in_memory, None, setting.events)
        limited = probe(name, setting.live, setting.limit, setting.events)
        add(report, f"{name}, {setting.in_memory:,} live in memory", plain)
        title = f"{name}, {setting.live:,} live, state_memory {setting.limit}"
        add(report, title, limited)
        bars = (None, None) if quick else (BAR_BYTES, BAR_THROUGHPUT)
        report.add(f"{title}: resident", limited["peak"], "GiB", bar=bars[0], at_most=True)
        report.add(f"{title}: part of the throughput", limited["rate"] / plain["rate"], "x", bar=bars[1])
        report.add(f"{title}: answers as DuckDB", float(limited["same"] and plain["same"]), "of 1", bar=1.0)


def add(report: BenchmarkReport, title: str, found: dict[str, float | bool]) -> None:
    note = (
        f"resident {found['peak']:.2f} GiB, files {found['disk']:.2f} GiB, {found['rows']:,} state rows, "
        f"by the clock {found['wall'] / 1e3:,.0f} k events/s, loaded at {found['load'] / 1e3:,.0f} k events/s"
    )
    report.add(title, found["rate"] / 1e3, "k events/s", note=note)
