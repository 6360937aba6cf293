"""Snapshots in a folder: what did not change is not written again, and what is not needed is removed."""

import json
from random import Random

import numpy as np
import polars as pl
import pytest

from cedr.columnar.index import RowIndex
from cedr.storage import snapshots
from cedr.storage.folder import Folder
from cedr.storage.seal import header
from cedr.storage.snapshots import Snapshots, file_name
from cedr.temporal.errors import DamagedFileError, StorageError

LARGE = 10_000


@pytest.fixture
def folder(any_storage):
    made = Folder(f"{any_storage}/state", label="state")
    made.make()
    return made


def parts(folder: Folder) -> list[str]:
    return [name for name in folder.names() if name.startswith("part-")]


def read(folder: Folder, batch: int):
    here = Snapshots(folder)
    return here.read(here.manifest(batch))


def same(one, two) -> bool:
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[k], two[k]) for k in one)
    if isinstance(one, list):
        return len(one) == len(two) and all(map(same, one, two))
    return one.equals(two) if isinstance(one, pl.DataFrame) else bool(np.array_equal(one, two))


def test_only_what_is_new_is_written(folder):
    """Of 100 blocks one changes each time."""
    blocks, here = [np.arange(LARGE) + n for n in range(100)], Snapshots(folder)
    whole = here.write(0, {"blocks": blocks, "few": np.arange(3)})
    assert whole > 100 * 8 * LARGE
    written = 0
    for batch in range(1, 60):
        blocks[batch] = blocks[batch] + 1
        written += here.write(batch, {"blocks": blocks, "few": np.arange(3)})
        here.forget_before(batch - 1)
    assert same(read(folder, 59), {"blocks": blocks, "few": np.arange(3)})
    assert same(read(folder, 58)["blocks"][:59], blocks[:59])
    changed = 59 * 8 * LARGE
    assert written < 3 * changed
    stored = sum(len(folder.find_plain(name)) for name in folder.names())
    assert stored < 2.5 * whole, "what is not needed is removed"
    shared = whole // snapshots.SHARED_PART + 1
    assert len(parts(folder)) <= snapshots.MANY_PARTS + 2 * shared


def test_what_stays_gets_a_part_of_its_own(folder):
    """Most of the state changes each time: the rest is written twice, not always."""
    stays, here, written = np.arange(LARGE), Snapshots(folder), []
    for batch in range(6):
        changes = [np.arange(LARGE) + batch + n for n in range(3)]
        written.append(here.write(batch, [stays, *changes]))
        here.forget_before(batch - 1)
        assert same(read(folder, batch), [stays, *changes])
    assert [round(size / (8 * LARGE)) for size in written] == [4, 4, 3, 3, 3, 3]


def test_a_new_process_continues(folder):
    Snapshots(folder).write(0, [np.arange(LARGE), np.arange(LARGE) * 2])
    here = Snapshots(folder)
    tree = here.read(here.manifest(0))
    assert here.write(1, [*tree, np.arange(3)]) < 2000
    assert len(parts(folder)) == 1
    assert same(read(folder, 1), [np.arange(LARGE), np.arange(LARGE) * 2, np.arange(3)])


def test_pieces_of_an_index_are_written_once(folder):
    index, here = RowIndex({"k": pl.Int64(), "s": pl.String()}), Snapshots(folder)
    rows = pl.DataFrame({"k": range(LARGE)}).with_columns(s=pl.col("k").cast(pl.String))
    index.ids(rows)
    first = here.write(0, index.snapshot())
    for batch in range(1, 4):
        index.ids(rows[:300].with_columns(pl.col("k") + 1_000_000 * batch))
        assert here.write(batch, index.snapshot()) < first / 4
    again = RowIndex(index.schema)
    again.restore(read(folder, 3))
    assert again.rows.equals(index.rows)
    assert (again.ids(rows[::-1]) == index.ids(rows[::-1])).all()


def test_a_copy_is_written_again(folder):
    """Arrays that are changed in place are copied for a snapshot."""
    array, here = np.arange(LARGE), Snapshots(folder)
    for batch in range(3):
        array[0] = batch
        assert here.write(batch, array.copy()) > 8 * LARGE
        assert read(folder, batch)[0] == batch


def test_a_part_that_another_process_has_removed_is_written_again(folder):
    """The other one took part of the log for its own, and does not know of our snapshot."""
    array, here = np.arange(LARGE), Snapshots(folder)
    here.write(0, array)
    folder.remove(parts(folder))
    here.write(1, array)
    assert same(read(folder, 1), array)


class Racing(Folder):
    """Another process removes the older parts right before the manifest is there."""

    def write(self, name, content, sync="folder"):
        if name.endswith("1"):
            self.remove([n for n in self.names() if n.startswith("part-000000000000")])
        super().write(name, content, sync)


def test_a_part_that_is_removed_at_the_same_time_is_written_again(folder):
    array, here = np.arange(LARGE), Snapshots(Racing(folder.place, label="state"))
    here.write(0, array)
    here.write(1, array)
    assert same(read(folder, 1), array)


def test_parts_of_a_slow_process_are_not_removed(folder):
    """It has written its part, and its manifest is still to come."""
    Snapshots(folder).write(5, np.arange(LARGE))
    manifest = file_name("snapshot", 5)
    content = folder.find_plain(manifest)
    folder.remove([manifest])
    here = Snapshots(folder)
    here.write(4, np.zeros(LARGE))
    here.write(6, np.ones(LARGE))
    here.forget_before(4)
    folder.write_plain(manifest, content)
    assert same(read(folder, 5), np.arange(LARGE))


def test_a_damaged_old_manifest_does_no_harm(folder):
    array, here = np.arange(LARGE), Snapshots(folder)
    here.write(0, array)
    folder.write_plain(file_name("snapshot", 0), b"")
    here.write(1, array)
    here.forget_before(0)
    assert same(read(folder, 1), array)


class FullOnce(Folder):
    """No room for the manifest of the second snapshot, once."""

    full = True

    def write(self, name, content, sync="folder"):
        if name.endswith("1") and self.full:
            self.full = False
            raise StorageError(name, OSError(28, "No space left on device"))
        super().write(name, content, sync)


def test_a_snapshot_that_could_not_be_written_is_written_later(folder):
    one, two, here = np.arange(LARGE), np.zeros(LARGE), Snapshots(FullOnce(folder.place, label="state"))
    here.write(0, [one])
    with pytest.raises(StorageError):
        here.write(1, [two])
    here.write(1, [one, two])
    here.write(2, [one, two])
    here.forget_before(2)
    assert same(read(folder, 2), [one, two])
    assert len(parts(folder)) == 2, "the part without a snapshot is removed"


# --- manifests that are something else, behind a right checksum ------------------------------------------------------

TREE = {"a": np.arange(1000), "b": pl.DataFrame({"v": ["x"]}), "c": [1, (2.5, None)], "d": np.arange(4)}


def with_checksum(folder: Folder, name: str, content: bytes) -> None:
    folder.write_plain(name, header(folder.label_of(name), content) + content)


def content_of(folder: Folder, name: str) -> bytes:
    return folder.find_plain(name).partition(b"\n")[2]


@pytest.mark.parametrize("kind", ["snapshot", "part"])
def test_any_content_is_read_or_refused(folder, kind):
    Snapshots(folder).write(7, TREE)
    (name,) = [name for name in folder.names() if name.startswith(kind)]
    good, random, errors = content_of(folder, name), Random(kind), []
    for attempt in range(1000):
        changed = bytearray(good)
        at = random.randrange(len(changed))
        match attempt % 4:
            case 0:
                changed[at] ^= 1 << random.randrange(8)
            case 1:
                del changed[at:]
            case 2:
                del changed[at : at + random.randrange(1, 30)]
            case 3:
                changed[at : at + 1] = random.choice([b"9", b'"', b"]", b"}", b"-", b"null", b"\xff\xff\xff\xff"])
        with_checksum(folder, name, bytes(changed))
        try:
            read(folder, 7)
        except DamagedFileError as e:
            errors.append(str(e))
    assert all(folder.place in error for error in errors)
    assert len(errors) > (700 if kind == "snapshot" else 300)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("parts", {"../../etc/passwd": 1}),
        ("parts", {"part-1/../../x": 1}),
        ("parts", []),
        ("parts", {"part-x": "1"}),
        ("tables", [{"array": "<i8", "shape": [1], "at": 0, "size": 2**62}]),
        ("tables", [{"array": "<i8", "shape": [2**60], "part": 0, "at": 0, "size": 2**62}]),
        ("tables", [{"array": "<i8", "shape": [1], "part": 5, "at": 0, "size": 1}]),
        ("tables", [{"array": "<i8", "shape": [1], "part": -1, "at": 0, "size": 1}]),
        ("tables", [{"at": 0, "size": 1}]),
        ("tables", [7]),
        ("tables", []),
        ("tables", {}),
        ("tree", {"$array": 99}),
        ("tree", {"$os.system": ["true"]}),
    ],
)
def test_wrong_manifests_are_refused(folder, key, value):
    Snapshots(folder).write(7, TREE)
    name = file_name("snapshot", 7)
    line, _, small = content_of(folder, name).partition(b"\n")
    with_checksum(
        folder, name, json.dumps(json.loads(line) | {key: value}, separators=(",", ":")).encode() + b"\n" + small
    )
    with pytest.raises(DamagedFileError, match=folder.place):
        read(folder, 7)


def test_a_missing_part_is_named(folder):
    Snapshots(folder).write(7, TREE)
    folder.remove(parts(folder))
    with pytest.raises(DamagedFileError, match=r"/part-000000000007-.*: it is missing, and snapshot-000000000007 requ"):
        read(folder, 7)
