"""Executors are checked before a query starts: messages, and a cluster with a packed environment only."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from packed import linked_environment

import cedr
from cedr.runtime.spark.driver import executors, probe
from cedr.runtime.spark.driver.executors import first_problem, warnings_of
from cedr.storage.folder import Folder
from cedr.temporal.errors import QueryError

HERE = {
    "at": 100.0,
    "host": "web1",
    "folder": "/opt/spark/0",
    "executable": "/usr/bin/python3",
    "Python": "3.11.7",
    "cedr": "0.1.0",
    "polars": "2.1.0",
    "pyarrow": "26.0.1",
    "numba": "0.68.1",
    "numpy": "2.4.6",
}
REACHED = {"content": b"x", "trouble": None}


def problem(**differences) -> str | None:
    return first_problem({**HERE, **REACHED}, [{**HERE, **REACHED}, {**HERE, **REACHED, **differences}], "/shared/cp")


def test_equal_executors_have_no_problem():
    assert problem() is None
    assert warnings_of(HERE, [HERE], 99.0, 101.0) == []


@pytest.mark.parametrize("package", ["cedr", "polars", "pyarrow", "numba", "numpy"])
def test_a_missing_package_is_named_with_the_remedy(package):
    text = problem(**{package: None, "host": "web2"})
    assert f"the executor on web2 (folder /opt/spark/0, Python /usr/bin/python3) has no {package}" in text
    assert f"the driver has {HERE[package]}" in text
    assert f"pip install {package}=={HERE[package]}" in text
    assert "./cedr pack" in text


@pytest.mark.parametrize("package", ["cedr", "polars"])
def test_another_version_is_refused(package):
    assert f"has {package} 0.0.9, the driver has {HERE[package]}; they must be the same" in problem(
        **{package: "0.0.9"}
    )


@pytest.mark.parametrize("package", ["Python", "pyarrow", "numba", "numpy"])
def test_other_versions_that_work_are_a_warning(package):
    assert problem(**{package: "1.0"}) is None
    (text,) = warnings_of(HERE, [{**HERE, package: "1.0"}], 99.0, 101.0)
    assert f"has {package} 1.0 instead of {HERE[package]} of the driver" in text


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"content": None}, "query.json, which the driver has written, is not there"),
        ({"content": b"y"}, "is not the one that the driver has written, so it is another folder"),
        ({"trouble": "PermissionError: no"}, "PermissionError: no"),
    ],
)
def test_a_checkpoint_that_is_not_reached(found, expected):
    text = problem(**found)
    assert "cannot use the checkpoint /shared/cp" in text
    assert expected in text
    assert "storage that the driver and all executors reach" in text


@pytest.mark.parametrize(
    ("at", "expected"),
    [(91.0, "8 s behind"), (111.0, "10 s ahead of"), (97.5, None), (102.5, None), (100.0, None)],
)
def test_a_clock_is_wrong_if_it_is_outside_the_job(at, expected):
    """
    driver     99 ----------- 101      the job
    executor       somewhere, if its clock is right
    """
    found = warnings_of(HERE, [{**HERE, "at": at}], 99.0, 101.0)
    assert [expected in text for text in found] == ([True] if expected else [])
    assert all("`idle` and `max_ahead` use the driver's clock" in text for text in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'java.io.IOException: Cannot run program "./environment/bin/python": error=2, No such file or directory',
            "an executor cannot start its Python, ./environment/bin/python: No such file or directory",
        ),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11, PySpark "
            "cannot run with different minor versions.",
            "an executor runs Python 3.9 and the driver Python 3.11",
        ),
    ],
)
def test_a_python_that_does_not_start(text, expected):
    with pytest.raises(QueryError, match=r"\./cedr pack") as raised:
        executors.explain(text)
    assert expected in str(raised.value)
    executors.explain("another error")


def test_the_driver_needs_the_python_of_executors_for_files(tmp_path, monkeypatch):
    context = SimpleNamespace(pythonExec="./environment/bin/python")
    session = SimpleNamespace(sparkContext=context)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(QueryError, match=r"starts ./environment/bin/python, too, .* finds none from .*tar -xzf FILE"):
        executors.check_python_of_driver(session)
    context.pythonExec = sys.executable
    executors.check_python_of_driver(session)


def test_one_machine_is_not_checked(spark, monkeypatch):
    monkeypatch.setattr(executors, "look_everywhere", None)
    executors.check_executors(spark)


def test_looking_reads_and_writes_the_checkpoint(tmp_path):
    assert probe.look(str(tmp_path / "none"), cedr.__version__, {})["content"] is None
    Folder(str(tmp_path)).write("query.json", b"mine")
    found = probe.look(str(tmp_path), cedr.__version__, {})
    assert found["content"].endswith(b"mine")
    assert found["trouble"] is None
    assert os.listdir(tmp_path) == ["query.json"]
    assert "content" not in probe.look(str(tmp_path), "0.0.9", {})


# --- a cluster --------------------------------------------------------------------------------------------------------

DRIVER = """
import json, sys
import polars as pl
import cedr
from cedr.temporal.errors import QueryError

folder, good, other = sys.argv[1:]
pl.DataFrame({"at": [3, 8, 14], "machine": ["a", "b", "a"]}).write_parquet(folder + "/in/0.parquet")
spark = cedr.spark_session("local-cluster[1,1,1024]", spark__executor__memory="1g", spark__pyspark__python=other)
events = cedr.source("events", {"machine": str}, vs="at", delay=10).where(pl.col("machine") == "a")

def start(name):
    return events.start(
        spark, spark.readStream.schema("at long, machine string").parquet(folder + "/in"), shards=1, close=True,
        sink=cedr.sinks.parquet(folder + "/" + name), checkpoint=folder + "/checkpoint-" + name,
        trigger={"availableNow": True},
    )

try:
    refused = start("refused")
except QueryError as e:
    print("REFUSED", json.dumps(str(e)))
spark.sparkContext.pythonExec = good
running = start("out")
running.await_termination()
print("ROWS", running.table().height)
places = lambda _: (__import__("sys").executable, __import__("cedr").__file__)
print("PLACES", json.dumps(spark.sparkContext.parallelize([0], 1).map(places).collect()[0]))
spark.stop()
"""


def test_executors_with_a_packed_environment_only(tmp_path):
    """In a folder elsewhere and without PYTHONPATH. An environment with another version of cedr is refused first."""
    (tmp_path / "in").mkdir()
    good = linked_environment(tmp_path / "good")
    other = tmp_path / "other" / "bin" / "python"
    older = tmp_path / "older" / "cedr"
    older.mkdir(parents=True)
    (older / "__init__.py").write_text('__version__ = "0.0.9"\n')
    other.parent.mkdir(parents=True)
    other.write_text(f'#!/bin/sh\nexport PYTHONPATH="{older.parent}:$PYTHONPATH"\nexec "{good}" "$@"\n')
    other.chmod(0o755)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(tmp_path), str(good), str(other)],
        capture_output=True, text=True, cwd=tmp_path, env=clean, timeout=300, check=False,
    )  # fmt: skip
    found = dict(line.split(" ", 1) for line in done.stdout.splitlines() if line.split(" ")[0].isupper())
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"has cedr 0.0.9, the driver has {cedr.__version__}; they must be the same" in json.loads(found["REFUSED"])
    assert found["ROWS"] == "2"
    executable, file = json.loads(found["PLACES"])
    assert all(Path(place).is_relative_to(good.parents[1]) for place in (executable, file))
