"""Tables that snapshots refer to instead of keeping them: sorted blocks and rows of an index in a folder."""

from pathlib import Path
from random import Random

import numpy as np
import polars as pl
import pytest

from cedr.columnar import blocks, increments
from cedr.columnar.blocks import SortedBlocks
from cedr.columnar.increments import BlockColumns, SavedBlocks, SavedColumns, SavedPiece, source_of
from cedr.columnar.index import RowIndex
from cedr.columnar.pieces import stored_of
from cedr.columnar.stored import LostTableError, StoredTable, incremental
from cedr.storage import snapshots
from cedr.storage.folder import Folder
from cedr.storage.seal import header
from cedr.storage.snapshots import Snapshots, file_name
from cedr.storage.tables import to_bytes
from cedr.temporal.errors import DamagedFileError, StorageError

VIEW = BlockColumns((0, 1, (2, 4)), ("key", "time", "rest"), {"format": "..."})


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 4)
    monkeypatch.setattr(increments, "SMALL", 0)
    monkeypatch.setattr(increments, "FEW_BYTES", 0)
    monkeypatch.setattr(snapshots, "SMALL_TABLE", 50)
    monkeypatch.setattr(snapshots, "LARGE_TABLE", 400)


@pytest.fixture
def folder(tmp_path):
    made = Folder(str(tmp_path / "state"), label="state")
    made.make()
    return made


def parts(folder) -> list[str]:
    return [name for name in folder.names() if name.startswith("part-")]


def filled(size: int = 2000) -> SortedBlocks:
    store = SortedBlocks(4, 2, 2)
    store.replace(np.array([[n // 50, n % 50, 1, n] for n in range(size)], dtype=np.int64))
    return store


def change(store: SortedBlocks, random: Random, count: int = 5) -> None:
    keys = sorted(random.sample(range(2000), count))
    store.add(np.array([[n // 50, n % 50, random.choice([-1, 1, 1]), 1] for n in keys], dtype=np.int64))


def increment(store: SortedBlocks, afresh: bool = False) -> SavedColumns:
    with incremental(afresh):
        return SavedColumns(store.increments.save(store), VIEW)


def write(here: Snapshots, batch: int, store: SortedBlocks) -> int:
    return here.write(batch, increment(store), lambda: increment(store, afresh=True))


def read(folder: Folder, batch: int):
    here = Snapshots(folder)
    return here.read(here.manifest(batch))


def check(folder: Folder, batch: int, flat: np.ndarray) -> None:
    found = read(folder, batch)
    assert found["format"] == "..."
    assert np.column_stack([found["key"], found["time"], found["rest"]]).tolist() == flat.tolist()


def test_only_changes_are_written_and_nothing_is_kept_in_memory(folder):
    store, here, random = filled(), Snapshots(folder), Random(1)
    first = write(here, 0, store)
    assert first > 2000 * 32
    assert not any(piece.table.in_memory for piece in store.increments.pieces)
    for batch in range(1, 100):
        change(store, random)
        assert write(here, batch, store) < first / 4
        here.forget_before(batch - 1)
        check(folder, batch, store.flat())
    stored = sum(Path(folder.path, name).stat().st_size for name in folder.names())
    assert stored < 2.5 * first, "what is not needed is removed"


def test_a_new_process_goes_on(folder):
    store, random = filled(), Random(2)
    write(Snapshots(folder), 0, store)
    for batch in range(1, 30):
        here = Snapshots(folder)
        source = source_of(here.read(here.manifest(batch - 1)))
        again = SortedBlocks(4, 2, 2)
        again.replace(store.flat())
        again.increments.adopt(source)
        change(again, random)
        assert write(here, batch, again) < 30_000
        here.forget_before(batch - 1)
        check(folder, batch, again.flat())
        store = again


def test_two_processes_that_take_turns(folder):
    """Each has state of its own, and removes parts that it does not know."""
    random = Random(3)
    both = [(filled(), Snapshots(folder)), (filled(), Snapshots(folder))]
    for batch in range(20):
        store, here = both[batch % 3 % 2]
        change(store, random)
        write(here, batch, store)
        here.forget_before(batch - 1)
        check(folder, batch, store.flat())


class Removing(Folder):
    """Another process removes all parts right before the manifest is there."""

    active = False

    def write(self, name, content, sync="folder"):
        if self.active:
            self.active = False
            self.remove([n for n in self.names() if n.startswith("part-")])
        super().write(name, content, sync)


def test_parts_that_are_removed_at_the_same_time_are_written_again(folder):
    store, place = filled(), Removing(folder.place, label="state")
    here = Snapshots(place)
    write(here, 0, store)
    change(store, Random(4))
    place.active = True
    write(here, 1, store)
    check(folder, 1, store.flat())


def test_a_table_that_is_gone_is_an_error_without_the_state(folder):
    here = Snapshots(folder)
    tree = increment(filled())
    here.write(0, tree)
    folder.remove(parts(folder))
    with pytest.raises(LostTableError):
        here.write(1, tree)


class FullOnce(Folder):
    """No room for a manifest, once."""

    full = False

    def write(self, name, content, sync="folder"):
        if self.full:
            self.full = False
            raise StorageError(name, OSError(28, "No space left on device"))
        super().write(name, content, sync)


@pytest.mark.parametrize("batch", [0, 1])
def test_what_could_not_be_written_is_written_later(folder, batch):
    """The first snapshot, or an increment."""
    store, place, random = filled(), FullOnce(folder.place, label="state"), Random(5)
    here = Snapshots(place)
    for number in range(batch):
        write(here, number, store)
        change(store, random)
    place.full = True
    with pytest.raises(StorageError):
        write(here, batch, store)
    change(store, random)
    write(here, batch + 1, store)
    here.forget_before(batch + 1)
    check(folder, batch + 1, store.flat())


def test_a_small_table_moves_when_its_part_is_written_again(folder):
    """It shares the part with tables that are not needed any more."""
    table = StoredTable.of(np.arange(20).reshape(10, 2))
    here, saved = Snapshots(folder), SavedBlocks(2, 1, 1, (SavedPiece(None, 0, table),), ())
    tree = SavedColumns(saved, BlockColumns((0, 1)))
    here.write(0, [tree, np.arange(1000)])
    before = table.place
    here.write(1, [tree, np.arange(1000) + 1])
    assert table.place.part != before.part
    assert not table.in_memory
    here.forget_before(1)
    (keys, values), _ = read(folder, 1)
    assert (keys.tolist(), values.tolist()) == (list(range(0, 20, 2)), list(range(1, 20, 2)))


def test_rows_of_an_index_are_written_once(folder):
    index, here = RowIndex({"k": pl.Int64(), "s": pl.String()}), Snapshots(folder)
    rows = pl.DataFrame({"k": range(100_000)}).with_columns(s=pl.col("k").cast(pl.String))
    written = 0
    for batch in range(100):
        index.ids(rows[batch * 1000 : (batch + 1) * 1000])
        with incremental():
            written += here.write(batch, index.snapshot())
        here.forget_before(batch - 1)
    assert written < 1.5 * len(to_bytes(index.rows)), "manifests are a part of it"
    found = read(folder, 99)
    assert found.equals(index.rows)
    again = RowIndex(index.schema)
    again.restore(found)
    assert len(stored_of(found)) == len(again._increments.tables) > 50
    here = Snapshots(folder)
    again.restore(here.read(here.manifest(99)))
    with incremental():
        assert here.write(100, again.snapshot()) < 50_000


def test_few_rows_at_a_time_make_few_tables(folder):
    index, here = RowIndex({"k": pl.Int64()}), Snapshots(folder)
    for batch in range(600):
        index.ids(pl.DataFrame({"k": [batch]}))
        with incremental():
            tree = index.snapshot()
        assert len(tree.tables) < 30
    here.write(0, tree)
    assert read(folder, 0)["k"].to_list() == list(range(600))


def test_damage_is_found_and_named(folder):
    store, here = filled(), Snapshots(folder)
    write(here, 0, store)
    change(store, Random(6))
    write(here, 1, store)
    for part in parts(folder)[:5]:
        path = Path(folder.path, part)
        content = path.read_bytes()
        path.write_bytes(content[:-20] + bytes([content[-20] ^ 1]) + content[-19:])
        with pytest.raises(DamagedFileError, match=part):
            read(folder, 1)
        path.unlink()
        with pytest.raises(DamagedFileError, match=f"{part}.*missing"):
            read(folder, 1)
        path.write_bytes(content)
    check(folder, 1, store.flat())


def test_any_manifest_is_read_or_refused(folder):
    """Behind a right checksum."""
    store, here, random = filled(100), Snapshots(folder), Random(7)
    write(here, 0, store)
    store.add(np.array([[0, 3, 1, 1]]))
    write(here, 1, store)
    name = file_name("snapshot", 1)
    good, refused = Path(folder.path, name).read_bytes().partition(b"\n")[2], 0
    start = good.index(b'"tree"')
    end = good.index(b"\n")
    for _ in range(600):
        changed = bytearray(good)
        at = random.randrange(start, end)
        changed[at : at + random.choice([0, 1, 1, 1, 2])] = random.choice(
            [b"", b"0", b"7", b"-", b"null", b"[", b"1e9"]
        )
        Path(folder.path, name).write_bytes(header(folder.label_of(name), bytes(changed)) + changed)
        try:
            read(folder, 1)
        except DamagedFileError as e:
            assert name in str(e)  # noqa: PT017  # or it is read
            refused += 1
    assert refused > 300


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"zero":2', b'"zero":1'),
        (b'"depth":2', b'"depth":3'),
        (b'"width":4', b'"width":5'),
        (b"[null,1,", b"[[1,2],1,"),
        (b"[2,4]", b"[2,5]"),
        (b"[2,4]", b"[4,2]"),
        (b'"names":["key",', b'"names":["key","key",'),
        (b'"columns":[0,', b'"columns":[-1,'),
        (b'"changes":[[1,', b'"changes":[[-1,'),
        (b'"more":{"format"', b'"repeat":2,"more":{"format"'),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(folder, old, new):
    store, here = filled(100), Snapshots(folder)
    write(here, 0, store)
    store.add(np.array([[0, 3, -2, 1]]))
    write(here, 1, store)
    name = file_name("snapshot", 1)
    good = Path(folder.path, name).read_bytes().partition(b"\n")[2]
    assert old in good
    changed = good.replace(old, new, 1)
    Path(folder.path, name).write_bytes(header(folder.label_of(name), changed) + changed)
    with pytest.raises(DamagedFileError, match=name):
        read(folder, 1)
