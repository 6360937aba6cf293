"""With --hypothesis-profile=ci a law is tried with the same examples in every run, whatever was loaded before it."""

import os
import subprocess
import sys
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


def examples(folder: Path, loaded: str, hash_seed: str) -> str:
    (folder / "test_law.py").write_text(LAW)
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent / "src")])
    environment = {**os.environ, "PYTHONPATH": paths, "LOADED": loaded, "PYTHONHASHSEED": hash_seed}
    environment.pop("PYTEST_ADDOPTS", None)  # what is printed is compared
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-p", "conftest"]
    done = subprocess.run(
        [*command, "--hypothesis-profile=ci", "test_law.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.rpartition("\n.")[0]


def test_examples_are_the_same_in_every_run(tmp_path):
    one, other = examples(tmp_path, "", "1"), examples(tmp_path, "cedr.temporal.time cedr.language.expected", "2")
    assert one.count("\n") > 10
    assert one == other
