"""The process that keeps members running: a member that fails is restarted with its checkpoint.

It has no state of its own. The desired states are in the control store, so it may be killed and restarted, and other
processes (`cedr replicas cutover`) change what it does by writing there.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from cedr.replicas.control import MERGE, USER_ERROR, Control, DesiredState
from cedr.replicas.copies import copy_folder, reached
from cedr.temporal.errors import CedrError, QueryError
from cedr.temporal.time import INF, MIN

LOOK = 0.2
LONG_ENOUGH = 60.0
"""A member that ran for this many seconds has not failed at its start."""
MAX_FAILURES = 5
"""Number of consecutive failures at the start after which a member is no longer restarted."""
PATIENCE = 90.0
"""Seconds members have to stop by themselves."""

Log = Callable[[str], None]


@dataclass
class Keeper:
    """One member's process, and its history."""

    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    failures: int = 0
    not_before: float = 0.0
    given_up: bool = False
    starts: int = 0


@dataclass
class Supervisor:
    folder: str
    master: str = "local[*]"
    log: Log = print
    members: dict[str, Keeper] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder = os.path.abspath(self.folder)
        self.control = Control(os.path.join(self.folder, "control"))
        os.makedirs(os.path.join(self.folder, "logs"), exist_ok=True)

    def request(self, job: str, replicas: int) -> None:
        """Define members for a first start; a folder that has some continues with those."""
        self.control.make()
        self.control.resume()
        if not self.control.desired():
            for member in [DesiredState(MERGE, job), *versions(job, 1, replicas)]:
                self.control.set_desired(member)

    def run(self, look: Callable[[], object] = lambda: None) -> bool:
        """Until everything is merged or it is stopped. False if the merge failed for good."""
        try:
            while not self.control.stopping:
                for name, desired in self.control.desired().items():
                    self._keep(name, desired)
                if self._is_done():
                    self.log("all input is processed and merged")
                    return True
                if self._all_given_up():
                    return False
                look()
                time.sleep(LOOK)
            return True
        finally:
            self._stop()

    def _keep(self, name: str, desired: DesiredState) -> None:
        keeper = self.members.setdefault(name, Keeper())
        if keeper.process is not None:
            code = keeper.process.poll()
            if code is None:
                return
            self._ended(name, desired, keeper, code)
        if desired.over or keeper.given_up or self._has_finished(name) or time.monotonic() < keeper.not_before:
            return
        if name == MERGE and not self._has_output():
            return
        self._begin(name, keeper)

    def _begin(self, name: str, keeper: Keeper) -> None:
        command = [sys.executable, "-P", "-m", "cedr.replicas.member", self.folder, name, self.master]
        command.append(str(os.getpid()))
        with open(os.path.join(self.folder, "logs", f"{name}.log"), "ab") as log:
            keeper.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        keeper.started, keeper.starts = time.monotonic(), keeper.starts + 1
        self.log(f"{name}: {'started' if keeper.starts == 1 else 'restarted'}, process {keeper.process.pid}")

    def _ended(self, name: str, desired: DesiredState, keeper: Keeper, code: int) -> None:
        assert keeper.process is not None
        end_group(keeper.process)
        keeper.process = None
        if code == 0:
            state = self.control.status()[name].state
            self.log(f"{name}: {'over' if desired.over else 'finished' if state == 'done' else 'stopped'}")
            return
        long_enough = time.monotonic() - keeper.started > LONG_ENOUGH
        killed = code < 0
        keeper.failures = 0 if long_enough or killed else keeper.failures + 1
        why = f"killed by signal {-code}" if killed else self._last_error(name)
        if code == USER_ERROR or keeper.failures >= MAX_FAILURES:
            keeper.given_up = True
            self.log(f"{name}: failed for good. {why}")
            return
        keeper.not_before = time.monotonic() + (0.0 if killed else 2.0**keeper.failures)
        self.log(f"{name}: {why}; restarting")

    def _last_error(self, name: str) -> str:
        status = self.control.status().get(name)
        error = status.error if status is not None else ""
        if error:
            return error
        log = Path(self.folder, "logs", f"{name}.log")
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        return f"it failed{f': {lines[-1]}' if lines else ''}. See its log: {log}"

    def _has_finished(self, name: str) -> bool:
        status = self.control.status().get(name)
        return status is not None and status.state in ("done", "over")

    def _is_done(self) -> bool:
        merge = self.control.status().get(MERGE)
        return merge is not None and merge.state == "done" and merge.cti == INF

    def _all_given_up(self) -> bool:
        return any(k.given_up for n, k in self.members.items() if n == MERGE) or all(
            keeper.given_up for name, keeper in self.members.items() if name != MERGE
        )

    def _has_output(self) -> bool:
        copies = Path(self.folder, "copies")
        return copies.is_dir() and any(copies.glob("*/*.parquet"))

    def _stop(self) -> None:
        """Let members stop by themselves; after a while kill them."""
        self.control.stop_all()
        deadline = time.monotonic() + PATIENCE
        running = {name: k.process for name, k in self.members.items() if k.process is not None}
        for name, process in running.items():
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.log(f"{name}: did not stop, killed")
            end_group(process)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """A member's Java shares its process group, and may be left when Python was killed."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def versions(job: str, version: int, replicas: int) -> list[DesiredState]:
    if replicas < 1:
        raise QueryError(f"{replicas} replicas have no output; there must be at least one")
    return [DesiredState(f"v{version}-{number}", job, version) for number in range(1, replicas + 1)]


# --- commands ---------------------------------------------------------------------------------------------------------


class CutoverError(CedrError, RuntimeError):
    """A new version that did not catch up."""


def existing_control(folder: str) -> Control:
    control = Control(os.path.join(os.path.abspath(folder), "control"))
    if not control.desired():
        raise QueryError(f"there are no replicas in {folder!r}; start some with: cedr replicas run JOB {folder}")
    return control


def cut_over(folder: str, job: str, replicas: int, log: Log = print, timeout: float = 3600.0) -> list[str]:
    """Start a new version next to the old one, and retire the old one when the new one has caught up. Its names."""
    from cedr.replicas.replicas import retire

    control = existing_control(folder)
    members = [m for m in control.desired().values() if m.name != MERGE]
    old = [m for m in members if not m.over]
    new = versions(job, max(m.version for m in members) + 1, replicas)
    for member in new:
        control.set_desired(member)
    log(f"warming up {', '.join(m.name for m in new)}")
    wait_for_all(folder, control, [m.name for m in new], timeout)
    for member in old:
        retire(folder, member.name)
        log(f"{member.name} is over")
    return [m.name for m in new]


def wait_for_all(folder: str, control: Control, names: list[str], timeout: float) -> None:
    """Until these have caught up with the merge of a moment ago, or have processed all their input: one plan may lag
    behind another. The merge then no longer needs the others."""
    deadline, before = time.monotonic() + timeout, INF
    while True:
        progress = {name: reached(copy_folder(os.path.join(folder, "copies"), name))[1] for name in names}
        status = control.status()
        idle = {name for name in names if name in status and status[name].idle}
        if all(cti > MIN and (cti >= before or name in idle) for name, cti in progress.items()):
            return
        if failed := [s for n, s in control.status().items() if n in names and s.state == "failed"]:
            for name in names:
                control.set_desired(DesiredState(name, over=True))
            raise CutoverError(f"{failed[0].name} failed: {failed[0].error}; the old version continues")
        if control.stopping:
            raise CutoverError("the replicas were stopped, or finished, before the new version had caught up")
        if time.monotonic() > deadline:
            raise CutoverError(f"{', '.join(names)} did not catch up within {timeout:.0f} s; the old version continues")
        before = control.feedback
        time.sleep(1.0)
