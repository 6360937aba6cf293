"""The code reads the same everywhere: ruff's rules and format, and mypy's strict types, as pyproject.toml says."""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]

CHECKS = {
    "ruff check": ["ruff", "check", "src", "tests"],
    "ruff format": ["ruff", "format", "--check", "--diff", "src", "tests"],
    "mypy": ["mypy"],
}


@pytest.mark.parametrize("check", CHECKS)
def test_style(check: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *CHECKS[check]], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{check} found:\n{done.stdout}{done.stderr}"
