"""Sorted blocks that are saved again and again: what is read is what was there, and little is written."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr.columnar import blocks, increments
from cedr.columnar.blocks import SortedBlocks
from cedr.columnar.increments import SavedBlocks, rows_of
from cedr.columnar.stored import LostTableError, StoredTable, incremental, merge_from

rows = st.lists(
    st.tuples(st.tuples(st.integers(0, 5), st.integers(-9, 9)), st.integers(-2, 2), st.integers(-5, 5)), max_size=8
)
few = st.lists(st.tuples(st.tuples(st.integers(0, 5), st.integers(-9, 9)), st.just(1), st.integers(-5, 5)), max_size=2)
steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "few", "few", "few", "replace", "restore", "fail", "remove", "renumber"]), rows, few
    ),
    max_size=40,
)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 4)
    monkeypatch.setattr(increments, "SMALL", 0)
    monkeypatch.setattr(increments, "NOTED", 3)
    monkeypatch.setattr(increments, "FEW_BYTES", 0)


class Disk:
    """Stores tables, as `Snapshots` does; counts rows that it had to write."""

    def __init__(self) -> None:
        self.tables: list[np.ndarray] = []
        self.written = 0

    def write(self, saved: SavedBlocks) -> None:
        for item in (*saved.pieces, *saved.changes):
            if item.table.place is None:
                self.written += item.table.rows
                self.tables.append(item.table.table())
                assert len(self.tables[-1]) == item.table.rows
                item.table.store(len(self.tables) - 1)

    def read(self, saved: SavedBlocks) -> np.ndarray:
        return rows_of(saved, lambda table: self.tables[table.place])


def as_rows(chunk) -> np.ndarray:
    return np.array([[*key, k, w] for key, k, w in sorted(chunk)], dtype=np.int64).reshape(-1, 4)


def distinct(chunk) -> np.ndarray:
    return as_rows([(key, 1, w) for key, w in {key: w for key, _, w in chunk}.items()])


@given(rows, steps)
def test_what_is_saved_is_what_is_there(first, steps):
    disk, store = Disk(), SortedBlocks(4, 2, 2)
    store.add(as_rows(first))
    for what, some, one in steps:
        if what == "add":
            store.add(as_rows(some))
        elif what == "few":
            store.add(as_rows(one))
        elif what == "replace":
            store.replace(distinct(some))
        elif what == "remove":
            store.remove(store.flat()[store.flat()[:, 1] % 3 != len(some) % 3])
        elif what == "renumber":
            used = np.zeros(10, dtype=np.bool_)
            store.mark(0, used)
            assert np.flatnonzero(used).tolist() == sorted(set(store.flat()[:, 0]))
            store.renumber(0, np.cumsum(used) - 1)
        saved = store.increments.save(store)
        if what == "fail":
            store.add(as_rows(one))  # nothing was written
            saved = store.increments.save(store)
        disk.write(saved)
        assert disk.read(saved).tolist() == store.flat().tolist()
        assert store.rows == 0 or saved.pieces[0].low is None
        if what == "restore":
            other = SortedBlocks(4, 2, 2)
            other.replace(disk.read(saved))
            other.increments.adopt(saved)
            store = other


def test_a_snapshot_stays_as_it_was():
    """Later changes of the blocks have no effect on what was saved and written before."""
    random, disk, store, kept = np.random.default_rng(1), Disk(), SortedBlocks(4, 2, 2), []
    store.replace(distinct([((a, b), 1, 1) for a in range(40) for b in range(40)]))
    for _ in range(60):
        saved = store.increments.save(store)
        disk.write(saved)
        kept.append((saved, store.flat()))
        keys = random.integers(0, 40, (20, 2)).tolist()
        store.add(as_rows([((a, b), int(random.integers(-1, 2)), 1) for a, b in keys]))
    for saved, flat in kept:
        assert disk.read(saved).tolist() == flat.tolist()


@pytest.mark.parametrize(("size", "tables"), [(100, 220), (1, 150)])
def test_each_snapshot_writes_little(size, tables):
    """Of 10,000 rows some change each time, with random keys: 1 %, or one."""
    random, disk, store = np.random.default_rng(1), Disk(), SortedBlocks(4, 2, 2)
    store.replace(distinct([((a, b), 1, 1) for a in range(100) for b in range(100)]))
    disk.write(store.increments.save(store))
    assert disk.written == 10_000
    each = []
    for _ in range(400):
        keys = random.permutation(10_000)[:size]
        store.add(as_rows([((int(k) // 100, int(k) % 100), 0, 1) for k in keys]))
        before = disk.written
        saved = store.increments.save(store)
        disk.write(saved)
        each.append((disk.written - before) / size)
        assert len(saved.pieces) + len(saved.changes) <= tables
        assert sum(some.table.rows for some in saved.changes) <= 10_000
    assert disk.read(saved).tolist() == store.flat().tolist()
    assert np.mean(each) <= (3 if size == 100 else 6)
    assert size == 1 or max(each) <= 3, "at every snapshot, not only on average"


def test_large_changes_are_written_as_everything():
    disk, store = Disk(), SortedBlocks(4, 2, 2)
    store.replace(distinct([((a, 0), 1, 1) for a in range(300)]))
    disk.write(store.increments.save(store))
    store.add(as_rows([((a, 0), 0, 1) for a in range(200)]))
    saved = store.increments.save(store)
    assert saved.changes == ()
    assert sum(piece.table.rows for piece in saved.pieces) == 300


def test_small_content_is_written_whole(monkeypatch):
    monkeypatch.setattr(increments, "SMALL", 10_000)
    store = SortedBlocks(4, 2, 2)
    for n in range(3):
        store.add(as_rows([((n, 0), 1, 1)]))
        saved = store.increments.save(store)
        assert [piece.table.rows for piece in saved.pieces] == [n + 1]
        assert saved.changes == ()


def test_afresh_everything_is_written():
    disk, store = Disk(), SortedBlocks(4, 2, 2)
    store.replace(distinct([((a, 0), 1, 1) for a in range(300)]))
    disk.write(store.increments.save(store))
    with incremental(afresh=True):
        saved = store.increments.save(store)
    assert all(piece.table.place is None for piece in saved.pieces)
    assert rows_of(saved).tolist() == store.flat().tolist()


def test_a_table_that_is_read_too_late_is_not_there():
    store = SortedBlocks(4, 2, 2)
    store.replace(distinct([((a, 0), 1, 1) for a in range(300)]))
    saved = store.increments.save(store)
    store.add(as_rows([((1, 0), 1, 1)]))
    with pytest.raises(LostTableError):
        saved.pieces[0].table.table()


def test_a_stored_table_is_not_kept():
    table = StoredTable.of(np.arange(3).reshape(3, 1))
    assert table.in_memory
    table.store("somewhere")
    assert table.is_there
    assert not table.in_memory
    with pytest.raises(LostTableError):
        table.table()


@pytest.mark.parametrize("last", [1, 3, 1000])
def test_similar_tables_are_merged(last):
    """There are few of them, and each row is rarely written again."""
    sizes, written = [], 0
    for n in range(5000):
        new = last if n % 3 else 1
        sizes.append(new)
        start = merge_from(sizes, 100_000)
        sizes[start:] = [sum(sizes[start:])]
        written += sizes[-1]
        assert len(sizes) < 100
    assert written < 6 * sum(sizes)
