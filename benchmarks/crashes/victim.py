"""A driver to be killed: a process with its JVM, workers and shards, and files that record its progress."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args
from uuid import uuid4

from peers.processes import MARK, marked

Phase = Literal["start", "begun", "first stage", "last stage", "in the table", "done"]
"""How far a driver has come: it starts; a batch is in Spark's log; it has reached the first stage, the last one, the
table; Spark has noted that it is done."""
PHASES: tuple[Phase, ...] = get_args(Phase)
LIMIT = 900.0
LINGERING = 300.0
EXECUTOR, SHARD = "CoarseGrainedExecutorBackend", "cedr.runtime.spark.shard.server"
"""Parts of command lines that identify processes."""


class CrashError(Exception):
    """A driver ended by itself before its time, or did not end."""


class Checkpoint:
    """The progress of a query according to its files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spark, self.state = folder / "checkpoint" / "spark", folder / "checkpoint" / "cedr" / "state"

    def reached(self, phase: Phase) -> int:
        """The highest batch that has reached this phase; -1 if none has."""
        match phase:
            case "start" | "begun":
                return highest(self.spark / "offsets")
            case "first stage":
                return highest(self.state / "1", "*/log-*")
            case "last stage":
                stages = sorted(self.state.glob("*"))
                return highest(stages[-1], "*/log-*") if stages else -1
            case "in the table":
                return max(highest(self.folder / "out" / "_cedr", "[0-9]*.json"), self.reached("done"))
            case "done":
                return highest(self.spark / "commits")

    def now(self) -> tuple[int, Phase]:
        """The newest batch and the last phase it has reached."""
        newest = self.reached("begun")
        return newest, next((p for p in reversed(PHASES) if newest >= 0 and self.reached(p) >= newest), "start")


def highest(folder: Path, pattern: str = "[0-9]*") -> int:
    return max((int(p.stem.removeprefix("log-")) for p in folder.glob(pattern)), default=-1)


class Victim:
    """`python -m crashes.driver` with these arguments, in a process group of its own, which its JVM shares."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.checkpoint, self.mark = Checkpoint(folder), uuid4().hex
        self.log = folder / f"driver-{self.mark}.log"
        paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, MARK: self.mark, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        command = [sys.executable, "-m", "crashes.driver", *arguments]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    @property
    def has_ended(self) -> bool:
        """An error when it has ended badly."""
        if self.process.poll():
            raise CrashError(
                f"a driver exited with {self.process.returncode}; the end of its log:\n{self._end_of_log()}"
            )
        return self.process.returncode is not None

    def wait_for(self, phase: Phase, batch: int) -> None:
        """Until a batch has reached the phase, or the driver has ended."""
        self.wait_until(lambda: self.checkpoint.reached(phase) >= batch or self.has_ended)

    def wait_until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + LIMIT
        while not condition():
            if time.monotonic() > deadline:
                raise CrashError(
                    f"a driver made no progress for {LIMIT:.0f} s; the end of its log:\n{self._end_of_log()}"
                )
            time.sleep(0.005)

    def finish(self) -> None:
        self.wait_until(lambda: self.has_ended)

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def processes(self, text: str = "") -> list[int]:
        """The numbers of all its processes, or of those with this text in their command lines."""
        return [pid for pid in marked(self.mark) if text in command_line(pid)]

    def left(self) -> list[int]:
        """Its processes that are still there after a while."""
        deadline = time.monotonic() + LINGERING
        while (found := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.2)
        return found

    def end(self) -> None:
        """Whatever happened: leave nothing behind."""
        for pid in self.processes():
            send(pid, signal.SIGKILL)
        self.process.wait()

    def _end_of_log(self) -> str:
        return self.log.read_text()[-3000:]


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def send(pid: int, sign: signal.Signals) -> None:
    try:
        os.kill(pid, sign)
    except ProcessLookupError:
        return
