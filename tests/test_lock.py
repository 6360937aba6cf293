"""requirements.lock: exact, portable, complete, and what runs here."""

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import distribution, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).parents[1]
LINES = (REPOSITORY / "requirements.lock").read_text().splitlines()
PINS = [line for line in LINES if not line.startswith("#")]
LOCKED = {canonicalize_name(name): pin for name, _, pin in (line.partition("==") for line in PINS)}


def test_each_line_is_a_name_and_a_version() -> None:
    """No hosts, paths, hashes or options: the lock must work with whatever index the machine has."""
    assert all(line.startswith("#") for line in LINES[: len(LINES) - len(PINS)])
    for line in PINS:
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][0-9A-Za-z.]*", line), line


def test_each_package_has_one_line_in_order() -> None:
    names = [canonicalize_name(line.partition("==")[0]) for line in PINS]
    assert names == sorted(set(names))


@pytest.mark.parametrize("name", LOCKED)
def test_what_is_installed_is_what_is_locked(name: str) -> None:
    assert version(name) == LOCKED[name]


@pytest.mark.parametrize("name", LOCKED)
def test_all_a_package_needs_is_locked(name: str) -> None:
    """pip does not look for dependencies, so one that is missing here would be missing there."""
    check(Requirement(text) for text in distribution(name).requires or [])


def test_all_the_project_names_is_locked() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    named = [*project["dependencies"], *(r for group in project["optional-dependencies"].values() for r in group)]
    check(map(Requirement, named))


def check(requirements: Iterator[Requirement]) -> None:
    for needed in requirements:
        if needed.marker is None or needed.marker.evaluate({"extra": ""}):
            name = canonicalize_name(needed.name)
            assert name in LOCKED, f"{needed} is not in requirements.lock"
            assert needed.specifier.contains(LOCKED[name]), f"{needed}, but requirements.lock has {LOCKED[name]}"
