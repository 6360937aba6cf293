"""Loops: how closely the three methods follow progress, and updating a graph query compared with searching again.

Section 5 of the FFP paper, with two loops: the W query over coin tosses, as in the paper, and reachability in a window.
100 events between two punctuations, which are 100 chronons apart; after each chunk there are a few turns, so that rows
still circulate when the next comes.

    disorder     every 100th event comes early, by some punctuations      Figures 6, 8, 10
    rate         chunks without anything between those with events        Figure 7
    lulls        events between two punctuations are left out at random   Figures 9, 11

*Lag* is how far the definite punctuations are behind real progress, the earliest time of all that is still emitted, on
average. The least that any method can have is that of the inputs' own punctuations: half their distance, as times pass
evenly between two of them, and more in a lull.

Then a graph of 100,000 edges of which 1 % change per batch: reachability from 100 sources, updated and searched again.
Then 4,000 edges in 1, 2 and 4 shards; another number of edges: CEDR_BENCH_EVENTS.

The parts, for --only, are figures, updating and shards.
"""

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import mean

import numpy as np
import polars as pl
from harness import BenchmarkReport, events, median, one_core, spread

import cedr
from cedr.columnar.chunk import Chunk, assemble, empty
from cedr.operators.reach import ReachOperator
from cedr.plots import Plot
from cedr.runtime.engine import Engine
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF, MIN

sys.path.insert(0, str(Path(__file__).parent))

import automata
from looping.shards import shards

APART = 100
NODES = 400
ITERATIONS = 4
METHODS = ("hwm", "probing", "hybrid")
EDGES = {"start": pl.Int64(), "end": pl.Int64()}
LAG_BAR = 1.2
UPDATED_BAR = 20


PARTS = ("figures", "updating", "shards")


def run(report: BenchmarkReport, quick: bool = False, only: str = "") -> None:
    one_core()
    asked = {name.strip() for name in only.split(",") if name.strip()} or set(PARTS)
    if unknown := sorted(asked - set(PARTS)):
        raise QueryError(f"--only {only}: nothing is called {unknown[0]!r}; there are: {', '.join(PARTS)}")
    if "figures" in asked:
        for loop in (Loop.w(), Loop.reachability()):
            evaluate(report, loop, QUICK if quick else FULL)
    if "updating" in asked and find_spec("scipy") is None:
        report.print("scipy is not installed: searching the graph again is not measured (pip install scipy)")
    elif "updating" in asked:
        for expire in (True, False):
            updating(report, 10_000 if quick else 100_000, 20 if quick else 100, expire=expire, bar=not quick)
    if "shards" in asked:
        shards(report, events(400 if quick else 4_000), 1 if quick else 3)


@dataclass(frozen=True)
class Size:
    chunks: int
    early: tuple[int, ...]
    idle: tuple[int, ...]
    lulls: tuple[float, ...]
    bar: float | None
    """For the lag of Hybrid."""
    rest: int
    """Empty chunks at the end: the loop comes to rest, and then it shows which method still speculates."""


FULL = Size(150, (0, 2, 5, 10), (1, 4, 16), (0.0, 0.5, 0.9), LAG_BAR, 100)
QUICK = Size(8, (0, 3), (4,), (0.5,), None, 10)


# --- section 5 -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Loop:
    """A query with a loop over one source, and random events for it."""

    name: str
    source: str
    schema: Mapping[str, pl.DataType]
    life: int
    query: Callable[[str], cedr.Stream]
    """By the method of finding progress."""
    payload: Callable[[np.random.Generator, int], pl.DataFrame]

    @staticmethod
    def w() -> "Loop":
        return Loop(
            "W",
            "ticks",
            {"key": pl.Int64(), "tick": pl.String()},
            1,
            lambda progress: automata.query(None, plan="recursive", progress=progress, iterations_per_chunk=ITERATIONS),
            lambda random, n: pl.DataFrame({"key": np.zeros(n, dtype=np.int64), "tick": random.choice(["U", "D"], n)}),
        )

    @staticmethod
    def reachability() -> "Loop":
        edges = cedr.source("edges", EDGES)
        sources = edges.where(pl.col("start") < NODES // 20).select(node="start")
        return Loop(
            "reachability",
            "edges",
            EDGES,
            200,
            lambda progress: cedr.reachability(edges, sources, progress=progress, iterations_per_chunk=ITERATIONS),
            lambda random, n: pairs(random.integers(0, NODES, n), random.integers(0, NODES, n)),
        )


def evaluate(report: BenchmarkReport, loop: Loop, size: Size) -> None:
    """The figures of section 5 for one loop."""

    def plot(figure: int, what: str, x: str, y: str, log: str = "") -> Plot:
        title = f"Figure {figure}, {loop.name}: {what}"
        return report.plot(f"{loop.name.lower()}_figure_{figure}", title, x, y, log)

    early, idle, lull = "punctuations that every 100th event comes early", "idle chunks between", "lulls, %"
    state = plot(6, "what joins hold over disorder", early, "rows, on average")
    emitted = plot(8, "output punctuations over disorder", early, "definite punctuations")
    lag = plot(10, "lag over disorder", early, "lag over the least")
    rate = plot(7, "speculation over the rate", idle, "speculative punctuations", "y")
    guesses = plot(9, "speculation over lulls", lull, "speculative punctuations", "y")
    silence = plot(11, "liveliness over lulls", lull, "longest silence, ms", "y")
    for shift in size.early:
        found = compare(report, loop, f"disorder {shift}", feed(loop, size.chunks, early=shift), size, lag, shift)
        for progress, f in found.items():
            state.add(progress, shift, f.synopsis)
            emitted.add(progress, shift, f.definite)
    for chunks in size.idle:
        found = compare(report, loop, f"{chunks} idle between", feed(loop, size.chunks, idle=chunks), size)
        for progress, f in found.items():
            rate.add(progress, chunks, f.speculative)
    for share in size.lulls:
        found = compare(report, loop, f"lulls {share:.0%}", feed(loop, size.chunks, lull=share), size)
        for progress, f in found.items():
            guesses.add(progress, 100 * share, f.speculative)
            silence.add(progress, 100 * share, 1000 * f.silence)


def feed(loop: Loop, chunks: int, early: int = 0, idle: int = 0, lull: float = 0.0) -> list[Chunk]:
    random = np.random.default_rng(7)
    vs = np.arange(chunks * APART)
    arrival = np.where((vs % 100 == 99) & (early > 0), vs // APART - early, vs // APART)
    payload = loop.payload(random, len(vs))
    found: list[Chunk] = []
    for number in range(chunks):
        mine = np.flatnonzero(arrival == number)
        if random.random() < lull:
            mine = mine[:0]
        found.append(assemble(vs[mine], vs[mine], vs[mine] + loop.life, payload[mine], (number + 1) * APART))
        found += [empty(dict(loop.schema))] * idle
    return found


@dataclass(frozen=True)
class Followed:
    lag: float
    least: float
    speculative: int
    definite: int
    synopsis: float
    silence: float
    """The longest time without progress, in seconds."""
    idle: float
    """Speculative punctuations per chunk when the loop is at rest and nothing comes."""


def follow(loop: Loop, progress: str, fed: list[Chunk], rest: int) -> Followed:
    engine = loop.query(progress).engine()
    explicit, external, emitted, synopsis, silences = [0], [0], [], [], []
    last = time.perf_counter()
    for chunk in fed:
        out = engine.push(loop.source, chunk)
        if out.cti != MIN:
            now = time.perf_counter()
            silences.append(now - last)
            last = now
        explicit.append(max(explicit[-1], out.cti))
        external.append(max(external[-1], chunk.cti))
        emitted.append(int(out.sync.min(initial=INF)))
        synopsis.append(engine.loop_metrics()["synopsis_rows"][0])
    silences.append(time.perf_counter() - last)
    found = engine.loop_metrics().row(0, named=True)
    counts = found["speculative_punctuations"], found["definite_punctuations"]
    lag, least = (mean(behind(times[1:], emitted)) + APART / 2 for times in (explicit, external))
    return Followed(lag, least, *counts, mean(synopsis), max(silences), idle_speculations(loop, engine, rest))


def behind(progress: list[int], emitted: list[int]) -> list[int]:
    """After each chunk how far progress is behind the earliest time that is still emitted later."""
    real = np.minimum.accumulate(emitted[::-1])[::-1]
    return [max(int(r) - p, 0) for r, p in zip(real[1:], progress[:-1], strict=True) if r != INF]


def idle_speculations(loop: Loop, engine: Engine, rest: int) -> float:
    counts = []
    for _ in range(2):
        for _ in range(rest):
            engine.push(loop.source, empty(dict(loop.schema)))
        counts.append(engine.loop_metrics()["speculative_punctuations"][0])
    return (counts[1] - counts[0]) / rest


def compare(
    report: BenchmarkReport,
    loop: Loop,
    title: str,
    fed: list[Chunk],
    size: Size,
    plot: Plot | None = None,
    x: float = 0,
) -> dict[str, Followed]:
    title = f"{loop.name}, {title}"
    found = {progress: follow(loop, progress, fed, size.rest) for progress in METHODS}
    for progress, f in found.items():
        note = (
            f"{f.speculative:,} speculative, {f.definite:,} definite punctuations; "
            f"{f.synopsis:,.0f} rows held; longest silence {f.silence * 1000:,.0f} ms"
        )
        more = {"bar": size.bar, "at_most": True} if progress == "hybrid" else {}
        at = plot.at(progress, x) if plot else None
        report.add(f"{title}: lag of {progress} over the least", f.lag / f.least, "x", note=note, at=at, **more)
    idle, note = found["hybrid"].idle, f"of probing {found['probing'].idle:,.3g}, of hwm {found['hwm'].idle:,.3g}"
    report.add(f"{title}: speculations of hybrid per chunk at rest", idle, "", bar=0.0, at_most=True, note=note)
    return found


# --- updating against searching again --------------------------------------------------------------------------------


def updating(report: BenchmarkReport, n_edges: int, n_sources: int, *, expire: bool, bar: bool = True) -> None:
    """Batches in which one edge of 200 is removed and as many are added, 1 % in all. Edges that expire are inserted
    with their end; the others without, and retracted. The rival builds its graph and searches from each source."""
    random = np.random.default_rng(11)
    nodes = n_edges // 5
    start, end = (random.integers(0, nodes, n_edges) for _ in range(2))
    sources = random.choice(nodes, n_sources, replace=False)
    batches = 12
    went = [random.choice(n_edges, n_edges // 200, replace=False) for _ in range(batches)]
    ends = np.full((batches + 1, n_edges), INF)  # by batch, when an edge that is there then goes
    for batch in reversed(range(batches)):
        ends[batch] = ends[batch + 1]
        ends[batch, went[batch]] = batch + 1
    edges = cedr.source("edges", EDGES, insert_only=expire)
    engine = cedr.reachability(edges, cedr.source("sources", {"node": pl.Int64()}), settled=True).engine()
    began = np.zeros(n_edges, dtype=np.int64)
    all_edges = np.arange(n_edges)

    def edge_chunk(which: np.ndarray, batch: int) -> Chunk:
        until = ends[batch, which] if expire else np.full(len(which), INF)
        return assemble(began[which], began[which], until, pairs(start[which], end[which]), batch + 1)

    roots, zero = pl.DataFrame({"node": sources}), np.zeros(n_sources, dtype=np.int64)
    engine.push("sources", assemble(zero, zero, np.full(n_sources, INF), roots, INF))
    engine.push("edges", edge_chunk(all_edges, 0))
    updated, again, reached = [], [], 0
    for batch in range(1, batches + 1):
        mine = went[batch - 1]
        old = began[mine], np.full(len(mine), INF), np.full(len(mine), batch)
        gone = assemble(*old, pairs(start[mine], end[mine]))
        start[mine], end[mine] = (random.integers(0, nodes, len(mine)) for _ in range(2))
        began[mine] = batch
        come = edge_chunk(mine, batch)
        chunk = come if expire else Chunk(pl.concat([gone.rows, come.rows]), come.cti)
        since = time.perf_counter()
        engine.push("edges", chunk)
        updated.append(time.perf_counter() - since)
        since = time.perf_counter()
        found = searched(start, end, nodes, sources)
        again.append(time.perf_counter() - since)
        reached = pairs_of(found, start, end, sources)
    operator = engine.operators[-1]
    assert isinstance(operator, ReachOperator)
    assert reached == int((operator.parents >= 0).sum()), "both must find the same"
    updated, again = updated[1:], again[1:]
    title = f"{n_edges:,} edges {'that expire' if expire else 'taken back'}, {n_sources} sources"
    report.add(f"{title}: a batch updated", median(updated) * 1000, "ms", spread=spread(updated))
    report.add(f"{title}: searched again by scipy", median(again) * 1000, "ms", spread=spread(again))
    ratio = median(again) / median(updated)
    note = f"{reached:,} pairs are reachable"
    report.add(f"{title}: updating is faster by", ratio, "x", bar=UPDATED_BAR if bar else None, note=note)


def pairs(start: np.ndarray, end: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame({"start": start, "end": end}, schema=EDGES)


def searched(start: np.ndarray, end: np.ndarray, nodes: int, sources: np.ndarray) -> list[np.ndarray]:
    """The nodes that a search from each source meets, itself among them."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    graph = csr_array((np.ones(len(start), dtype=np.int8), (start, end)), shape=(nodes, nodes))
    return [breadth_first_order(graph, s, return_predecessors=False) for s in sources]


def pairs_of(found: list[np.ndarray], start: np.ndarray, end: np.ndarray, sources: np.ndarray) -> int:
    """How many pairs that is; a source reaches itself only by way of a cycle."""
    cycles = [np.isin(start[end == s], nodes).any() for s, nodes in zip(sources, found, strict=True)]
    return sum(map(len, found)) - len(found) + int(np.sum(cycles))
