"""`cedr state`: what a checkpoint contains, and which of its files are damaged."""

import json
import shutil
from pathlib import Path

import pytest
from cli.calling import call
from runtime.spark.small_run import SmallRun
from shown_commands import Command, run, steps
from storage.kept_checkpoint import unpack

from cedr.runtime.spark.shard import state
from cedr.runtime.spark.shard.inspection import Inspection
from cedr.storage import snapshots
from cedr.temporal.errors import CedrError

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A query that was stopped: snapshots in parts, logs after them, spilled rows."""
    place = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "MANY_BYTES", 100)
        patch.setattr(state, "MANY_BATCHES", 3)
        patch.setattr(snapshots, "SMALL_TABLE", 30)
        started = SmallRun(place)
        for batch in range(5):
            started.run(batch)
    return place


@pytest.fixture
def checkpoint(place, tmp_path):
    shutil.copytree(place / "checkpoint", tmp_path / "checkpoint")
    return tmp_path / "checkpoint"


def test_shards_and_operators_are_listed(monkeypatch, capsys, checkpoint):
    done = call(monkeypatch, capsys, "state", checkpoint)
    assert done.code == 0, done
    lines = done.out.splitlines()
    assert lines[0].split() == ["stage", "shard", "micro-batch", "snapshot", "bytes", "logged", "since", "log"]
    assert [line.split()[:4] for line in lines[1:5]] == [[s, n, "4", "2"] for s in "12" for n in "01"]
    assert any(line.startswith("1.1 ") and "Aggregate by k: v=sum(v)" in line for line in lines)
    assert lines[-1].endswith("files, none damaged")


def test_rows_of_an_operator(monkeypatch, capsys, checkpoint):
    done = call(monkeypatch, capsys, "state", checkpoint, "--operator", "1.1")
    assert "endpoints" in done.out
    done = call(monkeypatch, capsys, "state", checkpoint, "--operator", "1.1", "--field", "endpoints", "--json")
    rows = json.loads(done.out)
    assert {row["k"] for row in rows} == {0, 1, 2}, "keys, not their numbers"
    (identity,) = {s.operators[1]["identity"] for s in Inspection(str(checkpoint)).shards if s.stage == 1}
    same = call(monkeypatch, capsys, "state", checkpoint, "--operator", identity, "--field", "endpoints", "--json")
    assert json.loads(same.out) == rows
    few = call(monkeypatch, capsys, "state", checkpoint, "--operator", "1.1", "--field", "endpoints", "--rows", "2")
    assert len(few.out.splitlines()) == 3


def test_json(monkeypatch, capsys, checkpoint):
    found = json.loads(call(monkeypatch, capsys, "state", checkpoint, "--json").out)
    assert [(s["stage"], s["shard"], s["batch"], s["snapshot"]) for s in found["shards"]] == [
        (stage, shard, 4, 2) for stage in (1, 2) for shard in (0, 1)
    ]
    operators = found["shards"][0]["operators"]
    assert [o["operator"] for o in operators] == ["Finalize", "Aggregate", "Project", "PartialAggregate", "Hopping"]
    assert operators[1]["fields"]["endpoints"] == "arrays"
    assert len({o["identity"] for o in operators}) == 5
    assert found["damaged"] == []


@pytest.mark.parametrize("kind", ["snapshot", "part", "log", "spilled"])
@pytest.mark.parametrize("how", ["flip", "empty", "cut"])
def test_each_damaged_file_is_named(monkeypatch, capsys, checkpoint, kind, how):
    files = sorted(checkpoint.rglob(f"state/*/*/{kind}-*"))
    assert files
    for path in files:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 4
        path.write_bytes({"flip": content, "empty": b"", "cut": content[: len(content) // 2]}[how])
    done = call(monkeypatch, capsys, "state", checkpoint)
    assert done.code == 1
    assert not [path for path in files if f"damaged file {path}: " not in done.out]


@pytest.mark.parametrize("kind", ["part", "spilled", "log"])
def test_missing_files_are_named(monkeypatch, capsys, checkpoint, kind):
    """Of the logs the one that others follow: nobody knows how many there were."""
    newest = [path for path in sorted(checkpoint.rglob(f"state/1/1/{kind}-*")) if int(path.name.split("-")[1]) >= 2]
    gone = newest[1] if kind == "log" else newest[0]
    gone.unlink()
    done = call(monkeypatch, capsys, "state", checkpoint)
    assert done.code == 1
    assert f"damaged file {gone}: it is missing, and " in done.out


def test_mistakes_are_named(monkeypatch, capsys, checkpoint, tmp_path):
    for args, text in (
        ([tmp_path / "nothing"], "is not the checkpoint of a query that cedr runs: it has no folder cedr/state"),
        ([checkpoint, "--operator", "7.1"], "there is no operator 7.1; there are: 1.0, 1.1"),
        ([checkpoint, "--operator", "1.1", "--field", "x"], "--field x: operator 1.1 has no such field with rows"),
        ([checkpoint, "--field", "x"], "--field needs --operator"),
    ):
        done = call(monkeypatch, capsys, "state", *args)
        assert done.code == 2
        assert text in done.err


def test_a_checkpoint_with_logs_only(monkeypatch, capsys, tmp_path):
    """Small logs are not replaced by a snapshot for a while; the metrics name the operators."""
    SmallRun(tmp_path).run(0)
    done = call(monkeypatch, capsys, "state", tmp_path / "checkpoint")
    assert done.code == 0
    assert any(line.startswith("1.1 ") and "Aggregate" in line for line in done.out.splitlines())
    with pytest.raises(CedrError, match=r"rows of operator 1\.1 are not in a snapshot, only in logs: stage 1, shard 0"):
        Inspection(str(tmp_path / "checkpoint")).state_of("1.1")


def test_cells_after_another_number_of_shards(monkeypatch, capsys, tmp_path):
    started = SmallRun(tmp_path)
    started.run(0)
    started.rescale(3, 0)
    SmallRun(tmp_path, 0).run(1)
    done = call(monkeypatch, capsys, "state", tmp_path / "checkpoint")
    assert done.code == 0, done
    lines = done.out.splitlines()
    assert lines[0].split()[:4] == ["stage", "shard", "cell", "micro-batch"]
    cells = [line.split()[1:4] for line in lines[1:3]]
    assert cells == [["0", "0", "1"], ["2", "1", "1"]], "the stage cannot be split, so its cells move"


def test_the_page_shows_what_the_command_prints(tmp_path):
    """With the checkpoint that is kept in the tests."""
    unpack(tmp_path)
    (tmp_path / "cedr").symlink_to(ROOT / "cedr")
    commands = [step for step in steps((ROOT / "docs" / "state.md").read_text()) if isinstance(step, Command)]
    for command in commands:
        run(command, tmp_path)
    assert len(commands) >= 3
