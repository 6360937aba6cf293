"""Each workload of the Spark benchmark asks one question: cedr, Spark's own operators and polars give one answer."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from peers import data, side
from peers.answers import disagreement
from peers.data import Shape
from peers.measure import measured
from peers.processes import SideFailedError, Watched
from peers.workloads import COMPARED, WORKLOADS

SHAPE = Shape(events=4_000, files=2, keys=20, rate=100)
BENCHMARKS = Path(side.__file__).parents[1]


@pytest.mark.parametrize("name", WORKLOADS)
def test_cedr_gives_the_batch_answer(name, tmp_path):
    workload = WORKLOADS[name]
    data.write(tmp_path, workload.streams, SHAPE)
    tables = data.read(tmp_path, workload.streams)
    found = workload.cedr_answer(workload.cedr_query().run(tables).table())
    expected = workload.batch(tables)
    assert expected.height >= 80
    assert disagreement(name, found, expected, workload.exact) is None


RUN_ALL = """
import json, sys
from pathlib import Path
from peers.side import run_cedr, run_spark
from peers.workloads import COMPARED, WORKLOADS
folder = Path(sys.argv[1])
reports = {w.name: run_spark(w, folder / w.name / "in", folder / w.name / "out", w.state_store) for w in COMPARED}
for name in ("join", "pattern"):
    reports[f"{name}, cedr"] = run_cedr(WORKLOADS[name], folder / name / "in", folder / name / "cedr")
print(json.dumps(reports))
"""


@pytest.fixture(scope="module")
def on_spark(tmp_path_factory):
    """All workloads in one process, as starting Spark takes longer than the work: the folder and the reports."""
    folder = tmp_path_factory.mktemp("spark")
    for workload in COMPARED:
        data.write(folder / workload.name / "in", workload.streams, SHAPE)
    environment = {**os.environ, "PYTHONPATH": str(BENCHMARKS)}
    command = [sys.executable, "-c", RUN_ALL, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", [workload.name for workload in COMPARED])
def test_sparks_own_gives_the_batch_answer(name, on_spark):
    folder, reports = on_spark
    workload = WORKLOADS[name]
    expected = workload.batch(data.read(folder / name / "in", workload.streams))
    assert disagreement(name, side.read_spark(folder / name / "out"), expected, workload.exact) is None
    assert reports[name]["rows"] >= expected.height
    assert len(reports[name]["batches"]) > SHAPE.files


@pytest.mark.parametrize("name", ["join", "pattern"])
def test_cedr_on_spark_gives_the_batch_answer(name, on_spark):
    folder, reports = on_spark
    workload = WORKLOADS[name]
    expected = workload.batch(data.read(folder / name / "in", workload.streams))
    found = workload.cedr_answer(side.read_cedr(folder / name / "cedr"))
    assert disagreement("cedr", found, expected, workload.exact) is None
    about = reports[f"{name}, cedr"]
    assert about["rows"] >= expected.height
    assert len(about["batches"]) == len(about["state_rows"]) == SHAPE.files + 1


def test_only_the_steady_state_counts():
    """
    batch     0    1    2    3    4    5    6    7   flush
    start     0   30   40   45   50   55   60   65   72
    """
    starts = [0, 30, 40, 45, 50, 55, 60, 65, 72]
    lengths = [29, 9, 4, 4, 4, 4, 4, 7, 1]
    batches = [{"start": a, "seconds": b} for a, b in zip(starts, lengths, strict=True)]
    shape = Shape(events=800, files=8)
    found = measured(Watched({"batches": batches, "rows": 5}, 10.0), shape)
    assert found.seconds == [4, 4, 4, 4, 4, 7]
    assert found.elapsed == 72 - 40
    assert found.speed == 600 / 32
    assert found.typical == 4
    with pytest.raises(SideFailedError, match="8 micro-batches for 8 files"):
        measured(Watched({"batches": batches[:-1], "rows": 5}, 10.0), shape)
