"""State in files: the same values as in memory, pages given back at any time, and errors that name the disk."""

import datetime
import decimal
import gc
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from in_files import files_of_at_most, use_files

from cedr.columnar import blocks, mapped
from cedr.columnar.blocks import SortedBlocks
from cedr.columnar.index import RowIndex
from cedr.columnar.mapped import MEMORY, SpillError, StateMemory, default_limit, memory_size
from cedr.temporal.errors import QueryError


@pytest.fixture
def on_disk(monkeypatch, tmp_path):
    use_files(monkeypatch, tmp_path)


def test_an_array_in_a_file_grows_and_keeps_its_values(on_disk):
    array = MEMORY.room((10, 3))
    array[:] = np.arange(30).reshape(10, 3)
    assert MEMORY.trim()
    larger = MEMORY.grown(array, 10_000)
    assert (larger[:10] == np.arange(30).reshape(10, 3)).all()
    larger[9_999] = 7
    assert MEMORY.on_disk == 30 * 8 + 30_000 * 8
    number = MEMORY.files[mapped.address(larger)].number
    assert os.fstat(number).st_blocks * 512 >= 30_000 * 8  # a full disk is noticed now, not when a page is written
    del array
    gc.collect()
    MEMORY.trim()
    assert (larger[9_999] == 7).all()
    assert MEMORY.on_disk == 30_000 * 8


def test_zeros_are_zeros(on_disk):
    used = MEMORY.room((1000,))
    used[:] = 5
    assert not MEMORY.zeros(1000, np.uint64).any()


def test_small_state_stays_in_memory():
    memory = StateMemory()
    memory.allow("one", 600)
    memory.allow("two", 400)
    memory.note(test_small_state_stays_in_memory, 249)
    assert not memory.is_short
    memory.note(test_small_state_stays_in_memory, 250)
    assert memory.is_short
    assert not memory.trim()  # nothing is in files
    memory.withdraw("one")
    assert memory.limit == 400
    memory.withdraw("two")
    assert not memory.is_short


def test_files_have_no_names_and_are_gone_with_their_arrays(on_disk, tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    array = MEMORY.room((1000,))
    frame = MEMORY.stored(pl.DataFrame({"v": [1, 2]}))
    assert not list(tmp_path.iterdir())
    assert len(MEMORY.files) == 2
    del array, frame
    gc.collect()
    assert not MEMORY.files
    assert len(os.listdir("/proc/self/fd")) == before


def test_only_pages_in_use_are_resident(on_disk, monkeypatch):
    monkeypatch.setattr(MEMORY, "limits", {"test": 2 << 20})
    MEMORY.note(test_only_pages_in_use_are_resident, 2 << 20)
    array = MEMORY.room((4 << 20,))
    for part in range(8):
        array[part << 19 : (part + 1) << 19] = part
        assert MEMORY.trim()
        assert MEMORY._resident() - MEMORY._before < 16 << 20  # 32 MB were written
    assert [int(array[part << 19]) for part in range(8)] == list(range(8))


# --- frames -----------------------------------------------------------------------------------------------------------

BERLIN = pl.Datetime("us", "Europe/Berlin")
EVERY_TYPE = pl.DataFrame(
    {
        "whole": pl.Series([1, None, -(2**63)], dtype=pl.Int64),
        "small": pl.Series([1, None, 255], dtype=pl.UInt8),
        "huge": pl.Series([2**100, None, -1], dtype=pl.Int128),
        "fraction": pl.Series([0.5, float("nan"), None]),
        "flag": [True, None, False],
        "text": ["", None, "a text that is too long to be stored in a view itself"],
        "bytes": [b"", None, b"\x00\xff" * 20],
        "decimal": pl.Series([decimal.Decimal("1.20"), None, decimal.Decimal("-0.01")], dtype=pl.Decimal(20, 2)),
        "date": [datetime.date(2024, 2, 29), None, datetime.date(1, 1, 1)],
        "time": [datetime.time(12, 30), None, datetime.time(0)],
        "duration": [datetime.timedelta(seconds=1), None, datetime.timedelta(days=-3)],
        "zoned": pl.Series([datetime.datetime(2024, 10, 27, 0, 30), None, None])
        .dt.replace_time_zone("UTC")
        .cast(BERLIN),
        "nano": pl.Series([1, None, 2**62]).cast(pl.Datetime("ns")),
        "list": [[1, None], None, []],
        "nested": [[{"x": "a", "y": [1.5]}], None, [None]],
        "record": [{"x": 1, "y": "b"}, None, {"x": None, "y": None}],
        "array": pl.Series([[1, 2], None, [3, None]], dtype=pl.Array(pl.Int64, 2)),
        "choice": pl.Series(["a", None, "b"], dtype=pl.Enum(["b", "a"])),
        "category": pl.Series(["x", None, "y"], dtype=pl.Categorical),
        "null": [None, None, None],
    }
)


def test_rows_of_every_type_are_read_back_from_a_file(on_disk):
    for column in EVERY_TYPE:
        frame = column.to_frame()
        read = MEMORY.stored(frame)
        assert (read is frame) == (column.name == "huge")  # pyarrow does not read integers of 128 bits
        MEMORY.trim()
        assert read.schema == frame.schema
        assert read.equals(frame)
        assert set(read.n_chunks("all")) == {1}


@pytest.mark.parametrize("column", EVERY_TYPE.columns)
def test_an_index_in_files_gives_what_one_in_memory_gives(on_disk, column, monkeypatch):
    frame = EVERY_TYPE.select(column, pl.Series("n", [1, 2, 1]))
    chunks = [frame, frame[::-1], frame.with_columns(n=pl.col("n") + 1), frame]
    spilled = RowIndex(dict(frame.schema))
    numbers = [spilled.ids(chunk).tolist() for chunk in chunks]
    monkeypatch.setattr(MEMORY, "limits", {})
    plain = RowIndex(dict(frame.schema))
    assert numbers == [plain.ids(chunk).tolist() for chunk in chunks]
    every = np.arange(len(plain))
    assert spilled.take(every).equals(plain.take(every))
    assert spilled.snapshot().equals(plain.snapshot())
    assert spilled._stored == len(spilled._pieces)


@pytest.mark.parametrize("schema", [{"v": pl.Int64()}, {"v": pl.Int64(), "w": pl.Int64()}, {"v": pl.String()}])
def test_a_large_index_in_files_is_looked_up_and_compacted(on_disk, schema, monkeypatch):
    monkeypatch.setattr("cedr.columnar.index.NUMBERS_AT_ONCE", 7_000)
    index = RowIndex(schema)
    numbers = pl.Series(np.random.default_rng(3).permutation(60_000))
    frame = pl.DataFrame({name: numbers.cast(kind) for name, kind in schema.items()})
    ids = np.concatenate([index.ids(frame[:40_000]), index.ids(frame[30_000:])[10_000:]])
    assert ids.tolist() == list(range(60_000))
    assert index.ids(frame[::-7]).tolist() == ids[::-7].tolist()
    assert index.take(ids[5:500]).equals(frame[5:500])
    kept = np.arange(3, 60_000, 3)
    renumbered = index.compact(kept)
    assert renumbered[kept].tolist() == list(range(len(kept)))
    assert index.take(renumbered[kept]).equals(frame[3::3])
    assert index.ids(frame[3::3]).tolist() == list(range(len(kept)))
    assert index.ids(frame[:1], add=False).tolist() == [-1]


def test_blocks_in_files(on_disk, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 4)
    random = np.random.default_rng(1)
    rows = np.column_stack([np.arange(5000), random.integers(0, 9, 5000), np.ones((5000, 2))]).astype(np.int64)
    store = SortedBlocks(4, 2, 2)
    for chunk in np.split(rows[random.permutation(5000)], 50):
        store.add(chunk[np.argsort(chunk[:, 0])])
        MEMORY.trim()
    assert (store.flat() == rows).all()
    assert all(mapped.address(array) in MEMORY.files for array in (store.pool, store.entries, store.segments))


def random_blocks(seed, rows=3000):
    """Blocks of 4 rows with keys `(group, time)` that were added at random places, some of which are gone."""
    random = np.random.default_rng(seed)
    content = np.column_stack(
        [np.repeat(np.arange(rows // 10), 10), np.tile(np.arange(0, 50, 5), rows // 10), np.ones((rows, 2))]
    ).astype(np.int64)
    content[:, 3] = random.integers(0, 9, rows)
    store = SortedBlocks(4, 2, 2)
    for chunk in np.array_split(content[random.permutation(rows)], 30):
        store.add(chunk[np.lexsort((chunk[:, 1], chunk[:, 0]))])
    gone = content[np.sort(random.choice(rows, rows // 3, replace=False))]
    store.remove(gone)
    return store


def test_rows_are_read_from_files_as_from_memory(on_disk, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 4)
    monkeypatch.setattr(blocks, "SEGMENT_BITS", 1)
    in_file = random_blocks(5)
    assert MEMORY.place_of(in_file.pool) is not None
    monkeypatch.setattr(MEMORY, "limits", {})
    plain = random_blocks(5)
    assert MEMORY.place_of(plain.pool) is None
    random = np.random.default_rng(6)
    groups = np.sort(random.integers(-2, 305, 40))
    begin, length = random.integers(-5, 55, (2, 40))
    begin.sort()
    queries = [
        ([groups], [groups + 1]),
        ([groups], [groups]),
        ([np.full(40, 7), begin], [np.full(40, 7), begin + length]),
        ([groups, np.zeros_like(groups)], [groups + 3, np.full(40, 20)]),
        ([groups[:0]], [groups[:0]]),
    ]
    for low, high in queries:
        for found, wanted in zip(in_file.between(low, high), plain.between(low, high), strict=True):
            assert found.tolist() == wanted.tolist()
    for key in ([-5, 0], [0, 0], [100, 27], [299, 45], [400, 0]):
        for count in (1, 2, 9, 10_000):
            assert in_file.run(key, count).tolist() == plain.run(key, count).tolist()
    from_file, from_memory, more = np.array([[-1, 0]]), np.array([[-1, 0]]), True
    while more:
        rows, more = in_file.ended(from_file, 37, 3, 4)
        wanted, also = plain.ended(from_memory, 37, 3, 4)
        assert (rows.tolist(), more, from_file.tolist()) == (wanted.tolist(), also, from_memory.tolist())


def test_nothing_is_resident_after_reading_from_files(on_disk, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 4)
    store = random_blocks(7)
    MEMORY.trim()
    assert resident_pages(store.pool) == 0
    store.of_groups(np.arange(300))
    assert resident_pages(store.pool) == 0
    assert store.pool[0, 0] >= 0
    assert resident_pages(store.pool) > 0


def resident_pages(array):
    """Pages of an array that are mapped now."""
    number, page = mapped.address(array) // mapped.PAGE, 8
    with open("/proc/self/pagemap", "rb") as pages:
        pages.seek(number * page)
        entries = np.frombuffer(pages.read(page * -(-array.nbytes // mapped.PAGE)), dtype=np.uint64)
    return int((entries >> np.uint64(63)).sum())


@pytest.mark.parametrize("names", [None, ["date", "whole", "text"], ["zoned"], ["category"]])
def test_columns_of_some_rows_are_read_from_several_files(on_disk, names, monkeypatch):
    """Some pieces are in files, the last are in memory, and columns have missing values in none of them, in those in
    files, or in those in memory."""
    every = EVERY_TYPE.drop("huge", "null")
    full, part = every[::2].with_columns(pl.all().fill_null(strategy="backward").fill_null(strategy="forward")), every
    for pieces in ([full, full, full], [full, full, part], [full, part, full], [part, full, full]):
        index = RowIndex(dict(every.schema))
        index._pieces = pieces[:2]
        index._store_pieces(1)
        index._pieces.append(pieces[2])
        rows = pl.concat(pieces)
        ids = np.random.default_rng(8).integers(0, rows.height, 50)
        wanted = rows[ids] if names is None else rows[ids].select(names)
        assert index.take(ids, names).equals(wanted)
        assert index.take(ids[:0], names).equals(wanted[:0])


def test_plain_columns_are_read_without_mapping_them(on_disk):
    """So that reading at random places leaves nothing resident."""
    index = RowIndex({"v": pl.Float64(), "t": pl.Datetime("us", "Europe/Berlin"), "s": pl.String()})
    index.ids(pl.DataFrame({"v": [0.5, 1.5], "t": [1, 2], "s": ["a", "b"]}).cast(index.schema))
    assert list(index._files.places) == ["v", "t"]
    mapped_values = index._pieces[0]["v"].to_numpy()
    MEMORY.trim()
    assert index.take(np.array([1, 0, 1]), ["v"])["v"].to_list() == [1.5, 0.5, 1.5]
    assert resident_pages(mapped_values) == 0


def test_pages_of_small_files_stay(on_disk, monkeypatch):
    monkeypatch.setattr(MEMORY, "limits", {"test": 8 << 20})
    MEMORY.note(test_pages_of_small_files_stay, 8 << 20)
    small, large = MEMORY.room((1 << 17,)), MEMORY.room((1 << 20,))
    small[:] = 1
    assert not MEMORY.trim()
    large[:] = 2
    assert MEMORY.trim()
    assert (resident_pages(small) > 0, resident_pages(large)) == (True, 0)
    assert MEMORY.trim(soon=8 << 20)
    assert resident_pages(small) == 0
    assert (small == 1).all()
    assert (large == 2).all()


# --- the disk is full -------------------------------------------------------------------------------------------------


def test_an_array_that_does_not_fit_on_the_disk(on_disk, tmp_path):
    array = MEMORY.room((100,))
    array[:] = 3
    with files_of_at_most(1000), pytest.raises(SpillError, match=f"8,000,000 bytes.*{tmp_path}.*TMPDIR.*state_memory"):
        MEMORY.grown(array, 1_000_000)
    assert (array == 3).all()
    assert len(MEMORY.grown(array, 1_000_000)) == 1_000_000


def test_a_frame_that_does_not_fit_on_the_disk(on_disk, tmp_path):
    frame = pl.DataFrame({"v": range(100_000)})
    with files_of_at_most(1000), pytest.raises(SpillError, match=f"800,000 bytes.*{tmp_path}"):
        MEMORY.stored(frame)
    assert MEMORY.stored(frame).equals(frame)


def test_a_file_that_cannot_be_read(on_disk, monkeypatch, tmp_path):
    """As if the disk were broken: what is read directly is an error, where a mapped page would be a signal."""
    monkeypatch.setattr(blocks, "BLOCK", 4)
    store = random_blocks(9)
    os.ftruncate(MEMORY.place_of(store.pool).number, 0)
    with pytest.raises(SpillError, match=f"in the folder {tmp_path} cannot be read: the disk may be broken.*TMPDIR"):
        store.of_groups(np.arange(300))
    index = RowIndex({"v": pl.Float64()})
    index.ids(pl.DataFrame({"v": [0.5, 1.5]}))
    os.ftruncate(index._files.places["v"][0].number, 0)
    with pytest.raises(SpillError, match="cannot be read"):
        index.take(np.array([1]))


def test_a_folder_that_does_not_exist(on_disk, monkeypatch):
    monkeypatch.setattr(MEMORY, "folder", "/nowhere")
    with pytest.raises(SpillError, match="/nowhere: No such file or directory"):
        MEMORY.room((100,))


# --- the setting ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "nbytes"), [("1g", 1 << 30), ("512m", 512 << 20), ("3MB", 3 << 20), (7, 7), ("7", 7)]
)
def test_sizes(value, nbytes):
    assert memory_size(value) == nbytes


@pytest.mark.parametrize("value", ["", "much", "1.5g", "-1g", 0, -5, True, "0m", 1.5])
def test_what_is_not_a_size(value):
    with pytest.raises(QueryError, match=r'state_memory is .*, which is not a size; write "512m", "1g" or a number'):
        memory_size(value)


def test_the_default_is_a_part_of_the_memory():
    total = int(Path("/proc/meminfo").read_text().split()[1]) << 10
    assert 0 < default_limit(4) <= total // 8
    assert default_limit(4) == default_limit() // 4
