"""A law is tried with the same examples in every run, whatever was loaded before; `./cedr explore` tries new ones."""

import os
import subprocess
import sys
import time
from pathlib import Path

TESTS = Path(__file__).parent
LAW = """
import importlib, os
from hypothesis import given, strategies as st

for name in os.environ["LOADED"].split():
    importlib.import_module(name)


@given(st.tuples(st.lists(st.integers()), st.text(), st.floats()))
def law(values):
    print(repr(values))


def test_law():
    law()
"""


def examples(folder: Path, loaded: str, hash_seed: str, *options: str, **variables: str) -> str:
    (folder / "test_law.py").write_text(LAW)
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent / "src")])
    environment = {**os.environ, "PYTHONPATH": paths, "LOADED": loaded, "PYTHONHASHSEED": hash_seed, **variables}
    environment.pop("PYTEST_ADDOPTS", None)  # what is printed is compared
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-p", "conftest"]
    done = subprocess.run(
        [*command, *options, "test_law.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.rpartition("\n.")[0]


def test_examples_are_the_same_in_every_run(tmp_path):
    one, other = examples(tmp_path, "", "1"), examples(tmp_path, "cedr.temporal.time cedr.syntax.expected", "2")
    assert one.count("\n") > 10
    assert one == other


def test_an_exploration_tries_others(tmp_path):
    exploring = {"CEDR_EXPLORE_UNTIL": str(time.time() + 3600), "CEDR_EXPLORE_SEED": "1", "CEDR_EXAMPLES": "20"}
    one, other, again = (examples(tmp_path, "", "1", f"--hypothesis-seed={s}", **exploring) for s in (1, 2, 1))
    assert one != other
    assert one == again


def test_what_fails_is_reduced_and_kept(tmp_path):
    broken = tmp_path / "test_broken.py"
    broken.write_text(
        "from hypothesis import given, strategies as st\n"
        "@given(st.integers())\n"
        "def test_broken(n):\n"
        "    assert n < 1234\n"
    )
    command = [sys.executable, "-P", "-m", "cedr", "explore", "--minutes", "0", "--seed", "77", "-n", "0", str(broken)]
    report = TESTS.parent / ".hypothesis" / "failures" / "seed-77.txt"
    try:
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "CEDR_EXAMPLES": "500"})
        assert done.returncode == 1, done.stdout + done.stderr
        assert "1 rounds, 1 with failures" in done.stdout
        assert "n=1234" in report.read_text()
    finally:
        report.unlink(missing_ok=True)
