"""Power cuts and full disks at any step: the next start continues as before, or names what is damaged."""

import os
import subprocess
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from runtime.spark.small_run import BATCHES, LATE, SmallRun, expected
from storage.failing_disk import FailingDisk, PowerCut

from cedr.runtime.spark.shard import state
from cedr.sinks import parquet_table as parquet
from cedr.storage import disk, snapshots
from cedr.storage.disk import Disk
from cedr.storage.folder import TEMPORARY
from cedr.temporal.errors import CedrError, StorageError

CUTS = 20
LONGEST = 130
"""No batch takes more steps."""


@pytest.fixture
def put(monkeypatch):
    """Puts a disk under all storage. Rows are spilled, snapshots taken and files put together all the time."""
    monkeypatch.setattr(state, "MANY_BYTES", 100)
    monkeypatch.setattr(state, "MANY_BATCHES", 2)
    monkeypatch.setattr(parquet, "MANY_FILES", 2)
    monkeypatch.setattr(snapshots, "SMALL_TABLE", 30)
    monkeypatch.setattr(snapshots, "MANY_PARTS", 4)

    def put(made: FailingDisk) -> FailingDisk:
        monkeypatch.setattr(disk, "local", made)
        return made

    return put


def run_through(place: Path, here: FailingDisk, random: Random, cuts: int) -> SmallRun:
    """All batches, with this many power cuts at random steps."""
    run, done = None, None
    while done != BATCHES:
        here.cut = here.steps + random.randrange(LONGEST) if cuts else None
        try:
            run = run or SmallRun(place, done)
            batch = 0 if done is None else done + 1
            run.run(batch, parts=random.randint(1, 3))
            done = batch
        except PowerCut:
            here.fail(random)
            run, cuts = None, cuts - 1
    here.cut = None
    return SmallRun(place, done)


@pytest.mark.parametrize("seed", range(3))
def test_a_power_cut_at_any_step_loses_nothing(put, tmp_path, seed):
    here = put(FailingDisk())
    run = run_through(tmp_path, here, Random(seed), CUTS)
    assert run.table() == expected()
    assert run.late_rows() == LATE
    assert leftovers(tmp_path) == []


def test_a_disk_that_does_not_sync_never_leads_to_a_wrong_answer(put, tmp_path):
    """It is a broken promise of the disk, so an error is all right; a wrong table is not."""
    seen = Counter()
    for seed in range(12):
        random = Random(seed)
        here, place = put(FailingDisk(lies=True)), tmp_path / str(seed)
        place.mkdir()
        try:
            run = run_through(place, here, random, cuts=2)
            assert run.table() == expected()
            seen["right"] += 1
        except CedrError as e:
            seen[type(e).__name__ if str(tmp_path) in str(e) else str(e)] += 1
    assert seen["DamagedFileError"] > 0, seen
    assert seen.keys() <= {"right", "DamagedFileError", "SinkError"}


def test_a_full_disk_leaves_nothing_behind_and_loses_nothing(put, tmp_path):
    """Every write of a batch finds no room once."""
    random, run = Random(1), None
    here = put(FailingDisk())
    done, failed = None, 0
    while done != BATCHES:
        here.full = here.writes + failed
        try:
            run = run or SmallRun(tmp_path, done)
            batch = 0 if done is None else done + 1
            run.run(batch, parts=random.randint(1, 2))
            done, failed = batch, 0
        except StorageError as e:
            run, failed, text = None, failed + 3, str(e)
        if run is None:
            assert "cannot be written: No space left on device. What was finished before is safe" in text
            assert str(tmp_path) in text
            assert leftovers(tmp_path) == []
    here.full = None
    assert SmallRun(tmp_path, done).table() == expected()


@pytest.fixture
def small_disk(tmp_path):
    """A real one, of 400 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("only root may mount a small disk here; the other tests have one that pretends to be full")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_disk_that_is_really_full(put, small_disk):
    """There is room for a page more in each attempt."""
    put(Disk())
    ballast, done, errors = small_disk / "ballast", None, []
    for pages in range(60):
        ballast.write_bytes(b"")
        free = os.statvfs(small_disk)
        ballast.write_bytes(bytes(max(0, free.f_bavail - pages) * free.f_frsize))
        try:
            run = SmallRun(small_disk, done)
            run.run(0 if done is None else done + 1)
            done = 0 if done is None else done + 1
        except CedrError as e:
            errors.append(e)
        assert leftovers(small_disk) == []
        if done == 2:
            break
    ballast.unlink()
    assert {type(e) for e in errors} == {StorageError}
    run = SmallRun(small_disk, done)
    run.run_from(done + 1)
    assert run.table() == expected()


def test_what_a_killed_process_was_writing_is_swept(put, tmp_path):
    here = put(FailingDisk())
    SmallRun(tmp_path).run(0)
    for folder in ("checkpoint/cedr", "checkpoint/cedr/state/1/0", "checkpoint/cedr/late", "out", "out/_cedr/staged"):
        (tmp_path / folder / f".x.{'0a' * 16}").write_bytes(b"half")
    assert len(leftovers(tmp_path)) == 5
    here.folders.clear()
    SmallRun(tmp_path, 0)
    assert leftovers(tmp_path) == []


def leftovers(place: Path) -> list[str]:
    return [str(path) for path in place.rglob("*") if TEMPORARY.fullmatch(path.name)]
