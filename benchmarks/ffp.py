"""Loops: how closely High-Water-Mark, Probing and Hybrid follow progress, and mending a graph instead of searching it.

Section 5 of the FFP paper with reachability in a window as the loop. 100 edges between two punctuations, which are 100
chronons apart; after each chunk there are a few turns, so that rows still circulate when the next comes.

    disorder     every 100th edge comes early, by some punctuations
    rate         chunks without anything between those with edges
    lulls        edges between two punctuations are left out at random

*Lag* is how far the definite punctuations are behind real progress, the earliest time of all that is still told, on
average. The least that any method can have is that of the inputs' own punctuations: half their distance, as times pass
evenly between two of them, and more in a lull.

Then a graph of 100,000 edges of which 1 % change per batch: what is reachable from 100 sources, mended and anew.
"""

import time
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import mean

import numpy as np
import polars as pl

import cedr
from cedr.bench import Report, median, one_core, spread
from cedr.columnar.chunk import Chunk, assemble, empty
from cedr.operators.reach import Reach
from cedr.runtime.engine import Engine
from cedr.temporal.time import INF, MIN

APART = 100
NODES = 400
LIFE = 200
TURNS = 4
METHODS = ("hwm", "probing", "hybrid")
EDGES = {"start": pl.Int64(), "end": pl.Int64()}
LAG_BAR = 1.2
MENDED_BAR = 20

IDLE = 100
"""So many chunks without anything at the end: first for the loop to come to rest, then to see who still speculates."""


def run(report: Report, quick: bool = False) -> None:
    one_core()
    chunks = 20 if quick else 150
    for shift in (0, 2, 5, 10):
        compare(report, f"disorder {shift}", feed(chunks, early=shift))
    for idle in (1, 4, 16):
        compare(report, f"{idle} idle between", feed(chunks, idle=idle))
    for lull in (0.0, 0.5, 0.9):
        compare(report, f"lulls {lull:.0%}", feed(chunks, lull=lull))
    if find_spec("scipy") is None:
        report.say("scipy is not installed: a graph searched anew is not measured (pip install scipy)")
        return
    for expire in (True, False):
        mending(report, 10_000 if quick else 100_000, 20 if quick else 100, expire=expire)


# --- section 5 -----------------------------------------------------------------------------------------------------


def feed(chunks: int, early: int = 0, idle: int = 0, lull: float = 0.0) -> list[Chunk]:
    random = np.random.default_rng(7)
    vs = np.arange(chunks * APART)
    arrival = np.where((vs % 100 == 99) & (early > 0), vs // APART - early, vs // APART)
    start, end = random.integers(0, NODES, len(vs)), random.integers(0, NODES, len(vs))
    found: list[Chunk] = []
    for number in range(chunks):
        mine = np.flatnonzero(arrival == number)
        if random.random() < lull:
            mine = mine[:0]
        payload = pl.DataFrame({"start": start[mine], "end": end[mine]}, schema=EDGES)
        found.append(assemble(vs[mine], vs[mine], vs[mine] + LIFE, payload, (number + 1) * APART))
        found += [empty(EDGES)] * idle
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


def follow(progress: str, fed: list[Chunk]) -> Followed:
    edges = cedr.source("edges", EDGES)
    sources = edges.where(pl.col("start") < NODES // 20).select(node="start")
    engine = cedr.reachability(edges, sources, progress=progress, turns=TURNS).engine()
    explicit, external, told, synopsis, silences = [0], [0], [], [], []
    last = time.perf_counter()
    for chunk in fed:
        out = engine.push("edges", chunk)
        if out.cti != MIN:
            now = time.perf_counter()
            silences.append(now - last)
            last = now
        explicit.append(max(explicit[-1], out.cti))
        external.append(max(external[-1], chunk.cti))
        told.append(int(out.sync.min(initial=INF)))
        synopsis.append(engine.loop_metrics()["synopsis_rows"][0])
    silences.append(time.perf_counter() - last)
    found = engine.loop_metrics().row(0, named=True)
    counts = found["speculative_punctuations"], found["definite_punctuations"]
    lag, least = (mean(behind(times[1:], told)) + APART / 2 for times in (explicit, external))
    return Followed(lag, least, *counts, mean(synopsis), max(silences), idle_speculations(engine))


def behind(progress: list[int], told: list[int]) -> list[int]:
    """After each chunk how far progress is behind the earliest time that is still told later."""
    real = np.minimum.accumulate(told[::-1])[::-1]
    return [max(int(r) - p, 0) for r, p in zip(real[1:], progress[:-1], strict=True) if r != INF]


def idle_speculations(engine: Engine) -> float:
    counts = []
    for _ in range(2):
        for _ in range(IDLE):
            engine.push("edges", empty(EDGES))
        counts.append(engine.loop_metrics()["speculative_punctuations"][0])
    return (counts[1] - counts[0]) / IDLE


def compare(report: Report, title: str, fed: list[Chunk]) -> None:
    found = {progress: follow(progress, fed) for progress in METHODS}
    for progress, f in found.items():
        note = (
            f"{f.speculative:,} speculative, {f.definite:,} definite punctuations; "
            f"{f.synopsis:,.0f} rows held; longest silence {f.silence * 1000:,.0f} ms"
        )
        bar = {"bar": LAG_BAR, "at_most": True} if progress == "hybrid" else {}
        report.add(f"{title}: lag of {progress} over the least", f.lag / f.least, "x", note=note, **bar)
    idle, note = found["hybrid"].idle, f"of probing {found['probing'].idle:,.3g}, of hwm {found['hwm'].idle:,.3g}"
    report.add(f"{title}: speculations of hybrid per chunk at rest", idle, "", bar=0.0, at_most=True, note=note)


# --- mending against searching anew --------------------------------------------------------------------------------


def mending(report: Report, n_edges: int, n_sources: int, *, expire: bool) -> None:
    """Batches in which one edge of 200 goes and as many come, 1 % in all. Edges that expire are told with their end;
    the others are told without, and taken back. The rival builds its graph and searches from each source."""
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

    def told(which: np.ndarray, batch: int) -> Chunk:
        until = ends[batch, which] if expire else np.full(len(which), INF)
        return assemble(began[which], began[which], until, pairs(start[which], end[which]), batch + 1)

    roots, zero = pl.DataFrame({"node": sources}), np.zeros(n_sources, dtype=np.int64)
    engine.push("sources", assemble(zero, zero, np.full(n_sources, INF), roots, INF))
    engine.push("edges", told(all_edges, 0))
    mended, anew, reached = [], [], 0
    for batch in range(1, batches + 1):
        mine = went[batch - 1]
        old = began[mine], np.full(len(mine), INF), np.full(len(mine), batch)
        gone = assemble(*old, pairs(start[mine], end[mine]))
        start[mine], end[mine] = (random.integers(0, nodes, len(mine)) for _ in range(2))
        began[mine] = batch
        come = told(mine, batch)
        chunk = come if expire else Chunk(pl.concat([gone.rows, come.rows]), come.cti)
        since = time.perf_counter()
        engine.push("edges", chunk)
        mended.append(time.perf_counter() - since)
        since = time.perf_counter()
        found = searched(start, end, nodes, sources)
        anew.append(time.perf_counter() - since)
        reached = pairs_of(found, start, end, sources)
    operator = engine.operators[-1]
    assert isinstance(operator, Reach)
    assert reached == int((operator.parents >= 0).sum()), "both must find the same"
    mended, anew = mended[1:], anew[1:]
    title = f"{n_edges:,} edges {'that expire' if expire else 'taken back'}, {n_sources} sources"
    report.add(f"{title}: a batch mended", median(mended) * 1000, "ms", spread=spread(mended))
    report.add(f"{title}: searched anew by scipy", median(anew) * 1000, "ms", spread=spread(anew))
    ratio = median(anew) / median(mended)
    report.add(f"{title}: mending is faster by", ratio, "x", bar=MENDED_BAR, note=f"{reached:,} pairs are reachable")


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
