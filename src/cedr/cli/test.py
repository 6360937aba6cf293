"""`cedr test`: run all tests, or those that pytest's own options select."""

import os
import sys
from pathlib import Path

import typer

from cedr import CedrError

REPOSITORY = Path(__file__).parents[3]

# Tests on Spark mostly wait, so one process more than there are cores, but at most four, as each may start its own
# Spark. Idle processes take work from others, as some tests take minutes. `-n 0` runs everything in one process.
PROCESSES = min(len(os.sched_getaffinity(0)) + 1, 4)
OPTIONS = ["-q", "-n", str(PROCESSES), "--dist", "worksteal"]


def test(context: typer.Context) -> None:
    """Run the tests. All arguments go to pytest: `cedr test -k join -x`."""
    os.chdir(repository("test"))
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *OPTIONS, *context.args])


def repository(command: str) -> Path:
    """The checkout that this package is part of."""
    if not (REPOSITORY / "tests").is_dir():
        raise CedrError(f"{REPOSITORY} contains no tests; `cedr {command}` needs a checkout of the repository")
    return REPOSITORY
