"""cedr on Spark compared with Spark's streaming operators: the same files and results, one machine, two cores.

4 M events from a seed, 1,000 keys, 2,000 events for each second of event time (another rate: CEDR_BENCH_RATE), 20 % of
them late by up to 5 s, in 8 Parquet files; a micro-batch reads one file. cedr runs at middle consistency, Spark in
append mode with a watermark of 5 s, both write Parquet. One event far in the future ends each stream, so that Spark
writes its last rows too. Each side runs in a process of its own. The first quarter of the batches warms up and the
flush is not a steady state: neither counts. Memory is the peak of all processes of a side together. Some of cedr's
rows are repairs. Final answers must be equal, sums and averages within 1e-9.

Growth: the same query where events live for 5 s and for 500 s, so that 10 k and 1 M tuples are alive, with the same
events per batch and the same number of result rows.

The parts, for --only, are the workloads (`--only pattern`) and growth.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from harness import BenchmarkReport
from rich.table import Table

from cedr.temporal.errors import QueryError

sys.path.insert(0, str(Path(__file__).parent))

from peers import data
from peers.answers import disagreement
from peers.data import Shape
from peers.measure import Measured, measure, warm_up
from peers.processes import SideFailedError
from peers.rooms import room
from peers.side import read_cedr, read_spark
from peers.workload import Workload
from peers.workloads import COMPARED, FEW, GROWING, MANY

SHAPE = Shape(events=4_000_000, files=8, keys=1_000, rate=int(os.environ.get("CEDR_BENCH_RATE", "2000")))
QUICK = replace(SHAPE, events=80_000, files=4)
SPARK, CEDR = "spark", "cedr"
GROWTH, GROWTH_BAR = "growth", 1.3
BATCH_SPAN = 250
"""Seconds of event time in a batch where growth is measured: MANY are two batches long."""


def run(report: BenchmarkReport, quick: bool = False, only: str = "") -> None:
    parts = list(dict.fromkeys([*map(part_of, COMPARED), GROWTH]))
    asked = {name.strip() for name in only.split(",") if name.strip()} or set(parts)
    if unknown := sorted(asked.difference(parts)):
        raise QueryError(f"--only {only}: nothing is called {unknown[0]!r}; there are: {', '.join(parts)}")
    shape = QUICK if quick else SHAPE
    report.print(
        f"{shape.events:,} events in {shape.files} batches at {shape.rate:,} events/s of event time; the first "
    )
    report.print(f"{warm_up(shape)} batches warm up and do not count, nor does the flush")
    found = {}
    for workload in (workload for workload in COMPARED if part_of(workload) in asked):
        with failing(report, workload.name):
            found[workload.name] = compare(report, workload, shape, quick)
    for name, variants in GROWING.items() if GROWTH in asked else ():
        with failing(report, f"{name}, growth"):
            growth(report, name, variants, shape, quick)
    if found:
        report.console.print(summary(found))


def part_of(workload: Workload) -> str:
    return workload.name.partition(",")[0]


@contextmanager
def failing(report: BenchmarkReport, name: str) -> Iterator[None]:
    """A side that fails or hangs fails the benchmark, but not the measurements that follow."""
    try:
        yield
    except SideFailedError as e:
        report.print(str(e))
        report.add(f"{name}: ran to its end", 0, "of 1", bar=1)


def compare(report: BenchmarkReport, workload: Workload, shape: Shape, quick: bool) -> dict[str, Measured]:
    report.print(f"{workload.name}; elsewhere, on two cores: {workload.reference}")
    with room() as folder:
        data.write(folder / "in", workload.streams, shape)
        sides = {s: measure(s, workload, shape, folder / "in", folder / s) for s in (SPARK, CEDR)}
        answers = workload.cedr_answer(read_cedr(folder / CEDR)), read_spark(folder / SPARK)
        wrong = disagreement(f"{workload.name}, cedr", *answers, workload.exact)
    add_figures(report, f"{workload.name}, Spark's own", sides[SPARK], f"state store {workload.state_store}")
    add_figures(report, f"{workload.name}, cedr", sides[CEDR])
    ratio = sides[CEDR].speed / sides[SPARK].speed
    report.add(f"{workload.name}: cedr over Spark's own", ratio, "x", bar=None if quick else workload.bar or None)
    report.add(f"{workload.name}: answers agree", float(wrong is None), "of 1", bar=1, note=wrong or "")
    return sides


def add_figures(report: BenchmarkReport, name: str, found: Measured, note: str = "") -> None:
    report.add(name, found.speed / 1e3, "k events/s", note=note)
    report.add(f"{name}: batch, median", found.typical, "s")
    report.add(f"{name}: batch, longest", max(found.seconds), "s")
    report.add(f"{name}: peak memory", found.peak / 1024, "GiB")
    report.add(f"{name}: rows written", found.rows / 1e6, "M rows")


def summary(found: dict[str, dict[str, Measured]]) -> Table:
    """Both sides in a few lines; the report has the same figures one by one."""
    table = Table(title="Side by side: cedr / Spark's own")
    for name in ("", "k events/s", "times", "batch (s)", "longest (s)", "memory (GiB)", "rows written (M)"):
        table.add_column(name, justify="right" if name else "left")
    for name, sides in found.items():
        pair = sides[CEDR], sides[SPARK]
        table.add_row(
            name,
            side_by_side(m.speed / 1e3 for m in pair),
            f"{pair[0].speed / pair[1].speed:.1f}",
            side_by_side(m.typical for m in pair),
            side_by_side(max(m.seconds) for m in pair),
            side_by_side(m.peak / 1024 for m in pair),
            side_by_side(m.rows / 1e6 for m in pair),
        )
    return table


def side_by_side(values: Iterable[float]) -> str:
    return " / ".join(f"{value:,.4g}" if value >= 1000 else f"{value:.3g}" for value in values)


def growth(report: BenchmarkReport, name: str, variants: dict[int, Workload], shape: Shape, quick: bool) -> None:
    found = {length: grown(variant, length, shape) for length, variant in variants.items()}
    for length, side in found.items():
        note = f"{max(side.state_rows):,} state rows, {side.rows:,} rows written"
        report.add(f"{name}, events live {length} s: batch, median", side.typical, "s", note=note)
    ratio = found[MANY].typical / found[FEW].typical
    bar = None if quick else GROWTH_BAR
    report.add(f"{name}: batch with {MANY // FEW}x the live tuples", ratio, "x", bar=bar, at_most=True)


def grown(workload: Workload, length: int, shape: Shape) -> Measured:
    """Keys grow with the tuples that are alive where pairs are sought, so that there are as many pairs."""
    rate = shape.events // shape.files // BATCH_SPAN
    keys = rate * length if len(workload.streams) > 1 else shape.keys
    lively = replace(shape, rate=rate, keys=keys)
    with room() as folder:
        data.write(folder / "in", workload.streams, lively)
        return measure(CEDR, workload, lively, folder / "in", folder / CEDR)
