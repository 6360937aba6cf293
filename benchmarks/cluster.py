"""A cluster compared with one process: where shards run, what is replayed, and what an event costs.

Executors are processes of this machine (`local-cluster`), so more of them do not make it faster; what is measured is
what a cluster adds. Micro-batches of 20,000 events, the first ones warm up. A shard has *moved* if its task did not
find the engine of the micro-batch before and had to replay packets or read a snapshot. The time of the processor is
that of all processes: Java, Python workers, shards. Answers of all runs must be equal.

The parts, for --only, are the workloads: hopping, join, pattern; and shards, with more of them than cores.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
from harness import BenchmarkReport, median

from cedr.temporal.errors import QueryError

sys.path.insert(0, str(Path(__file__).parent))

from clustered.driver import WARM_UP
from peers import data
from peers.data import Shape
from peers.processes import SideFailedError, watch
from peers.rooms import room
from peers.side import read_cedr
from peers.workloads import WORKLOADS

FOLDER = Path(__file__).parent
ALONE, SHARDS = "local[2]", 4
EXECUTORS = (2, 4, 8)
MEMORY = 1024
"""MB of a worker; its executor takes less."""
MOVED_BAR, REPLAYED_BAR, PROCESSOR_BAR = 0.01, 0.02, 1.3
SHAPE = Shape(events=760_000, files=38, keys=1_000, rate=2_000)
QUICK = Shape(events=24_000, files=12, keys=100, rate=2_000)
LIMIT = 1_800.0
MANY_SHARDS = "shards"

Outcome = Mapping[str, Any]


def run(report: BenchmarkReport, quick: bool = False, only: str = "") -> None:
    parts = ["hopping", "join", "pattern", MANY_SHARDS]
    asked = [name.strip() for name in only.split(",") if name.strip()] or parts
    if unknown := sorted(set(asked) - set(parts)):
        raise QueryError(f"--only {only}: nothing is called {unknown[0]!r}; there are: {', '.join(parts)}")
    for name in asked:
        if name == MANY_SHARDS:
            compare(report, "hopping", (2,), 8, quick)
        else:
            compare(report, name, (2,) if quick else EXECUTORS, SHARDS, quick)


def compare(report: BenchmarkReport, name: str, executors: tuple[int, ...], shards: int, quick: bool) -> None:
    shape = QUICK if quick else SHAPE
    with room() as folder:
        data.write(folder / "in", WORKLOADS[name].streams, shape)
        try:
            alone, expected = outcome(name, ALONE, shards, folder, folder / "alone")
            about = f"{name}, {shards} shards"
            report.add(f"{about}, {ALONE}: processor", per_event(alone), "us/event")
            report.add(f"{about}, {ALONE}: batch, median", *batch_seconds(alone))
            for number in executors:
                master = f"local-cluster[{number},1,{MEMORY}]"
                found, answer = outcome(name, master, shards, folder, folder / str(number))
                add_figures(report, f"{about}, {number} executors", found, shards, per_event(alone), quick)
                report.add(f"{about}, {number} executors: answers agree", float(answer.equals(expected)), "of 1", bar=1)
        except SideFailedError as e:
            report.print(str(e))
            report.add(f"{name}: ran to its end", 0, "of 1", bar=1)


def outcome(name: str, master: str, shards: int, folder: Path, out: Path) -> tuple[Outcome, pl.DataFrame]:
    out.mkdir()
    paths = {"PYTHONPATH": str(FOLDER), "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    command = [sys.executable, "-m", "clustered.driver", master, name, str(shards), str(folder / "in"), str(out)]
    found: Outcome = watch(command, {**os.environ, **paths}, LIMIT, out).result
    answer = read_cedr(out)
    return found, answer.sort(answer.columns)


def add_figures(report: BenchmarkReport, about: str, found: Outcome, shards: int, alone: float, quick: bool) -> None:
    counted = steady(found)
    moved = sum(b["moved"] for b in counted) / (len(counted) * stages(found, shards) * shards)
    replayed = sum(b["replayed"] for b in counted) / sum(b["rows_in"] for b in counted)
    bars = (None, None, None) if quick else (MOVED_BAR, REPLAYED_BAR, PROCESSOR_BAR)
    report.add(f"{about}: tasks that did not find their engine", moved, "of all", bar=bars[0], at_most=True)
    report.add(f"{about}: rows replayed", replayed, "of rows worked", bar=bars[1], at_most=True)
    report.add(f"{about}: processor", per_event(found), "us/event")
    report.add(f"{about}: processor over {ALONE}", per_event(found) / alone, "x", bar=bars[2], at_most=True)
    report.add(f"{about}: batch, median", *batch_seconds(found))


def stages(found: Outcome, shards: int) -> int:
    """Workloads of this benchmark have one stage with keys."""
    return 1


def steady(found: Outcome) -> list[dict[str, Any]]:
    """Without the first batches, and without the flush and the end."""
    return [b for b in found["batches"] if b["batch"] >= WARM_UP and b["rows_in"] > 1]


def per_event(found: Outcome) -> float:
    """Microseconds of processor time, from the first report after the warm-up to the last one."""
    used = {int(batch): seconds for batch, seconds in found["used"].items()}
    first, last = min(used), max(used)
    rows = sum(b["rows_in"] for b in found["batches"] if first < b["batch"] <= last)
    return (used[last] - used[first]) / rows * 1e6


def batch_seconds(found: Outcome) -> tuple[float, str]:
    return median([b["seconds"] for b in steady(found)]), "s"
