"""Folders whose files are whole, and what a shard is rebuilt from."""

import pickle
import threading
from pathlib import Path
from random import Random

import numpy as np
import polars as pl
import pytest
from s3_server import everything

from cedr.runtime.spark.shard import state
from cedr.runtime.spark.shard.packet import LOG_LINE, Packet, to_blob, to_header, to_log
from cedr.runtime.spark.shard.state import (
    KEPT_SNAPSHOTS,
    MANY_BATCHES,
    MANY_BYTES,
    MANY_BYTES_REMOTE,
    SMALL_LOG,
    STATE_VERSION,
    RowsHeader,
    SpilledRows,
    SpillFile,
    StateStore,
)
from cedr.storage.folder import Folder
from cedr.storage.snapshots import Snapshots
from cedr.temporal.errors import DamagedFileError, StorageError


@pytest.fixture
def folder(any_storage):
    made = Folder(f"{any_storage}/f")
    made.make()
    return made


def test_the_first_writer_wins(folder):
    assert folder.write_once("x", b"one") == b"one"
    assert folder.write_once("x", b"two") == b"one"
    assert folder.read("x") == b"one"
    assert folder.names() == ["x"]


def test_many_writers_at_once_agree(folder):
    written = []
    writers = [
        threading.Thread(target=lambda i=i: written.append(folder.write_once("x", b"%d" % i))) for i in range(16)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(set(written)) == 1
    assert folder.names() == ["x"]


def test_what_is_being_written_is_not_there(tmp_path):
    folder = Folder(str(tmp_path))
    with folder._hidden("x") as path:
        Path(path).write_bytes(b"half")
    assert folder.names() == []
    assert folder.find("x") is None


def test_write_replaces_and_remove_forgives(folder):
    folder.write("x", b"one")
    folder.write("x", b"two")
    assert folder.find("x") == b"two"
    folder.remove(["x", "y"])
    assert folder.names() == []


def test_other_file_systems_are_reached_through_arrow():
    """Arrow's in-memory file system takes the place of HDFS; it has no hard links."""
    remote = Folder("mock://bucket/x")
    remote.make()
    assert remote.write_once("a", b"one") == b"one"
    assert remote.write_once("a", b"two") == b"one"


def packets(*numbers: int) -> list[Packet]:
    return [Packet(1, 0, "rows", blob=b"", rows=n) for n in numbers]


def log(store: StateStore, batch: int, new: list[Packet]) -> bool:
    with store.logging(batch, new) as is_logged:
        return is_logged()


def test_a_logged_batch_keeps_its_first_packets(folder):
    store = StateStore(folder)
    assert log(store, 0, packets(1, 2))
    assert not log(StateStore(folder), 0, packets(3))
    assert StateStore(folder).logged(0) == packets(1, 2)
    assert StateStore(folder).logged_again(0) == packets(1, 2)
    with pytest.raises(DamagedFileError, match=r"/log-000000000001: it is missing, and the state after micro-batch 1"):
        StateStore(folder).logged(1)


def test_a_batch_that_fails_is_not_logged_and_leaves_nothing(folder):
    store = StateStore(folder)
    with pytest.raises(ZeroDivisionError), store.logging(0, packets(1)):
        1 / 0  # noqa: B018
    assert not store.has(0)
    assert everything(folder) == []


def test_what_cannot_be_synced_is_reported_when_the_log_is_needed(folder):
    store = StateStore(folder)

    def fail() -> None:
        raise StorageError("spilled-1", OSError(28, "No space left on device"))

    with store.logging(0, packets(1), fail) as is_logged, pytest.raises(StorageError, match="spilled-1"):
        is_logged()
    assert not store.has(0)
    assert everything(folder) == []


def test_snapshots_replace_the_log_before_them(folder):
    store = StateStore(folder)
    for batch in range(10):
        log(store, batch, packets(batch))
        if batch % 3 == 2:
            store.snapshot(batch, {"after": batch})
    assert [name for name in folder.names() if name.startswith("snapshot")] == [
        "snapshot-000000000005",
        "snapshot-000000000008",
    ]
    assert StateStore(folder).newest_snapshot(9) == (8, {"after": 8})
    assert StateStore(folder).newest_snapshot(8) == (5, {"after": 5}), (
        "a batch that runs again needs what was before it"
    )
    assert not StateStore(folder).has(5)
    assert all(StateStore(folder).logged(batch) == packets(batch) for batch in range(6, 10))
    assert KEPT_SNAPSHOTS == 2


def test_a_snapshot_is_due_when_the_log_outweighs_it(folder):
    store, little = StateStore(folder), SMALL_LOG // 4
    log(store, 0, [Packet(1, 0, "answer", blob=bytes(5 * little))])
    assert store.due
    store.snapshot(0, np.zeros(12 * little // 8))
    log(store, 1, [Packet(1, 0, "answer", blob=bytes(10 * little))])
    assert not store.due, "the state is larger than the log"
    log(store, 2, [Packet(1, 0, "answer", blob=bytes(5 * little))])
    assert store.due


def test_a_snapshot_is_due_after_many_small_batches(folder):
    store = StateStore(folder)
    for batch in range(MANY_BATCHES):
        assert not store.due
        log(store, batch, packets(batch))
    assert store.due


def chunk_rows(number: int, inserts: bool = True) -> pl.DataFrame:
    starts = pl.Series(range(number), dtype=pl.Int64)
    old = starts if inserts else starts + 5
    return pl.DataFrame({"_vs": starts, "_ve_old": old, "_ve_new": starts + 9, "v": starts % 7})


MANY = MANY_BYTES // 8


@pytest.fixture
def spilled_alike(monkeypatch):
    """Remote storage has another limit, which needs many rows."""
    monkeypatch.setattr(state, "MANY_BYTES_REMOTE", MANY_BYTES)


def test_remote_rows_are_spilled_when_there_are_more_of_them(any_storage):
    sent = SpillFile(any_storage, 7).put(Packet(1, 0, "rows"), chunk_rows(MANY))
    assert bool(sent.blob) == ("://" in any_storage)
    many = chunk_rows(MANY_BYTES_REMOTE // 32 + 1)
    assert not SpillFile(any_storage, 7).put(Packet(1, 0, "rows"), many).blob


@pytest.mark.parametrize("inserts", [True, False])
def test_many_rows_are_spilled_and_few_are_sent(any_storage, spilled_alike, inserts):
    few, many = chunk_rows(1, inserts), chunk_rows(MANY, inserts)
    spill, packet = SpillFile(any_storage, 7), Packet(1, 0, "rows")
    sent = [spill.put(packet, rows) for rows in (few, many)]
    assert [bool(p.blob) for p in sent] == [True, False]
    store = StateStore(Folder(any_storage).sub("state/1/0"))
    assert log(store, 7, sent)
    logged = store.logged(7)
    assert [store.rows(p).equals(rows) for p, rows in zip(logged, (few, many), strict=True)] == [True, True]
    assert store.log_bytes > MANY_BYTES, "spilled rows are part of the log"


def test_spilled_rows_are_removed_with_their_log_and_missed(any_storage, spilled_alike):
    store = StateStore(folder := Folder(any_storage).sub("state/1/0"))
    for batch in range(4):
        spill, packet = SpillFile(any_storage, batch), Packet(1, 0, "rows", rows=MANY)
        spill.put(packet, chunk_rows(MANY))  # of an attempt that failed
        log(store, batch, [spill.put(packet, chunk_rows(MANY))])
        store.snapshot(batch, {})
    left = [name for name in folder.names() if name.startswith("spilled")]
    assert [int(name.split("-")[1]) for name in left] == [3, 3]
    folder.remove(left)
    with pytest.raises(DamagedFileError, match=r"/spilled-.*: it is missing, and the log requires its 8192 rows"):
        store.rows(store.logged(3)[0])


def test_rows_are_spilled_in_other_file_systems(spilled_alike):
    Folder("mock://bucket/spilled/state/1/0").make()
    sent = SpillFile("mock://bucket/spilled", 7).put(Packet(1, 0, "rows"), chunk_rows(MANY))
    assert sent.header


def test_logs_of_earlier_versions_are_refused(tmp_path):
    folder = Folder(str(tmp_path))
    for content in (pickle.dumps([(1, 0, "close", -1, 0, 0, b"", b"", 0)]), b'{"cedr":"log","format":2}\n', b""):
        folder.write("log-000000000003", content)
        with pytest.raises(DamagedFileError, match="log-000000000003: another version of cedr wrote it"):
            StateStore(folder).logged(3)


def test_logs_that_are_something_else_are_refused(tmp_path):
    """Behind a right checksum."""
    folder = Folder(str(tmp_path))
    good = to_log(
        [Packet(1, 0, "rows", blob=to_blob(chunk_rows(3)), header=to_header(RowsHeader(None, ("a.csv",))), rows=3)]
    )
    folder.write("log-000000000003", good)
    assert len(StateStore(folder).logged(3)) == 1
    bad = [
        to_log([Packet(1, 0, "rows", blob=b"rows")]),
        to_log([Packet(1, 0, "close", header=b"c1x")]),
        to_log([Packet(1, 0, "close", header=pickle.dumps("readings"))]),
        to_log([Packet(1, 0, "command")]),
        to_log([Packet(1, 0, "rows", header=to_header("a"))]),
        to_log([Packet(1, 0, "rows", header=to_header(SpilledRows("../../../x", 5)))]),
        to_log([Packet(1, 0, "progress", header=to_header(("a", 5)))]),
        to_log([Packet(1, 0, "cti", header=to_header((5, 6)))]),
        to_log([Packet(1, 0, "feedback", header=to_header("5"))]),
        to_log([Packet(None, 0, "rows")]),
        good[: len(LOG_LINE)],
        good[:-300],
        LOG_LINE + to_blob(chunk_rows(3)),
    ]
    random = Random(1)
    for _ in range(300):
        changed = bytearray(good)
        changed[random.randrange(len(LOG_LINE), len(good))] ^= 1 << random.randrange(8)
        bad.append(bytes(changed))
    errors = []
    for content in bad:
        folder.write("log-000000000003", content)
        try:
            StateStore(folder).logged(3)
            errors.append("")
        except DamagedFileError as e:
            errors.append(str(e))
    assert all("log-000000000003: " in error for error in errors[:-300])
    assert all("log-000000000003: " in error for error in errors if error)
    assert sum(map(bool, errors)) > 60


def test_snapshots_of_earlier_versions_are_refused(tmp_path):
    folder = Folder(str(tmp_path))
    for content in (
        b"ccedr.operators.common\nCommon\n.",
        pickle.dumps((3, {"engine": {}})),
        b'{"cedr":"snapshot","format":99}\n',
        b'{"cedr":"log","format":1}\n',
    ):
        folder.write("snapshot-000000000003", content)
        with pytest.raises(DamagedFileError, match="snapshot-000000000003: another version of cedr wrote it"):
            StateStore(folder).newest_snapshot(4)
    Snapshots(folder).write(3, {}, state=STATE_VERSION - 1)
    with pytest.raises(DamagedFileError, match="snapshot-000000000003: another version of cedr wrote it"):
        StateStore(folder).newest_snapshot(4)
