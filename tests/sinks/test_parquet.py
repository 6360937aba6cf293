"""The Parquet folder: what lies in it, for whom, and what each batch costs."""

import threading
from pathlib import Path

import polars as pl
import pyarrow.dataset
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan.catalogue import payloads
from sinks.places import SCHEMA, ParquetPlace, by_shard, history_of, in_shard, opened, send

from cedr import sinks, testing
from cedr.columnar.chunk import chunk_of
from cedr.sinks import parquet_table as parquet
from cedr.sinks.base import SinkError, SinkTable
from cedr.sinks.manifest import Manifest
from cedr.temporal import END, INF, Adjust, Cti, Insert, Row, canonical
from cedr.temporal.errors import DamagedFileError

A = Row(m=1, v=1)
TABLE = SinkTable("q", SCHEMA)


def chunk(*elements):
    return [chunk_of(elements, SCHEMA)]


def names(folder: Path, kind: str) -> set[str]:
    return {file.name for file in folder.glob(f"{kind}-*.parquet")}


@settings(max_examples=settings.default.max_examples // 2)
@given(testing.streams(payloads, max_size=8).flatmap(testing.slicings), st.integers(1, 2), st.integers(2, 3))
def test_any_reader_sees_the_table_between_commits(tmp_path_factory, slices, shards, many):
    """With few files per size, so that they are moved together all the time."""
    folder, table = tmp_path_factory.mktemp("answers"), SinkTable("q", SCHEMA, shards=shards)
    sink = opened(ParquetPlace(folder), table)
    so_far = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "MANY_FILES", many)
        for batch, elements in enumerate(slices):
            send(sink, batch, by_shard(elements, shards))
            so_far += elements
            expected = canonical(so_far)
            assert history_of(table, pl.read_parquet(folder / "*.parquet")) == expected
            assert history_of(table, pl.DataFrame(pyarrow.dataset.dataset(folder).to_table())) == expected
            assert history_of(table, sinks.read_parquet(folder)) == expected


def test_settled_tuples_stay_where_they_are(tmp_path):
    sink = opened(ParquetPlace(tmp_path), TABLE)
    send(sink, 0, chunk(Insert(1, 3, A), Insert(1, 9, A), Cti(5)))
    settled, opened_before = names(tmp_path, "settled"), names(tmp_path, "open")
    assert len(settled) == len(opened_before) == 1
    send(sink, 1, chunk(Adjust(1, 9, 8, A)))
    assert names(tmp_path, "settled") == settled
    assert not names(tmp_path, "open") & opened_before
    send(sink, 2, chunk(Cti(6)))
    assert names(tmp_path, "settled") == settled, "no file is written when nothing changes"
    send(sink, 3, chunk(END))
    assert names(tmp_path, "open") == set()
    assert sink.read()["ve"].to_list() == [3, 8]


def test_an_endless_tuple_settles_at_the_end_of_time(tmp_path):
    sink = opened(ParquetPlace(tmp_path), TABLE)
    send(sink, 0, chunk(Insert(1, INF, A), Cti(10**9)))
    assert names(tmp_path, "open")
    send(sink, 1, chunk(END))
    assert not names(tmp_path, "open")


def test_many_batches_leave_few_files(tmp_path):
    """200 batches with 4 files to a size: sizes 1, 4, 16, 64, at most 4 files of each."""
    sink = opened(ParquetPlace(tmp_path), TABLE)
    worker, count, moved = in_shard(sink), 200, 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "MANY_FILES", 4)
        for batch in range(count):
            before = Manifest.newest(sink.folder)
            send(sink, batch, chunk(Insert(batch, batch + 1, Row(m=batch, v=0)), Cti(batch + 2)), [worker])
            after = Manifest.newest(sink.folder)
            new = {f for part in after.parts.values() for f in part.settled if f.name not in before.names}
            moved += sum(file.rows for file in new)
            assert len(names(tmp_path, "settled")) <= 4 * 4
    assert sink.read()["m"].to_list() == list(range(count))
    assert moved <= count * 4, "each tuple is written once per size"


def test_big_files_are_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "MANY_FILES", 2)
    monkeypatch.setattr(parquet, "BIG", 3)
    sink = opened(ParquetPlace(tmp_path), TABLE)
    for batch in range(4):
        send(sink, batch, chunk(*[Insert(batch, batch + 1, A)] * 3, Cti(batch + 2)))
    assert len(names(tmp_path, "settled")) == 4


def test_open_tuples_are_remembered_only_if_they_were_committed(tmp_path):
    sink = opened(ParquetPlace(tmp_path), TABLE)
    one, other = in_shard(sink), in_shard(sink)
    send(sink, 0, chunk(Insert(1, 9, A)), [one])
    part = sink._manifest().parts[0]
    assert one._open_tuples(part) is one._held[0][1]
    one.prepare(0, 1, chunk(Insert(7, 9, A))[0])  # as a clock might have it: the second attempt saw something else
    send(sink, 1, chunk(Insert(2, 9, A)), [other])
    send(sink, 2, chunk(Insert(3, 9, A)), [one])
    assert sink.read()["vs"].to_list() == [1, 2, 3]


def test_leftovers_are_swept(tmp_path):
    sink = opened(ParquetPlace(tmp_path), TABLE)
    send(sink, 0, chunk(Insert(1, 9, A)))
    in_shard(sink).prepare(0, 1, chunk(Insert(2, 9, A))[0])
    staged = tmp_path / "_cedr/staged"
    assert len(list(staged.iterdir())) == 1
    opened(ParquetPlace(tmp_path), TABLE)
    assert list(staged.iterdir()) == []
    in_shard(sink).prepare(0, 1, chunk(Insert(3, 9, A))[0])
    send(sink, 1, chunk(Insert(2, 9, A)))
    assert list(staged.iterdir()) == []
    assert sorted(file.name for file in (tmp_path / "_cedr").glob("*.json")) == ["1.json"]


def test_a_late_attempt_at_an_old_batch_does_nothing(tmp_path):
    sink = opened(ParquetPlace(tmp_path), TABLE)
    for batch in range(3):
        send(sink, batch, chunk(Insert(batch, 9, A)))
    assert in_shard(sink).prepare(0, 1, chunk(Insert(1, 9, A))[0]) == b""
    assert list((tmp_path / "_cedr/staged").iterdir()) == []


def test_readers_are_right_while_commits_go_on(tmp_path):
    """Batch b inserts [b, inf) and ends [b-1, inf) at b: each table has one endless tuple, whenever it is read."""
    sink = opened(ParquetPlace(tmp_path), TABLE)
    send(sink, 0, chunk(Insert(0, INF, A)))
    done, seen = threading.Event(), []

    def read() -> None:
        while not seen or not done.is_set():
            seen.append(sinks.read_parquet(tmp_path))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        worker = in_shard(sink)
        for batch in range(1, 60):
            send(sink, batch, chunk(Adjust(batch - 1, INF, batch, A), Insert(batch, INF, A), Cti(batch)), [worker])
    finally:
        done.set()
        reader.join()
    assert seen
    for table in seen:
        assert table["ve"].to_list() == [*range(1, table.height), None]


def test_the_folder_may_be_given_in_any_way(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for way in ("here", Path("there"), "~/home", f"file://{tmp_path}/uri", "with space/ü"):
        sink = sinks.parquet(way)
        sink.open(TABLE)
        worker = in_shard(sink)
        monkeypatch.chdir("/")
        sink.commit(0, [worker.prepare(0, 0, chunk(Insert(1, 2, A))[0])])
        monkeypatch.chdir(tmp_path)
        assert sinks.read_parquet(way).height == 1
    assert {file.name for file in tmp_path.iterdir()} == {"here", "there", "home", "uri", "with space"}


def test_other_files_are_not_touched(tmp_path):
    (tmp_path / "README.txt").write_text("mine")
    opened(ParquetPlace(tmp_path), TABLE)
    assert (tmp_path / "README.txt").exists()


def test_a_folder_of_somebody_else_is_refused(tmp_path):
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "theirs.parquet")
    with pytest.raises(SinkError, match=r"contains files that cedr has not written, such as theirs.parquet"):
        opened(ParquetPlace(tmp_path), TABLE)


def test_the_number_of_shards_must_stay(tmp_path):
    opened(ParquetPlace(tmp_path), SinkTable("q", SCHEMA, shards=2))
    with pytest.raises(SinkError, match="was written by 2 shards, this run has 3; use shards=2"):
        opened(ParquetPlace(tmp_path), SinkTable("q", SCHEMA, shards=3))


def test_damage_is_named(tmp_path):
    sink = opened(ParquetPlace(tmp_path), TABLE)
    send(sink, 0, chunk(Insert(1, 9, A)))
    (lost,) = tmp_path.glob("open-*.parquet")
    lost.unlink()
    with pytest.raises(DamagedFileError, match=r"/open-0000.*parquet: it is missing.*new checkpoint"):
        sink.read()
    (tmp_path / "_cedr/0.json").write_text("{")
    with pytest.raises(DamagedFileError, match=r"_cedr/0.json: it has no checksum: an earlier version"):
        sink.last_batch()
