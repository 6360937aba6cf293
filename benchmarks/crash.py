"""Crashes: drivers killed in the middle of their work, and the same answer in the end.

Each round runs a query over files on Spark, as a driver process of its own, and kills it with its JVM, from a seed, in
every phase: while it starts, while a batch is read, worked in, committed, and while the query closes. Each next driver
goes on from the same checkpoint, at once. In the end the table must be the one of a run in this process, the late rows
those of a driver that nobody killed, and no process may be left.

one stage    windows per sensor, into Parquet
two stages   a join by sensor, then sums by site, into Parquet
a database   the same, into DuckDB
"""

import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

import polars as pl
from harness import BenchmarkReport

sys.path.insert(0, str(Path(__file__).parent))

from crashes.driver import late, sink
from crashes.kills import Kill, Trial, moments
from crashes.victim import CrashError
from crashes.workload import QUERIES, Size, Tables, tables

ROUNDS = {"one stage": ("hopping", "parquet"), "two stages": ("sites", "parquet"), "a database": ("sites", "duckdb")}
SIZE, KILLS = Size(files=40, rows=3_000, note=400), 20
QUICK, FEW_KILLS = Size(files=4, rows=300), 3
SEED = int(os.environ.get("CEDR_BENCH_SEED", "1"))


def run(report: BenchmarkReport, quick: bool = False) -> None:
    size, kills = (QUICK, FEW_KILLS) if quick else (SIZE, KILLS)
    report.print(f"{size.files} files of {size.rows:,} rows, {kills} kills a round, seed {SEED}")
    for name, (query, kind) in ROUNDS.items():
        folder = Path(tempfile.mkdtemp(prefix="cedr-crash-"))
        try:
            crash(report, name, query, kind, size, kills, folder)
        finally:
            shutil.rmtree(folder)


def crash(report: BenchmarkReport, name: str, query: str, kind: str, size: Size, kills: int, folder: Path) -> None:
    """One round: a run without kills, and one with them."""
    given = tables(QUERIES[query](), size)
    calm, killed = (Trial(made(folder / which, given), query, kind) for which in ("calm", "killed"))
    try:
        alone = calm.run_to_the_end()
        report.print(
            f"{name}: {alone.seconds:.0f} s without kills, {alone.first_batch:.0f} s until the first batch is done"
        )
        began = time.perf_counter()
        hits = []
        drawn = moments(kills, size.files + 1, alone.first_batch, random.Random(f"{query}-{kind}-{SEED}"))
        for kill in killed.run_with_kills(drawn):
            report.print(f"  {kill}")
            hits.append(kill)
        report.add(f"{name}: kills", len(hits), "drivers", bar=kills, note=phases(hits))
        report.add(f"{name}: with kills", time.perf_counter() - began, "s", note=f"{alone.seconds:.0f} s without")
        wrong = disagreement(query, kind, given, killed.folder, calm.folder)
        report.add(f"{name}: same answer", float(wrong is None), "of 1", bar=1, note=wrong or "")
        report.add(f"{name}: processes left", len(killed.left()), "processes", bar=0, at_most=True)
    except CrashError as e:
        report.console.print(str(e), markup=False, highlight=False)
        report.add(f"{name}: same answer", 0, "of 1", bar=1, note="a driver failed")
    finally:
        calm.end()
        killed.end()


def made(folder: Path, given: Tables) -> Path:
    given.write(folder / "in")
    return folder


def phases(hits: list[Kill]) -> str:
    counts = pl.Series([kill.where for kill in hits]).value_counts(sort=True)
    return ", ".join(f"{count} {where}" for where, count in counts.iter_rows())


def disagreement(query: str, kind: str, given: Tables, folder: Path, calm: Path | None = None) -> str | None:
    """What is wrong with the answer of a run; None if nothing is. `calm` is where the same query ran without kills."""
    expected, unused = QUERIES[query]().run(iter(given.in_batches())), late(folder)
    compared = {
        "the table": (sink(kind, folder).read(), expected.table()),
        "late rows": (unused.drop("message"), expected.late().drop("message")),  # messages count the rows of a shard
    }
    if calm is not None:
        compared["late rows and those without kills"] = (unused, late(calm))
    found = ((what, difference(*frames)) for what, frames in compared.items())
    return next((f"{what}: {problem}" for what, problem in found if problem), None)


def difference(found: pl.DataFrame, expected: pl.DataFrame) -> str | None:
    """None if both have the same rows, each as often."""
    names = expected.columns
    if found.select(names).sort(names).equals(expected.sort(names)):
        return None
    missing = expected.join(found, on=names, how="anti", nulls_equal=True).height
    extra = found.join(expected, on=names, how="anti", nulls_equal=True).height
    return f"{found.height} rows for {expected.height}; {missing} are missing, {extra} should not be there"
