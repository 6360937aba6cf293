"""The W query of the flying fixed point paper on one core, compared with a hand-written program.

1 M evenly weighted coin tosses from a seed, a window of 30 events, chunks of 50,000 with a CTI after each. The
automaton has the 7 states, 11 transitions and one register of the paper, whose native operator reached 150,000 events a
second. As there, results are computed and then dropped. Either complete runs are emitted, or all runs, as by the
paper's plan; in disorder every 100th toss arrives 1,000 tosses late. The loop by hand gets all tosses in order, with
nothing to repair.

The recursive plan finds the same in a loop, as the paper's cyclic plan did at 30,000 events a second. A turn lets all
runs take one event more, so it gets larger chunks: there are as many turns for a small one.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from harness import BenchmarkReport, alternate, median, one_core, spread

import cedr
from cedr.columnar.chunk import VS, Chunk, assemble
from cedr.columnar.tally import VE, Tally
from cedr.temporal.time import INF

sys.path.insert(0, str(Path(__file__).parent))

from by_hand.w_shapes import w_shapes

WINDOW = 30
CHUNK = 50_000
LOOP_CHUNK = 200_000
SHIFT = 1_000
KEYS = 1_000
BARS = {"W": 1.5, "W, recursive plan": 0.3}
COLUMNS = [VS, VE, "begin", "end"]

TICK, M = pl.col("tick"), pl.col("m")
UP, DOWN = TICK == "U", TICK == "D"
STEPS = {
    "first": UP,
    "down": cedr.step(DOWN, m=M + 1),
    "up": cedr.step(UP, m=M - 1),
    "on": cedr.step(UP & (M > 1), m=M - 1),
    "back": cedr.step(UP & (M == 1), m=M - 1),
}
TABLE = [
    ("S", "first", "U"), ("U", "down", "D"), ("D", "down", "D"), ("D", "up", "DU"), ("DU", "up", "DU"),
    ("DU", "down", "DUD"), ("DUD", "down", "DUD"), ("DUD", "on", "DUDU"), ("DUDU", "on", "DUDU"),
    ("DUD", "back", "F"), ("DUDU", "back", "F"),
]  # fmt: skip
TICKS = cedr.source("ticks", {"key": int, "tick": str}, vs="ts")


def query(final: str | None = "F", **options: str) -> cedr.Stream:
    shape = {"steps": STEPS, "registers": {"m": 0}, "window": WINDOW}
    return cedr.automaton(TICKS, TABLE, start="S", final=final, **shape, **options)


def expression() -> cedr.Stream:
    """The same as a regular expression."""
    steps = {"first": UP, "down": STEPS["down"], "up": STEPS["up"], "again": cedr.step(UP & (M > 0), m=M - 1)}
    found = cedr.regex("first down+ up+ down+ again+", TICKS, steps=steps, registers={"m": 0}, window=WINDOW)
    return found.where(M == 0)


def tosses(n: int, late: bool = False, keys: int = 1, size: int = CHUNK, seed: int = 7) -> list[Chunk]:
    """Of several keys each has its own clock, one toss a chronon."""
    rng = np.random.default_rng(seed)
    ticks = pl.Series("tick", ["U", "D"]).gather(rng.integers(0, 2, n))
    place = np.arange(n)
    order = np.argsort(place + np.where(late & (place % 100 == 0), SHIFT, 0), kind="stable")
    vs, rows = (place // keys)[order], pl.DataFrame([pl.Series("key", place % keys), ticks])[order]
    least = np.append(np.minimum.accumulate(vs[::-1])[::-1], INF)
    parts = [(a, min(a + size, n)) for a in range(0, n, size)]
    return [assemble(vs[a:b], vs[a:b], vs[a:b] + 1, rows[a:b], int(least[b])) for a, b in parts]


def run(report: BenchmarkReport, quick: bool = False) -> None:
    one_core()
    n = 100_000 if quick else 1_000_000
    feed, disorder, keyed = tosses(n), tosses(n, late=True), tosses(n, keys=KEYS)
    large, large_disorder = tosses(n, size=LOOP_CHUNK), tosses(n, late=True, size=LOOP_CHUNK)
    expected, loop = by_hand(feed), query(plan="recursive")
    contestants: dict[str, Callable[[], object]] = {
        "W": partial(push_all, query(), feed),
        "W, all runs emitted": partial(push_all, query(final=None), feed),
        "W, every 100th toss late": partial(push_all, query(), disorder),
        f"W, {KEYS:,} keys": partial(push_all, query(by="key"), keyed),
        "W as a regular expression": partial(push_all, expression(), feed),
        "W, recursive plan": partial(push_all, loop, large),
        "W, recursive plan, every 100th toss late": partial(push_all, loop, large_disorder),
        "W, by hand": partial(by_hand, feed),
    }
    seconds = alternate(contestants, 2 if quick else 5)
    speeds = {name: [n / s / 1e6 for s in taken] for name, taken in seconds.items()}
    for name, found in speeds.items():
        bar = None if quick else BARS.get(name)
        report.add(name, median(found), "M events/s", bar=bar, spread=spread(found))
    report.add("W over by hand", median(speeds["W"]) / median(speeds["W, by hand"]), "x")
    report.add("W over its recursive plan", median(speeds["W"]) / median(speeds["W, recursive plan"]), "x")
    note = f"{len(expected) / n:.3f} a toss"
    plans = {"in order": (query(), feed), "late": (query(), disorder), "regex": (expression(), feed)}
    plans |= {"recursive": (loop, large), "recursive, late": (loop, disorder)}
    for name, (made, rows) in plans.items():
        same = answer(made, rows) == expected
        report.add(f"W, {name}: answers agree", float(same), "of 1", bar=1, note=note)


def push_all(stream: cedr.Stream, feed: list[Chunk]) -> None:
    engine = stream.engine()
    for chunk in feed:
        engine.push("ticks", chunk)


def answer(stream: cedr.Stream, feed: list[Chunk]) -> list[tuple[int, ...]]:
    engine = stream.engine()
    tally = Tally(engine.schema)
    for chunk in feed:
        tally.add(engine.push("ticks", chunk))
    return sorted(tally.table().select(COLUMNS).rows())


def by_hand(feed: list[Chunk]) -> list[tuple[int, int, int, int]]:
    """Taking rows out of tables belongs to the work, as cedr gets tables too."""
    rows = (row for chunk in feed for row in chunk.rows.select(VS, "tick").iter_rows())
    return sorted(w_shapes(rows, WINDOW))
