"""The process that keeps members running: whoever dies is started again, with its checkpoint.

It remembers nothing itself. Who should run stands in the control store, so it may be killed and started again, and
other processes (`cedr replicas cutover`) change what it does by writing there.
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

from cedr.replicas.control import MERGE, USERS_MISTAKE, Control, DesiredState
from cedr.replicas.copies import copy_folder, reached
from cedr.temporal.errors import CedrError, QueryError
from cedr.temporal.time import INF, MIN

LOOK = 0.2
LONG_ENOUGH = 60.0
"""A member that ran for so many seconds has not failed at its start."""
MOST_FAILURES = 5
"""So often in a row a member may fail at its start before it is given up."""
PATIENCE = 90.0
"""So many seconds members have to end by themselves."""

Say = Callable[[str], None]


@dataclass
class Keeper:
    """One member's process, and how it has fared."""

    process: subprocess.Popen[bytes] | None = None
    began: float = 0.0
    failures: int = 0
    not_before: float = 0.0
    given_up: bool = False
    starts: int = 0


@dataclass
class Supervisor:
    folder: str
    master: str = "local[*]"
    say: Say = print
    members: dict[str, Keeper] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder = os.path.abspath(self.folder)
        self.control = Control(os.path.join(self.folder, "control"))
        os.makedirs(os.path.join(self.folder, "logs"), exist_ok=True)

    def ask_for(self, job: str, replicas: int) -> None:
        """Members for a first start; a folder that has some goes on with those."""
        self.control.make()
        self.control.go_on()
        if not self.control.wished():
            for wish in [DesiredState(MERGE, job), *versions(job, 1, replicas)]:
                self.control.wish(wish)

    def run(self, look: Callable[[], object] = lambda: None) -> bool:
        """Until everything is told or somebody stops it. False if the merge had to be given up."""
        try:
            while not self.control.stopping:
                for name, wish in self.control.wished().items():
                    self._keep(name, wish)
                if self._is_done():
                    self.say("nothing more will come, all is merged")
                    return True
                if self._all_given_up():
                    return False
                look()
                time.sleep(LOOK)
            return True
        finally:
            self._stop()

    def _keep(self, name: str, wish: DesiredState) -> None:
        keeper = self.members.setdefault(name, Keeper())
        if keeper.process is not None:
            code = keeper.process.poll()
            if code is None:
                return
            self._ended(name, wish, keeper, code)
        if wish.over or keeper.given_up or self._has_finished(name) or time.monotonic() < keeper.not_before:
            return
        if name == MERGE and not self._something_told():
            return
        self._begin(name, keeper)

    def _begin(self, name: str, keeper: Keeper) -> None:
        command = [sys.executable, "-P", "-m", "cedr.replicas.member", self.folder, name, self.master]
        command.append(str(os.getpid()))
        with open(os.path.join(self.folder, "logs", f"{name}.log"), "ab") as log:
            keeper.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        keeper.began, keeper.starts = time.monotonic(), keeper.starts + 1
        self.say(f"{name}: {'started' if keeper.starts == 1 else 'started again'}, process {keeper.process.pid}")

    def _ended(self, name: str, wish: DesiredState, keeper: Keeper, code: int) -> None:
        assert keeper.process is not None
        end_group(keeper.process)
        keeper.process = None
        if code == 0:
            state = self.control.standing()[name].state
            self.say(f"{name}: {'over' if wish.over else 'has told everything' if state == 'done' else 'stopped'}")
            return
        long_enough = time.monotonic() - keeper.began > LONG_ENOUGH
        killed = code < 0
        keeper.failures = 0 if long_enough or killed else keeper.failures + 1
        why = f"killed by signal {-code}" if killed else self._last_words(name)
        if code == USERS_MISTAKE or keeper.failures >= MOST_FAILURES:
            keeper.given_up = True
            self.say(f"{name}: given up. {why}")
            return
        keeper.not_before = time.monotonic() + (0.0 if killed else 2.0**keeper.failures)
        self.say(f"{name}: {why}; it will be started again")

    def _last_words(self, name: str) -> str:
        error = self.control.standing()[name].error if name in self.control.standing() else ""
        if error:
            return error
        log = Path(self.folder, "logs", f"{name}.log")
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        return f"it failed: {lines[-1] if lines else 'without a word'} (all of it is in {log})"

    def _has_finished(self, name: str) -> bool:
        standing = self.control.standing().get(name)
        return standing is not None and standing.state in ("done", "over")

    def _is_done(self) -> bool:
        merge = self.control.standing().get(MERGE)
        return merge is not None and merge.state == "done" and merge.cti == INF

    def _all_given_up(self) -> bool:
        return any(k.given_up for n, k in self.members.items() if n == MERGE) or all(
            keeper.given_up for name, keeper in self.members.items() if name != MERGE
        )

    def _something_told(self) -> bool:
        copies = Path(self.folder, "copies")
        return copies.is_dir() and any(copies.glob("*/*.parquet"))

    def _stop(self) -> None:
        """Let members end by themselves; after a while end them."""
        self.control.stop_all()
        deadline = time.monotonic() + PATIENCE
        running = {name: k.process for name, k in self.members.items() if k.process is not None}
        for name, process in running.items():
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.say(f"{name}: does not stop, killed")
            end_group(process)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """A member's Java shares its group, and may be left when Python was killed."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def versions(job: str, version: int, replicas: int) -> list[DesiredState]:
    if replicas < 1:
        raise QueryError(f"{replicas} replicas would tell nothing; there must be at least one")
    return [DesiredState(f"v{version}-{number}", job, version) for number in range(1, replicas + 1)]


# --- what others ask of it -------------------------------------------------------------------------------------------


class CutoverError(CedrError, RuntimeError):
    """A new version that does not come so far as to take over."""


def known_control(folder: str) -> Control:
    control = Control(os.path.join(os.path.abspath(folder), "control"))
    if not control.wished():
        raise QueryError(f"there are no replicas in {folder!r}; start some with: cedr replicas run JOB {folder}")
    return control


def cut_over(folder: str, job: str, replicas: int, say: Say = print, timeout: float = 3600.0) -> list[str]:
    """Warm a new version up beside the old one, and retire the old one when the new one is as far. Its names."""
    from cedr.replicas.replicas import retire

    control = known_control(folder)
    wished = [w for w in control.wished().values() if w.name != MERGE]
    old = [w for w in wished if not w.over]
    new = versions(job, max(w.version for w in wished) + 1, replicas)
    for wish in new:
        control.wish(wish)
    say(f"warming up {', '.join(w.name for w in new)}")
    wait_for_all(folder, control, [w.name for w in new], timeout)
    for wish in old:
        retire(folder, wish.name)
        say(f"{wish.name} is over")
    return [w.name for w in new]


def wait_for_all(folder: str, control: Control, names: list[str], timeout: float) -> None:
    """Until these are as far as the merge was a moment ago, or have worked in all there is: a plan may have its reasons
    to be behind another. The merge then no longer needs the others."""
    deadline, before = time.monotonic() + timeout, INF
    while True:
        told = {name: reached(copy_folder(os.path.join(folder, "copies"), name))[1] for name in names}
        standing = control.standing()
        idle = {name for name in names if name in standing and standing[name].idle}
        if all(cti > MIN and (cti >= before or name in idle) for name, cti in told.items()):
            return
        if failed := [s for n, s in control.standing().items() if n in names and s.state == "failed"]:
            for name in names:
                control.wish(DesiredState(name, over=True))
            raise CutoverError(f"{failed[0].name} failed: {failed[0].error}; the old version goes on")
        if control.stopping:
            raise CutoverError("the replicas were stopped, or have told everything, before the new version was as far")
        if time.monotonic() > deadline:
            raise CutoverError(f"{', '.join(names)} did not catch up within {timeout:.0f} s; the old version goes on")
        before = control.feedback
        time.sleep(1.0)
