"""`cedr test`: run all tests, or those that pytest's own options ask for."""

import os
import sys
from pathlib import Path

import typer

from cedr import CedrError

REPOSITORY = Path(__file__).parents[3]

# Tests on Spark mostly wait, so one process more than there are cores, but no more than four, as each may start a Spark
# of its own. Who is done takes work from the others, as some tests take minutes. `-n 0` goes back to one process.
PROCESSES = min(len(os.sched_getaffinity(0)) + 1, 4)
OPTIONS = ["-q", "-n", str(PROCESSES), "--dist", "worksteal"]


def test(context: typer.Context) -> None:
    """Run the tests. Everything after `test` goes to pytest: `cedr test -k join -x`."""
    os.chdir(repository("test"))
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *OPTIONS, *context.args])


def repository(command: str) -> Path:
    """The checkout that this package is part of."""
    if not (REPOSITORY / "tests").is_dir():
        raise CedrError(f"there are no tests in {REPOSITORY}; `cedr {command}` needs a checkout of the repository")
    return REPOSITORY
