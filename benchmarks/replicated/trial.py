"""A trial: `cedr replicas run` over files that come one after the other, while its members are killed."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from cedr.replicas.control import MERGE, Control
from cedr.sinks.parquet_table import read_parquet
from cedr.temporal.time import INF
from replicated import jobs

JOBS = str(Path(jobs.__file__).absolute())
LIMIT = 600.0
"""Seconds within which anything that is waited for must come."""


@dataclass(frozen=True)
class Load:
    """`files` of `rows` each, one every `pace` seconds; some rows are late, some are corrected later."""

    files: int
    rows: int
    pace: float
    seed: int = 1

    def frames(self) -> Iterator[pl.DataFrame]:
        rng = np.random.default_rng(self.seed)
        n = self.files * self.rows
        at = np.sort(rng.integers(0, self.files * 60, n))
        until = at + rng.integers(1, 50, n)
        comes = at + np.where(rng.random(n) < 0.2, rng.integers(0, 90, n), 0)
        machine, load = rng.integers(0, 40, n), rng.integers(0, 100, n)
        wrong = np.flatnonzero(rng.random(n) < 0.1)
        table = pl.DataFrame({"comes": comes, "at": at, "until": until, "machine": machine, "load": load})
        corrections = table[wrong].with_columns(
            comes=pl.col("comes") + 1 + pl.Series(rng.integers(0, 60, len(wrong))),
            corrected=pl.col("until") + pl.Series(rng.integers(1, 30, len(wrong))),
        )
        rows = pl.concat([table, corrections], how="diagonal").sort("comes", maintain_order=True)
        rows = rows.select(
            "at", "until", "corrected", pl.format("m{}", "machine").alias("machine"), "load", cti=pl.lit(None, pl.Int64)
        )
        sync = rows.select(pl.when(pl.col("corrected").is_null()).then("at").otherwise("until"))["at"].to_numpy()
        coming = np.minimum.accumulate(sync[::-1])[::-1]
        size = -(-rows.height // self.files)
        for first in range(0, rows.height, size):
            last = first + size >= rows.height
            yield pl.concat([rows[first : first + size], promise(INF if last else int(coming[first + size]))])

    def feed(self, folder: Path, stop: threading.Event, finish: threading.Event) -> None:
        """Write the files, each under another name first; the last, after which nothing comes, on request."""
        for number, frame in enumerate(self.frames()):
            if number == self.files - 1:
                while not finish.wait(0.1) and not stop.is_set():
                    pass
            if stop.wait(self.pace if number else 0):
                return
            frame.write_parquet(folder / f".{number:06d}.tmp")
            (folder / f".{number:06d}.tmp").rename(folder / f"{number:06d}.parquet")

    def expected(self) -> pl.DataFrame:
        return jobs.first().run(pl.concat(list(self.frames()))).table()


def promise(cti: int) -> pl.DataFrame:
    kinds = {"at": pl.Int64, "until": pl.Int64, "corrected": pl.Int64, "machine": pl.String, "load": pl.Int64}
    return pl.DataFrame({"cti": [cti]}, schema={"cti": pl.Int64}).select(
        *(pl.lit(None, kind).alias(name) for name, kind in kinds.items()), "cti"
    )


class Trial:
    """The command in a process of its own, with what it needs in a folder."""

    def __init__(self, folder: Path, load: Load, replicas: int, master: str = "local[1]") -> None:
        self.folder, self.load, self.replicas = folder, load, replicas
        self.input, self.set = folder / "in", folder / "set"
        self.input.mkdir()
        self.environment = {**os.environ, "CEDR_SOAK_INPUT": str(self.input)}
        self.environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), *sys.path]))
        self.log = (folder / "log").open("wb")
        self.started: list[subprocess.Popen[bytes]] = []
        self.control = Control(str(self.set / "control"))
        self.process = self.command(
            "run", f"{JOBS}:version_one", str(self.set), "-n", str(replicas), "--master", master
        )
        self.done, self.finish = threading.Event(), threading.Event()
        self.feeder = threading.Thread(target=load.feed, args=(self.input, self.done, self.finish))
        self.feeder.start()

    def command(self, *arguments: str) -> subprocess.Popen[bytes]:
        whole = [sys.executable, "-m", "cedr", "replicas", *arguments]
        self.started.append(
            subprocess.Popen(whole, env=self.environment, stdout=self.log, stderr=self.log, start_new_session=True)
        )
        return self.started[-1]

    def kill(self, rng: random.Random, spare: int = 1) -> str | None:
        """Kill a member at random and return its name; usually `spare` replicas are kept."""
        desired = self.control.desired()
        status = {n: s for n, s in self.control.status().items() if n in desired and not desired[n].over}
        running = [n for n, s in status.items() if s.state in ("starting", "running") and alive(s.process, n)]
        choice = [n for n in running if n == MERGE or len(running) - (MERGE in running) > spare or rng.random() < 0.3]
        if not choice:
            return None
        name = rng.choice(choice)
        try:
            os.kill(status[name].process, signal.SIGKILL)
        except ProcessLookupError:
            return None
        return name

    def cut_over(self) -> subprocess.Popen[bytes]:
        return self.command("cutover", str(self.set), f"{JOBS}:version_two", "-n", str(self.replicas))

    def wait(self, condition: Callable[[], object], limit: float = LIMIT) -> None:
        deadline = time.monotonic() + limit
        while not condition():
            if time.monotonic() > deadline or self.process.poll() not in (None, 0):
                raise AssertionError(f"the replicas made no progress; the end of their logs:\n{self.logs()}")
            time.sleep(0.1)

    def logs(self) -> str:
        texts = [f"--- {p.name}\n{p.read_text(errors='replace')[-1500:]}" for p in self.set.glob("logs/*.log")]
        return "\n".join([(self.folder / "log").read_text()[-3000:], *texts])

    def answer(self) -> pl.DataFrame:
        return read_parquet(self.set / "merged")

    def emitted(self) -> dict[str, int]:
        """How many rows each copy has written."""
        copies = sorted((self.set / "copies").iterdir())
        rows = lambda path: pl.scan_parquet(path).select(pl.len()).collect().item()  # noqa: E731
        return {copy.name: sum(map(rows, copy.glob("*.parquet"))) for copy in copies}

    def late(self) -> int:
        return sum(pl.read_parquet(path).height for path in self.set.glob("checkpoints/*/cedr/late/*.parquet"))

    def end(self) -> None:
        """Whatever happened: leave nothing behind."""
        self.done.set()
        self.feeder.join()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        for process in self.started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        for status in self.control.status().values():
            if alive(status.process, status.name):
                os.killpg(status.process, signal.SIGKILL)
        self.log.close()


def alive(process: int, name: str) -> bool:
    """Is this still the process of that member?"""
    try:
        arguments = Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return False
    return name in arguments and "cedr.replicas.member" in arguments
