"""Commands as pages show them: blocks of `console` with a `$` before each command and its output below, and blocks of
`sh` that must only end well.

A block that begins with ```` ```toml title="job.toml" ```` is a file. Pages are followed from top to bottom, as a
reader would: files are written, commands run in a shell, and what they print must be what the page shows. `...` in a
shown line is any text.
"""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(r'^```(\w*)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
LIMIT = 600
"""Seconds a command may take."""


@dataclass(frozen=True)
class File:
    name: str
    text: str


@dataclass(frozen=True)
class Command:
    text: str
    shown: str | None
    """None: it must end well, whatever it prints."""


def steps(page: str) -> Iterator[File | Command]:
    for language, title, text in BLOCK.findall(page):
        if title:
            yield File(title, text)
        elif language == "sh":
            yield Command(text, None)
        elif language == "console":
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, _, shown = part.partition("\n")
                while command.endswith("\\"):
                    more, _, shown = shown.partition("\n")
                    command = command[:-1] + more
                yield Command(command, shown)


def follow(page: Path, folder: Path) -> int:
    """Run the commands of a page in a folder; returns the number of commands."""
    ran = 0
    for step in steps(page.read_text()):
        if isinstance(step, File):
            (folder / step.name).parent.mkdir(parents=True, exist_ok=True)
            (folder / step.name).write_text(step.text)
        else:
            run(step, folder)
            ran += 1
    return ran


def run(command: Command, folder: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", command.text],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    if command.shown is None:
        assert done.returncode == 0, f"$ {command.text}\nended with {done.returncode} and printed\n{done.stdout}"
        return
    printed, shown = lines(done.stdout), lines(command.shown)
    same = len(printed) == len(shown) and all(map(matches, printed, shown))
    assert same, f"$ {command.text}\nprinted\n{done.stdout}\nand the page shows\n{command.shown}"


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def matches(printed: str, shown: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, shown.split("..."))), printed) is not None
