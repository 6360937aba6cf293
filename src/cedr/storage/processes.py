"""Processes as the operating system lists them: which one is meant, and whether it still runs."""

import contextlib
import os
from pathlib import Path


def namespace() -> str:
    """Within which process numbers mean the same: the machine since it was started, or a container."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}:{os.readlink('/proc/self/ns/pid')}"


def birth(process: int) -> str | None:
    """When a process was started; None when it has ended, even if its parent has not taken note of that yet. Its number
    alone may belong to another one by now."""
    state, *rest = stat_of(process) or ["X"]
    return None if state in "ZX" else rest[18]


def parent_of(process: int) -> int | None:
    found = stat_of(process)
    return int(found[1]) if found else None


def stat_of(process: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; empty if the process does not exist."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def is_java(process: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/comm").read_text().strip() == "java"
    return False
