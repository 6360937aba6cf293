"""Consistency trade-offs (CEDR, Figure 8): blocking, state and output of strong, middle and weak.

One query, a sliding average per key, over the same events in high order (1 % late, a CTI every 1,000 events) and in low
order (30 % late by up to 30 s, a CTI every 20,000 events). Blocking is the mean time an event waits in Align, in
seconds of stream time, by Little's law: rows held on average over rows per second. State is the mean number of rows
all operators hold. Output counts rows, and of these the repairs; lost counts events given up on. The paper's table is
qualitative: the bars are its orderings.
"""

import numpy as np
import polars as pl
from harness import BenchmarkReport
from rich.table import Table

import cedr
from cedr.columnar.chunk import Chunk, assemble
from cedr.operators.align import AlignOperator
from cedr.temporal.time import INF, MIN

SECOND = 1_000_000
RATE = 1_000
SCHEMA = {"k": pl.Int64, "v": pl.Float64}
LEVELS = {"strong": cedr.STRONG, "middle": cedr.MIDDLE, "weak": cedr.WEAK}
ORDERS = {"high": (0.01, 1, 1_000), "low": (0.3, 30, 20_000)}  # share late, seconds late, events per CTI


def feed(n: int, late: float, by: int, every: int, chunk: int = 1_000) -> list[Chunk]:
    rng = np.random.default_rng(11)
    start = np.sort(rng.integers(0, n * SECOND // RATE, n))
    delay = np.where(rng.random(n) < late, rng.integers(0, by * SECOND, n), 0)
    order = np.argsort(start + delay, kind="stable")
    vs, keys, values = start[order], rng.integers(0, 100, n), rng.random(n)
    after = np.append(np.minimum.accumulate(vs[::-1])[::-1], INF)
    found = []
    for a in range(0, n, chunk):
        b = a + chunk
        promise = int(after[b]) if b % every == 0 or b >= n else MIN
        rows = pl.DataFrame({"k": keys[a:b], "v": values[a:b]})
        found.append(assemble(vs[a:b], vs[a:b], vs[a:b] + 1, rows, promise))
    return found


def measure(level: cedr.Consistency, chunks: list[Chunk]) -> dict[str, float]:
    events = cedr.source("events", SCHEMA, vs="ts")
    query = events.sliding("10s").group_by("k").agg(mean=cedr.avg("v")).with_latency("ordered").with_consistency(level)
    engine = query.engine()
    held, state, rows, repairs, lost = [], [], 0, 0, 0
    for chunk in chunks:
        out = engine.push("events", chunk)
        rows += len(out)
        repairs += len(out) - int(out.is_insert.sum())
        lost += engine.take_late().height
        sizes = {type(op): op.state_size()[0] for op in engine.operators}
        held.append(sizes.get(AlignOperator, 0))
        state.append(sum(sizes.values()))
    n = sum(map(len, chunks))
    return {
        "blocking": float(np.mean(held)) / RATE,
        "state": float(np.mean(state)),
        "output": rows / n,
        "repairs": repairs / n,
        "lost": lost / n,
    }


def figure_8(found: dict[tuple[str, str], dict[str, float]]) -> Table:
    table = Table(title="Figure 8, measured")
    for name in ("consistency", "orderliness", "blocking (s)", "state (rows)", "output (rows/event)"):
        table.add_column(name, justify="right" if "(" in name else "left")
    for (level, order), values in sorted(found.items(), key=lambda item: list(LEVELS).index(item[0][0])):
        cells = (f"{values['blocking']:.1f}", f"{values['state']:,.0f}", f"{values['output']:.2f}")
        table.add_row(level, order, *cells)
    return table


UNITS = {"blocking": "s", "state": "rows", "output": "rows/event", "repairs": "rows/event", "lost": "of the events"}


def run(report: BenchmarkReport, quick: bool = False) -> None:
    n = 40_000 if quick else 400_000
    found: dict[tuple[str, str], dict[str, float]] = {}
    for order, settings in ORDERS.items():
        chunks = feed(n, *settings)
        for name, level in LEVELS.items():
            found[name, order] = measure(level, chunks)
            for what, unit in UNITS.items():
                report.add(f"{name}, {order} order: {what}", found[name, order][what], unit)
    report.console.print(figure_8(found))
    strong, middle, weak = (found[name, "low"] for name in LEVELS)
    report.add("low order: blocking, strong over middle", strong["blocking"] - middle["blocking"], "s more", bar=1)
    report.add("low order: output, middle over strong", middle["output"] / strong["output"], "x", bar=1.0)
    report.add("low order: state, weak over middle", weak["state"] / middle["state"], "x", bar=1.0, at_most=True)
    report.add("low order: output, weak over middle", weak["output"] / middle["output"], "x", bar=1.0, at_most=True)
    report.add("lost at strong and middle", strong["lost"] + middle["lost"], "events", bar=0, at_most=True)
