"""The file log and the supply of files: whatever happens between, the same offsets mean the same files."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import cedr
from cedr.plan.nodes.source import Source
from cedr.runtime.spark.reader.source import FileJob, Supply
from cedr.sources.files import files, log
from cedr.sources.files.entry import BatchFiles, InputFile, cut
from cedr.sources.files.listing import Stamp
from cedr.sources.files.log import FileLog, report_bad
from cedr.sources.files.reading import splits
from cedr.sources.files.unreadable import BadFileError
from cedr.storage.folder import Folder
from cedr.temporal.errors import DamagedFileError, QueryError

FEED = cedr.source("feed", {"ts": int, "k": int}, vs="ts").plan


def supply(data: Path, checkpoint: Path, **settings: object) -> Supply:
    assert isinstance(FEED, Source)
    chosen = files(data, "csv", **settings)
    return Supply(FileJob(chosen, FEED, b"", 2, str(checkpoint)))


def paths(found: Supply, start: int, end: int) -> list[str]:
    return [Path(f.path).name for _, entry in found.entries(start, end) for f in entry.files]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def write(folder: Path, *names: str, rows: int = 1) -> None:
    for name in names:
        (folder / name).write_text("ts,k\n" + "1,2\n" * rows)


def entry_of(*names: str) -> BatchFiles:
    found = tuple(InputFile(name, Stamp(1, 1)) for name in names)
    return BatchFiles(found, cut(found, 2, by_row_group=False), "number")


# --- the log -------------------------------------------------------------------------------------------------------


def test_a_log_is_found_again(tmp_path: Path) -> None:
    first = FileLog(Folder(str(tmp_path / "log")))
    assert [first.append(entry_of("a", "b")), first.append(entry_of("c"))] == [1, 2]
    again = FileLog(Folder(str(tmp_path / "log")))
    assert (again.length, set(again.seen), again.clock) == (2, {"a", "b", "c"}, "number")
    assert [again.entry(1), again.entry(2)] == [entry_of("a", "b"), entry_of("c")]


def test_two_queries_cannot_share_a_log(tmp_path: Path) -> None:
    one, other = (FileLog(Folder(str(tmp_path / "log"))) for _ in range(2))
    one.append(entry_of("a"))
    with pytest.raises(QueryError, match=r"another query has just written entry 1; use a separate"):
        other.append(entry_of("b"))
    assert FileLog(Folder(str(tmp_path / "log"))).entry(1) == entry_of("a")


def test_a_missing_entry_is_named(tmp_path: Path) -> None:
    with pytest.raises(DamagedFileError, match=r"/3.json: it is missing; only it records"):
        FileLog(Folder(str(tmp_path / "log"))).entry(3)


def test_compaction_keeps_every_entry_and_few_files(tmp_path: Path) -> None:
    folder, length = Folder(str(tmp_path / "log")), 4 * log.SEGMENT + 3
    first = FileLog(folder)
    for n in range(1, length + 1):
        first.append(entry_of(f"f{n}"))
        first.compact(n - 1)
    for found in (first, FileLog(folder)):
        assert found.length == length
        assert len(found.seen) == length
        assert [found.entry(n) for n in range(1, length + 1)] == [entry_of(f"f{n}") for n in range(1, length + 1)]
    single = [name for name in folder.names() if "-" not in name]
    assert len(single) == length % log.SEGMENT


def test_a_crash_during_compaction_changes_nothing(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path / "log"))
    first = FileLog(folder)
    for n in range(1, log.SEGMENT + 3):
        first.append(entry_of(f"f{n}"))
    shutil.copytree(tmp_path / "log", tmp_path / "before")
    first.compact(log.SEGMENT)
    shutil.copytree(tmp_path / "before", tmp_path / "log", dirs_exist_ok=True)  # as if nothing had been removed
    again = FileLog(folder)
    assert again.length == log.SEGMENT + 2
    assert again.append(entry_of("next")) == log.SEGMENT + 3
    again.compact(log.SEGMENT)
    assert FileLog(folder).entry(5) == entry_of("f5")


# --- the supply ----------------------------------------------------------------------------------------------------


def test_files_are_taken_once_in_order_and_at_most_so_many(data: Path, tmp_path: Path) -> None:
    write(data, "c.csv", "a.csv", "b.csv")
    found = supply(data, tmp_path / "log")
    assert [found.advance(0, 2), found.advance(1, 2), found.advance(2, 2)] == [1, 2, 2]
    assert [paths(found, 0, 1), paths(found, 1, 2), paths(found, 2, 2)] == [["a.csv", "b.csv"], ["c.csv"], []]
    write(data, "0.csv", "d.csv")
    assert found.advance(2, None) == 3
    assert paths(found, 2, 3) == ["0.csv", "d.csv"]


def test_available_now_does_not_look_again(data: Path, tmp_path: Path) -> None:
    write(data, "a.csv", "b.csv")
    found = supply(data, tmp_path / "log")
    found.stop_looking()
    write(data, "c.csv")
    assert [found.advance(0, 1), found.advance(1, 1), found.advance(2, 1)] == [1, 2, 2]


def test_what_was_planned_before_a_crash_comes_first(data: Path, tmp_path: Path) -> None:
    write(data, "b.csv", "c.csv")
    assert supply(data, tmp_path / "log").advance(0, 1) == 1  # and Spark was not informed of it
    write(data, "a.csv")
    again = supply(data, tmp_path / "log")
    assert [again.advance(0, 5), again.advance(1, 5)] == [1, 2]
    assert [paths(again, 0, 1), paths(again, 1, 2)] == [["b.csv"], ["a.csv", "c.csv"]]


def test_other_settings_do_not_change_what_was_planned(data: Path, tmp_path: Path) -> None:
    write(data, "a.csv", "b.csv", "c.csv")
    first = supply(data, tmp_path / "log")
    first.advance(0, 3)
    before = splits(first.entries(0, 1))
    again = supply(data, tmp_path / "log", order="modified", max_files=1)
    again.job = FileJob(again.job.settings, again.job.source, again.job.pack, 7, again.job.log)
    assert splits(again.entries(0, 1)) == before
    assert [split.origin for split in before] == [0, 1]


def test_a_file_removed_before_it_is_taken_is_not_wanted(data: Path, tmp_path: Path) -> None:
    write(data, "a.csv", "b.csv")
    found = supply(data, tmp_path / "log")
    found.stop_looking()
    (data / "a.csv").unlink()
    assert found.advance(0, 1) == 1
    assert paths(found, 0, 1) == ["b.csv"]


def test_a_file_that_changes_after_it_was_read_stops_the_query(data: Path, tmp_path: Path) -> None:
    write(data, "a.csv")
    found = supply(data, tmp_path / "log")
    found.advance(0, None)
    write(data, "a.csv", rows=2)
    with pytest.raises(BadFileError, match=r"a.csv' was read with 9 bytes and has changed to 13 bytes.*move the"):
        found.advance(1, None)
    (data / "a.csv").unlink()
    assert supply(data, tmp_path / "log").advance(1, None) == 1


def test_a_file_that_changes_after_it_was_read_is_noted_once(data: Path, tmp_path: Path) -> None:
    write(data, "a.csv")
    found = supply(data, tmp_path / "log", on_bad="late")
    found.advance(0, None)
    write(data, "a.csv", rows=2)
    assert found.advance(1, None) == 2
    ((_, entry),) = found.entries(1, 2)
    assert [file.bad for file in entry.files] == [" was read with 9 bytes and has changed to 13 bytes"]
    assert supply(data, tmp_path / "log", on_bad="late").advance(2, None) == 2


def test_a_repaired_file_takes_the_place_of_the_bad_one(data: Path, tmp_path: Path) -> None:
    write(data, "a.csv", "b.csv")
    found = supply(data, tmp_path / "log")
    found.advance(0, None)
    report_bad(Folder(str(tmp_path / "log")), 1, 1)
    unchanged = supply(data, tmp_path / "log")
    assert unchanged.entries(0, 1) == found.entries(0, 1)
    write(data, "b.csv", rows=3)
    for _ in range(2):
        again = supply(data, tmp_path / "log")
        ((_, entry),) = again.entries(0, 1)
        assert [file.stamp.size for file in entry.files] == [9, 17]
        assert again.advance(1, None) == 1
    write(data, "b.csv", rows=4)  # once repaired, it must not change again
    with pytest.raises(BadFileError, match="has changed to"):
        supply(data, tmp_path / "log").advance(1, None)


class Restarts(RuleBasedStateMachine):
    """Files arrive, offsets advance, Spark commits, the process dies: every file is in one entry, and entries stay."""

    @initialize(order=st.sampled_from(["name", "modified"]))
    def start(self, order: str) -> None:
        self.place = Path(tempfile.mkdtemp())
        (self.place / "in").mkdir()
        self.order, self.arrived, self.offset = order, 0, 0
        self.entries: dict[int, BatchFiles] = {}
        self.restart()

    @rule()
    def restart(self) -> None:
        self.supply = supply(self.place / "in", self.place / "log", order=self.order)

    @rule(names=st.lists(st.integers(0, 99), max_size=4, unique=True))
    def arrive(self, names: list[int]) -> None:
        for name in names:
            self.arrived += 1
            write(self.place / "in", f"{name:02}-{self.arrived}.csv")

    @rule(limit=st.none() | st.integers(1, 3), committed=st.booleans())
    def advance(self, limit: int | None, committed: bool) -> None:
        """When the process dies before Spark has written the offset down, Spark asks again from the same start."""
        end = self.supply.advance(self.offset, limit)
        for number, entry in self.supply.entries(self.offset, end):
            assert self.entries.setdefault(number, entry) == entry
        if committed:
            self.offset = end
        else:
            self.restart()

    @rule()
    def commit(self) -> None:
        self.supply.log.compact(self.offset)

    @invariant()
    def nothing_is_taken_twice(self) -> None:
        taken = [file.path for entry in self.entries.values() for file in entry.files]
        assert len(taken) == len(set(taken))

    def teardown(self) -> None:
        if not hasattr(self, "place"):
            return
        self.restart()
        while (end := self.supply.advance(self.offset, 2)) != self.offset:
            self.advance(2, committed=True)
            assert self.offset == end
        taken = [file.path for number in self.entries for file in self.entries[number].files]
        assert sorted(os.listdir(self.place / "in")) == sorted(Path(path).name for path in taken)
        assert [e for _, e in self.supply.entries(0, self.offset)] == [self.entries[n] for n in sorted(self.entries)]
        shutil.rmtree(self.place)


@pytest.fixture(autouse=True)
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "SEGMENT", 4)


TestRestarts = Restarts.TestCase
