"""The engine on one core, compared with plain polars programs over the sorted input.

Streams are generated from a seed: 2,000 events a second of stream time, 1,000 keys, 20 % of the events late by up to
5 s, a CTI every 1,000 events (a chunk of 50,000 keeps the last), middle consistency, perfect latency. The polars
program gets all events at once, in order: the batch limit. Memory and growth are measured in processes of their own.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from harness import BenchmarkReport, alternate, median, one_core, spread

import cedr
from cedr.columnar.chunk import Chunk, assemble
from cedr.temporal.time import INF

SECOND = 1_000_000
RATE = 2_000
KEYS = 1_000
CHUNK = 50_000
SCHEMA = {"k": pl.Int64, "v": pl.Float64}
WINDOW = 10 * SECOND


def events(n: int, seed: int, rate: int = RATE) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts in arrival order, keys and values."""
    rng = np.random.default_rng(seed)
    start = np.sort(rng.integers(0, n * SECOND // rate, n))
    late = np.where(rng.random(n) < 0.2, rng.integers(0, 5 * SECOND, n), 0)
    order = np.argsort(start + late, kind="stable")
    return start[order], rng.integers(0, KEYS, n), rng.random(n)


def chunks(n: int, seed: int = 7, lifetime: int = 1, rate: int = RATE) -> Iterator[Chunk]:
    """The stream in chunks, made piece by piece, so that a long stream needs no more memory than a short one."""
    piece = 500_000
    for part in range(0, n, piece):
        size = min(piece, n - part)
        vs, keys, values = events(size, seed + part, rate)
        vs = vs + part * SECOND // rate
        after = np.append(np.minimum.accumulate(vs[::-1])[::-1], INF if part + size == n else vs.max() + 1)
        for a in range(0, size, CHUNK):
            b = min(a + CHUNK, size)
            payload = pl.DataFrame({"k": keys[a:b], "v": values[a:b]})
            yield assemble(vs[a:b], vs[a:b], vs[a:b] + lifetime, payload, int(after[b]))


def source(name: str = "events") -> cedr.Stream:
    return cedr.source(name, SCHEMA, vs="ts")


QUERIES: dict[str, Callable[[], cedr.Stream]] = {
    "select/project": lambda: source().where(pl.col("v") > 0.5).select("k", w=pl.col("v") * 2 + 1),
    "sliding sum": lambda: source().sliding("10s").group_by("k").agg(s=cedr.sum("v")),
    "hopping count/sum/avg/max": lambda: (
        source()
        .hopping("10s", "1s")
        .group_by("k")
        .agg(n=cedr.count(), s=cedr.sum("v"), a=cedr.avg("v"), m=cedr.max("v"))
    ),
    "tumbling count/sum": lambda: source().tumbling("10s").group_by("k").agg(n=cedr.count(), s=cedr.sum("v")),
}
BARS = {"select/project": 20, "sliding sum": 3, "hopping count/sum/avg/max": 3, "tumbling count/sum": 6}


def engine_run(query: cedr.Stream, feed: list[tuple[str, Chunk]]) -> tuple[int, int]:
    """Rows put out, and the most state rows held after a chunk."""
    engine = query.engine()
    rows = state = 0
    for name, chunk in feed:
        rows += len(engine.push(name, chunk))
        state = max(state, sum(op.metrics.state_rows for op in engine.operators))
    return rows, state


# --- the same answers from sorted input, in one go ----------------------------------------------------------------


def batch_select(data: pl.DataFrame) -> pl.DataFrame:
    return data.filter(pl.col("v") > 0.5).select("k", "t", w=pl.col("v") * 2 + 1)


def batch_sliding(data: pl.DataFrame) -> pl.DataFrame:
    starts = data.select("k", "t", d="v", n=pl.lit(1))
    ends = data.select("k", t=pl.col("t") + WINDOW, d=-pl.col("v"), n=pl.lit(-1))
    return (
        pl.concat([starts, ends])
        .group_by("k", "t")
        .agg(pl.sum("d"), pl.sum("n"))
        .sort("k", "t")
        .with_columns(
            s=pl.col("d").cum_sum().over("k"), live=pl.col("n").cum_sum().over("k"), ve=pl.col("t").shift(-1).over("k")
        )
        .filter(pl.col("live") > 0)
    )


def batch_hopping(data: pl.DataFrame) -> pl.DataFrame:
    hops = data.with_columns(w=pl.col("t") // SECOND).with_columns(w=pl.concat_list(pl.col("w") + i for i in range(10)))
    aggregates = (pl.len().alias("n"), pl.sum("v").alias("s"), pl.mean("v").alias("a"), pl.max("v").alias("m"))
    return hops.explode("w").group_by("k", "w").agg(*aggregates)


def batch_tumbling(data: pl.DataFrame) -> pl.DataFrame:
    return data.group_by("k", w=pl.col("t") // WINDOW).agg(n=pl.len(), s=pl.sum("v"))


BATCH = {
    "select/project": batch_select,
    "sliding sum": batch_sliding,
    "hopping count/sum/avg/max": batch_hopping,
    "tumbling count/sum": batch_tumbling,
}

JOIN_LIFETIME = 5 * SECOND // 4


def join_query() -> cedr.Stream:
    return source("left").join(source("right"), on="k")


def batch_join(left: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame:
    """Overlaps by buckets as long as a lifetime: a partner starts in the same bucket or a neighbouring one."""
    buckets = left.with_columns(b=pl.col("t") // JOIN_LIFETIME).with_columns(
        b=pl.concat_list(pl.col("b") + i for i in (-1, 0, 1))
    )
    pairs = buckets.explode("b").join(right.with_columns(b=pl.col("t") // JOIN_LIFETIME), on=["k", "b"])
    return pairs.filter((pl.col("t") - pl.col("t_right")).abs() < JOIN_LIFETIME)


def run(report: BenchmarkReport, quick: bool = False) -> None:
    one_core()
    n = 100_000 if quick else 1_000_000
    rounds = 2 if quick else 5
    feed = [("events", chunk) for chunk in chunks(n)]
    data = pl.concat([c.rows.select("k", "v", t="_vs") for _, c in feed]).sort("t")
    for name, make in QUERIES.items():
        query = make()
        rows, state = engine_run(query, feed)
        contestants = {"cedr": partial(engine_run, query, feed), "polars": partial(BATCH[name], data)}
        compare(report, name, n, contestants, rounds, BARS[name], rows / n, state)
    compare_joins(report, n, rounds)
    rates(report, n, rounds)
    memory(report, quick)
    growth(report, quick)


def compare(report, name, n, contestants, rounds, bar, ratio, state):
    seconds = alternate(contestants, rounds)
    speeds = {who: [n / s / 1e6 for s in taken] for who, taken in seconds.items()}
    note = f"{ratio:.2f} rows out per event, {state:,} state rows"
    report.add(name, median(speeds["cedr"]), "M events/s", bar=bar, spread=spread(speeds["cedr"]), note=note)
    report.add(f"{name}, polars batch", median(speeds["polars"]), "M events/s", spread=spread(speeds["polars"]))


def compare_joins(report: BenchmarkReport, n: int, rounds: int) -> None:
    left, right = (list(chunks(n // 2, seed, JOIN_LIFETIME, RATE // 2)) for seed in (7, 8))
    feed = [item for pair in zip(left, right, strict=True) for item in zip(("left", "right"), pair, strict=True)]
    tables = [pl.concat([c.rows.select("k", "v", t="_vs") for c in side]).sort("t") for side in (left, right)]
    query = join_query()
    rows, state = engine_run(query, feed)
    contestants = {"cedr": partial(engine_run, query, feed), "polars": partial(batch_join, *tables)}
    compare(report, "temporal equijoin", n, contestants, rounds, 2, rows / n, state)


def rates(report: BenchmarkReport, n: int, rounds: int) -> None:
    """The same at other rates, without bars: which query is slow depends on the rate, so one rate alone would flatter.

    At a high rate a chunk is no longer than the lateness, and more of what was emitted is repaired; at a low one few
    events share a window.
    """
    for rate in (1_000, 5_000, 10_000, 20_000):
        feed = [("events", chunk) for chunk in chunks(n, rate=rate)]
        for name in ("sliding sum", "hopping count/sum/avg/max"):
            query = QUERIES[name]()
            rows, _ = engine_run(query, feed)
            seconds = alternate({"cedr": partial(engine_run, query, feed)}, rounds)["cedr"]
            speeds = [n / s / 1e6 for s in seconds]
            note = f"{rows / n:.2f} rows out per event"
            report.add(f"{name}, {rate:,} events/s", median(speeds), "M events/s", spread=spread(speeds), note=note)


# --- memory and growth, each in its own process --------------------------------------------------------------------

PROBE = """
import json, sys, time
sys.path.insert(0, {folder!r})
import engine
engine.one_core()
n, kind, rate = {n}, {kind!r}, {rate}
query = engine.QUERIES[kind]()
engine.engine_run(query, [("events", c) for c in engine.chunks(100_000)])
running, busy, state = query.engine(), 0.0, 0
for chunk in engine.chunks(n, rate=rate):
    start = time.perf_counter()
    running.push("events", chunk)
    busy += time.perf_counter() - start
    state = max(state, sum(op.metrics.state_rows for op in running.operators))
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps([busy / n * 1e9, int(status["VmHWM"].split()[0]) / 1024, state]))
"""


def probe(n: int, kind: str, rate: int = RATE) -> tuple[float, float, int]:
    """Nanoseconds per event, peak memory in MiB, most state rows."""
    code = PROBE.format(folder=str(Path(__file__).parent), n=n, kind=kind, rate=rate)
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    nanoseconds, peak, state = json.loads(out.stdout)
    return nanoseconds, peak, state


def memory(report: BenchmarkReport, quick: bool) -> None:
    small = 1_000_000 // (10 if quick else 1)
    for kind in ("sliding sum", "hopping count/sum/avg/max"):
        _, one, _ = probe(small, kind)
        _, ten, _ = probe(10 * small, kind)
        report.add(f"{kind}, memory of 10x the events", ten / one, "x", bar=1.2, at_most=True, note=f"{ten:,.0f} MiB")


def growth(report: BenchmarkReport, quick: bool) -> None:
    for n in (100_000, 1_000_000) if quick else (100_000, 1_000_000, 10_000_000):
        nanoseconds, _, _ = probe(n, "sliding sum")
        report.add(f"sliding sum, {n:,} events", nanoseconds, "ns/event")
    for live in (1_000, 100_000) if quick else (1_000, 100_000, 1_000_000):
        nanoseconds, _, state = probe(max(4 * live, 400_000), "sliding sum", rate=live // 10)
        report.add(f"sliding sum, {live:,} live tuples", nanoseconds, "ns/event", note=f"{state:,} state rows")
