"""The code follows pyproject.toml: ruff's style and format, mypy's strict types, and layers of packages.

A class has a name of its own: a name means one thing in all modules.
"""

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]

LAYERS = "import sys; from importlinter.cli import lint_imports as lint; sys.exit(lint(no_cache=True, no_logo=True))"
CHECKS = {
    "ruff check": ["-m", "ruff", "check", "src", "tests", "benchmarks"],
    "ruff format": ["-m", "ruff", "format", "--check", "--diff", "src", "tests", "benchmarks"],
    "mypy": ["-m", "mypy"],
    "layers": ["-c", LAYERS],
}


@pytest.mark.parametrize("check", CHECKS)
def test_style(check: str) -> None:
    done = subprocess.run([sys.executable, *CHECKS[check]], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{check} found:\n{done.stdout}{done.stderr}"


def test_no_class_name_exists_in_two_modules() -> None:
    modules = defaultdict(list)
    for file in sorted((REPOSITORY / "src").rglob("*.py")):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef):
                modules[node.name].append(str(file.relative_to(REPOSITORY)))
    assert {name: files for name, files in modules.items() if len(files) > 1} == {}
