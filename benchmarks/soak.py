"""Replicas that are killed again and again, with a cutover in the middle: one unbroken answer, equal to the oracle's.

`cedr replicas run` with three replicas and their merge, each a process with a Spark of its own, over files that keep
coming. Members are killed (-9) at random moments, the merge among them, and in the middle a new version of the query
with another plan takes over. In the end the merged table must be the oracle's, to the row.
"""

import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from harness import BenchmarkReport

sys.path.insert(0, str(Path(__file__).parent))

from replicated.trial import Load, Trial

KILLS, MINUTES = 50, 5
SEED = int(os.environ.get("CEDR_BENCH_SEED", "1"))


def run(report: BenchmarkReport, quick: bool = False) -> None:
    folder = Path(tempfile.mkdtemp(prefix="cedr-soak-"))
    kills, replicas = (4, 2) if quick else (KILLS, 3)
    load = Load(files=40, rows=500, pace=1.0) if quick else Load(files=600, rows=2_000, pace=1.0)
    trial = Trial(folder, load, replicas)
    try:
        soak(report, trial, kills, 0 if quick else MINUTES * 60)
    except AssertionError as e:
        report.console.print(str(e), markup=False, highlight=False)
        report.add("same answer", 0, "of 1", bar=1, note="it got nowhere")
    finally:
        trial.end()
        shutil.rmtree(folder)


def soak(report: BenchmarkReport, trial: Trial, kills: int, seconds: float) -> None:
    rng, began = random.Random(SEED), time.perf_counter()
    killed: Counter[str] = Counter()
    trial.wait(lambda: trial.control.status())
    cutover = None
    while killed.total() < kills or time.perf_counter() - began < seconds:
        trial.wait(lambda: True)
        if cutover is None and killed.total() >= kills // 2:
            cutover = trial.cut_over()
            report.print(f"  after {time.perf_counter() - began:.0f} s: the cutover begins")
        if killed.total() < kills and (name := trial.kill(rng)):
            killed[name] += 1
            report.print(f"  after {time.perf_counter() - began:.0f} s: {name} killed")
        time.sleep(rng.uniform(0.5, max(1.0, 1.6 * (seconds or 20) / kills)))
    assert cutover is not None
    trial.wait(lambda: cutover.poll() is not None)
    trial.finish.set()
    over = [name for name, desired in trial.control.desired().items() if desired.over]
    trial.wait(lambda: trial.process.poll() is not None)
    report.add("kills", killed.total(), "members", bar=kills, note=", ".join(f"{n} {k}" for n, k in killed.items()))
    report.add("time", time.perf_counter() - began, "s", bar=seconds or None)
    report.add("replicas retired by the cutover", len(over), "replicas", bar=trial.replicas, note=", ".join(over))
    expected, found = trial.load.expected(), trial.answer()
    report.add("rows of the answer", expected.height, "rows")
    report.add("same answer", float(found.equals(expected)), "of 1", bar=1)
    report.add("rows put aside", trial.late(), "rows", bar=0, at_most=True)
    for name, rows in trial.emitted().items():
        report.add(f"emitted by {name}", rows, "rows")
