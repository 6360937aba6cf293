"""`pip install .` gives a cedr that needs neither the checkout nor its script."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
JOB = """
[query]
text = "EVENT Busy SELECT machine, COUNT(*) AS n FROM readings TUMBLING 10 GROUP BY machine"

[sources.readings]
files = "*.csv"
columns = { machine = "str" }
vs = "at"
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """Without its dependencies, which are in this environment, and with its build tools from here, too."""
    place = tmp_path_factory.mktemp("installed")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(place)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, str(ROOT)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return place


def run(installed: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    return subprocess.run(arguments, capture_output=True, text=True, cwd=cwd, env=environment, check=False)


def test_the_command_runs_a_job(installed, tmp_path):
    (tmp_path / "job.toml").write_text(JOB)
    (tmp_path / "1.csv").write_text("at,machine\n3,web1\n4,web1\n")
    done = run(
        installed, sys.executable, str(installed / "bin" / "cedr"), "run", "job.toml", "--local", "-q", cwd=tmp_path
    )
    assert done.stdout.split() == ["Busy", "vs", "ve", "machine", "n", "0", "10", "web1", "2"], done.stderr


def test_it_is_typed_and_whole(installed, tmp_path):
    place = run(installed, sys.executable, "-P", "-c", "import cedr; print(cedr.__file__)", cwd=tmp_path).stdout.strip()
    assert Path(place) == installed / "cedr" / "__init__.py"
    there = {p.relative_to(ROOT / "src") for p in (ROOT / "src" / "cedr").rglob("*") if p.suffix in (".py", ".lark")}
    assert all((installed / p).is_file() for p in there)
    assert (installed / "cedr" / "py.typed").is_file()


@pytest.mark.parametrize("command", ["test", "docs", "bench"])
def test_commands_that_need_the_checkout_report_it(installed, tmp_path, command):
    arguments = [command, "engine"] if command == "bench" else [command]
    done = run(installed, sys.executable, "-m", "cedr", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert "needs a checkout of the repository" in done.stderr
    assert "Traceback" not in done.stderr
