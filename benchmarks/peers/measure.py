"""What one system did with one workload: its speed once warm, its memory, its answer."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from cedr.cli.bench import ENVIRONMENT
from peers.data import Shape
from peers.processes import SideFailedError, Watched, watch
from peers.workload import Workload

FOLDER = Path(__file__).parents[1]
HOURS = 3600.0


@dataclass(frozen=True)
class Measured:
    """Only batches of the steady state count: not those that warm up, and not the flush."""

    events: int
    """In each batch."""
    seconds: list[float]
    """Of each batch that counts."""
    elapsed: float
    """From the start of the first of them to the end of the last."""
    peak: float
    """MiB, all processes."""
    rows: int
    """Put out in the whole run."""
    state_rows: list[int] = field(default_factory=list)

    @property
    def speed(self) -> float:
        """Events a second."""
        return self.events * len(self.seconds) / self.elapsed

    @property
    def typical(self) -> float:
        return median(self.seconds)


def warm_up(shape: Shape) -> int:
    """How many batches do not count at the beginning."""
    return shape.files // 4


def measure(system: str, workload: Workload, shape: Shape, data: Path, out: Path, limit: float = HOURS) -> Measured:
    """Run it in a process of its own, in a plain environment."""
    plain = {key: value for key, value in os.environ.items() if key not in ENVIRONMENT}
    python = {"PYTHONPATH": str(FOLDER), "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    out.mkdir(parents=True)
    command = [sys.executable, "-m", "peers.side", system, workload.name, str(data), str(out), workload.state_store]
    return measured(watch(command, {**plain, **python}, limit, out), shape)


def measured(watched: Watched, shape: Shape) -> Measured:
    batches = watched.result["batches"]
    if len(batches) <= shape.files:
        raise SideFailedError(
            f"{len(batches)} micro-batches for {shape.files} files and the flush: files were read together"
        )
    counted = batches[warm_up(shape) : shape.files]
    elapsed = counted[-1]["start"] + counted[-1]["seconds"] - counted[0]["start"]
    seconds = [b["seconds"] for b in counted]
    emitted = watched.result
    return Measured(
        shape.events // shape.files, seconds, elapsed, watched.peak, emitted["rows"], emitted.get("state_rows", [])
    )
