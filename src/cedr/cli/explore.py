"""`cedr explore`: test the laws on new random streams until the time is over.

`cedr test` uses the same examples in every run, so that its outcome does not depend on chance. This command finds new
failures; run it before a release. It runs in rounds, each with its own seed and the laws in random order. Hypothesis
reduces failing examples; the report is kept in `.hypothesis/failures`, the example itself in `.hypothesis/examples`,
where the next exploration tries it first.
"""

import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from cedr.cli.test import OPTIONS, repository

KEPT = Path(".hypothesis") / "failures"
NO_TEST_FOUND = 5
STOPPED_BY_USER = 2


def explore(
    context: typer.Context,
    minutes: Annotated[float, typer.Option(min=0, help="How long to look for failures.")] = 30.0,
    seed: Annotated[int | None, typer.Option(help="The seed of the first round; a random one by default.")] = None,
) -> None:
    """Test the laws on new random streams. Other arguments go to pytest: `cedr explore --minutes 5 tests/operators`."""
    os.chdir(repository("explore"))
    until = time.time() + 60 * minutes
    first = random.randrange(10**9) if seed is None else seed
    failed: list[Path] = []
    number = 0
    while number == 0 or time.time() < until:
        print(f"round {number + 1}, seed {first + number}", flush=True)
        code, output = one_round(first + number, until, context.args)
        if code in (NO_TEST_FOUND, STOPPED_BY_USER):
            raise typer.Exit(code)
        if code:
            failed.append(kept(first + number, output))
        number += 1
    print(f"{number} rounds, {len(failed)} with failures")
    if failed:
        print("Reports:", *failed, sep="\n  ")
        print("Add each reduced stream to its law as @example(...), then fix the code; see CONTRIBUTING.md.")
        raise typer.Exit(1)


def one_round(seed: int, until: float, arguments: list[str]) -> tuple[int, bytes]:
    """All laws once, or as many as the time allows. The output is shown live and returned."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *OPTIONS, "-m", "hypothesis", f"--hypothesis-seed={seed}", *arguments],
        env={**os.environ, "CEDR_EXPLORE_UNTIL": str(until), "CEDR_EXPLORE_SEED": str(seed)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    output = b""
    assert process.stdout is not None
    while part := os.read(process.stdout.fileno(), 1 << 16):
        sys.stdout.buffer.write(part)
        sys.stdout.flush()
        output += part
    return process.wait(), output


def kept(seed: int, output: bytes) -> Path:
    KEPT.mkdir(parents=True, exist_ok=True)
    report = KEPT / f"seed-{seed}.txt"
    report.write_bytes(output)
    return report
