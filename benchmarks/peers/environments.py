"""Environments of the systems that cedr does not need itself: one folder each under `.peers`, made at the first use.

`benchmarks/peers/NAME/requirements.txt` has every package with its version. The environment is complete when it holds a
copy of that file, which is written last; when the file changes, the environment is created again.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from cedr.temporal.errors import CedrError

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".peers"
MINUTES = 60.0


class NotInstalledError(CedrError):
    """The environment could not be made."""


def python_of(name: str, log: Callable[[str], None], cache: Path = CACHE, wanted: Path | None = None) -> Path:
    """The Python of an environment, which is made if it is not there."""
    wanted, folder = wanted or HERE / name / "requirements.txt", cache / name
    installed, python = folder / "installed.txt", folder / "bin" / "python"
    if installed.exists() and installed.read_text() == wanted.read_text() and python.exists():
        return python
    count = len(wanted.read_text().splitlines())
    log(f"{name}: installing {count} packages into {folder}, which takes a few minutes, once")
    shutil.rmtree(folder, ignore_errors=True)
    run([sys.executable, "-m", "venv", str(folder)], name)
    run([str(python), "-m", "pip", "install", "--quiet", "--no-deps", "-r", str(wanted)], name)
    shutil.copy(wanted, installed)
    return python


def run(command: list[str], name: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20 * MINUTES)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise NotInstalledError(f"{name} could not be installed: {e}") from e
    if done.returncode:
        why = next((line for line in done.stderr.splitlines() if line.startswith("ERROR")), done.stderr[-300:])
        raise NotInstalledError(f"{name} could not be installed: {why}")
