"""A program in a process of its own, watched: what it printed, and the most memory all its processes held at once.

Its processes are found by a mark in their environment, which a JVM, Python workers and detached servers all inherit.
Memory is the proportional set size: pages that several of them share are counted once.
"""

import json
import os
import secrets
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cedr.temporal.errors import CedrError

MARK = "CEDR_BENCH_PROCESS"
SAMPLE = 0.2
SHARE = 1 / 20
"""Of a core, for looking at memory: the system walks all pages, and the programs that are measured wait meanwhile."""
GRACE = 10.0


class SideFailedError(CedrError):
    """The program did not finish in time, or failed; `why` is the reason."""

    def __init__(self, message: str, why: str = "it failed") -> None:
        super().__init__(message)
        self.why = why


@dataclass(frozen=True)
class Watched:
    result: Any
    """The JSON on the last line it printed."""
    peak: float
    """MiB."""


def watch(command: list[str], environment: dict[str, str], limit: float, folder: Path) -> Watched:
    """Run the command for at most `limit` seconds; its output is kept in the folder."""
    mark, (out, log) = secrets.token_hex(8), (folder / "stdout", folder / "stderr")
    with out.open("w") as output, log.open("w") as errors:
        program = subprocess.Popen(command, env={**environment, MARK: mark}, stdout=output, stderr=errors)
        try:
            peak = sample_until_done(program, mark, time.monotonic() + limit)
        finally:
            end_all(mark)
            program.wait()
    if program.returncode or peak < 0:
        why = f"after {limit:,.0f} s it was ended" if peak < 0 else f"it ended with {program.returncode}"
        raise SideFailedError(f"{' '.join(command)}: {why}; the end of its log:\n{log.read_text()[-3000:]}", why)
    try:
        return Watched(json.loads(out.read_text().splitlines()[-1]), peak / 2**20)
    except (IndexError, ValueError):
        why = "it printed no report"
        raise SideFailedError(
            f"{' '.join(command)}: {why}; the end of its log:\n{log.read_text()[-3000:]}", why
        ) from None


def sample_until_done(program: subprocess.Popen[bytes], mark: str, deadline: float) -> float:
    """The peak in bytes, or -1 when time ran out."""
    peak, pause = 0.0, SAMPLE
    while True:
        try:
            program.wait(pause)
            return peak
        except subprocess.TimeoutExpired:
            began = time.monotonic()
            peak = max(peak, sum(map(memory, marked(mark))))
            pause = max(SAMPLE, (time.monotonic() - began) / SHARE)
        if time.monotonic() > deadline:
            return -1


def marked(mark: str) -> list[int]:
    wanted = f"{MARK}={mark}".encode()
    return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and wanted in environment_of(p)]


def environment_of(process: Path) -> list[bytes]:
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def memory(pid: int) -> float:
    """In bytes; 0 if the process has ended meanwhile."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def end_all(mark: str) -> None:
    """Politely, then not."""
    for sign, patience in ((signal.SIGTERM, GRACE), (signal.SIGKILL, GRACE)):
        deadline = time.monotonic() + patience
        for pid in marked(mark):
            try:
                os.kill(pid, sign)
            except ProcessLookupError:
                continue
        while marked(mark) and time.monotonic() < deadline:
            time.sleep(SAMPLE)
