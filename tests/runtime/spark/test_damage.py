"""Damage to any file that cedr reads back: the answer is right all the same, or an error names the file."""

import io
import re
import shutil
from pathlib import Path
from random import Random

import duckdb
import polars as pl
import pyarrow.dataset
import pytest
from runtime.spark.small_run import BATCHES, LATE, SmallRun, expected

from cedr.columnar.chunk import Chunk
from cedr.recording.changelog import read_changelog, write_changelog
from cedr.replicas.control import Control, DesiredState, MemberStatus
from cedr.replicas.copies import CopySink, copies_in
from cedr.runtime.spark.driver.answers import read_metrics
from cedr.runtime.spark.driver.waiting import source_statuses
from cedr.runtime.spark.shard import state
from cedr.sinks.base import SinkTable
from cedr.sources.files import log
from cedr.sources.files.entry import FilePart, InputFile
from cedr.sources.files.listing import stamp
from cedr.sources.files.reading import file_pieces
from cedr.storage import snapshots
from cedr.storage.folder import NEW_CHECKPOINT, Folder
from cedr.storage.seal import DamageError, check, check_parquet, header, sealed_parquet
from cedr.temporal.errors import DamagedFileError

# --- one file ------------------------------------------------------------------------------------------------------


def as_parquet(frame: pl.DataFrame) -> bytes:
    frame.write_parquet(buffer := io.BytesIO())
    return buffer.getvalue()


FRAME = pl.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]})


@pytest.fixture
def folder(tmp_path) -> Folder:
    made = Folder(str(tmp_path / "f"), label="here")
    made.make()
    return made


def own(stored: bytes) -> None:
    """As `Folder.read` does."""
    file = io.BytesIO(stored)
    check(file.readline(), [file.read()], "here/a")


OWN = header("here/a", b"content" * 20) + b"content" * 20
TABLE = b"".join(sealed_parquet("here/a", as_parquet(FRAME)))
CHECKED = [(OWN, own), (TABLE, lambda stored: check_parquet(stored, "here/a"))]


@pytest.mark.parametrize(("content", "read"), CHECKED, ids=["own", "Parquet"])
def test_any_bit_that_changes_is_noticed(content, read):
    read(content)
    for bit in range(8 * len(content)):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DamageError):
            read(bytes(changed))


@pytest.mark.parametrize(("content", "read"), CHECKED, ids=["own", "Parquet"])
def test_any_part_that_is_missing_or_too_much_is_noticed(content, read):
    for length in range(len(content)):
        for piece in (content[:length], content[length + 1 :], content + content[: length + 1]):
            with pytest.raises(DamageError):
                read(piece)


def test_the_error_names_the_problem_and_the_remedy(folder):
    folder.write("a", b"content")
    folder.write_parquet("a.parquet", as_parquet(FRAME))
    content = Path(folder.path, "a").read_bytes()
    for damaged, what in (
        (b"", "it is empty, as after a power cut"),
        (b'{"plan": []}', "it has no checksum: an earlier version of cedr wrote it, or it is damaged where the check"),
        (content.replace(b"cedr 1", b"cedr 2"), "its format is version 2, and this version of cedr reads version 1"),
        (content[:-2], "it has 5 bytes of content where 7 were written"),
        (content.replace(b"content", b"kontent"), "its content does not match its checksum"),
    ):
        Path(folder.path, "a").write_bytes(damaged)
        with pytest.raises(DamagedFileError) as found:
            folder.read("a")
        assert str(found.value).startswith(f"damaged file {folder.path}/a: {what}")
        assert str(found.value).endswith(f". {NEW_CHECKPOINT}")
    Path(folder.path, "b").write_bytes(content)
    Path(folder.path, "b.parquet").write_bytes(Path(folder.path, "a.parquet").read_bytes())
    with pytest.raises(DamagedFileError, match=r"/b: it has the content of here/a. Restore"):
        folder.read("b")
    with pytest.raises(DamagedFileError, match=r"/b.parquet: it has the content of another file. Restore"):
        folder.read_parquet("b.parquet")


def test_a_checkpoint_may_be_moved(folder, tmp_path):
    folder.sub("state/1").make()
    folder.sub("state/1").write("a", b"content")
    shutil.move(folder.path, tmp_path / "elsewhere")
    assert Folder(str(tmp_path / "elsewhere"), label="here").sub("state/1").read("a") == b"content"


def test_others_read_parquet_with_a_seal(folder):
    folder.write_parquet("a.parquet", as_parquet(FRAME))
    path = f"{folder.path}/a.parquet"
    assert folder.read_parquet("a.parquet").equals(FRAME)
    assert pl.read_parquet(path).equals(FRAME)
    assert pl.scan_parquet(path).filter(pl.col("a") > 1).collect().height == 2
    assert pl.DataFrame(pyarrow.dataset.dataset(path).to_table()).equals(FRAME)
    assert duckdb.sql(f"select * from '{path}'").pl().equals(FRAME)


# --- a run ---------------------------------------------------------------------------------------------------------

KINDS = {
    "query": r"cedr/query\.json",
    "file log": r"files/readings/\d+\.json",
    "segment of the file log": r"files/readings/\d+-\d+\.json",
    "snapshot": r"state/\d/\d/snapshot-.*",
    "part of a snapshot": r"state/\d/\d/part-.*",
    "log": r"state/\d/\d/log-.*",
    "spilled rows": r"state/\d/\d/spilled-.*",
    "late rows": r"late/late-.*",
    "metrics": r"metrics/.*",
    "source status": r"source_status/.*",
    "manifest": r"out/_cedr/\d+\.json",
    "open tuples": r"out/open-.*",
    "settled tuples": r"out/settled-.*",
}
STOPPED = 4


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A query that was stopped after some batches: snapshots, logs after them, and files of every kind."""
    place = tmp_path_factory.mktemp("stopped")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "MANY_BYTES", 100)
        patch.setattr(state, "MANY_BATCHES", 3)
        patch.setattr(snapshots, "SMALL_TABLE", 30)
        patch.setattr(log, "SEGMENT", 3)
        run = SmallRun(place)
        for batch in range(STOPPED + 1):
            run.run(batch)
        run.log.compact(STOPPED)
        yield place


def files_of(place: Path, kind: str) -> list[Path]:
    return sorted(path for path in place.rglob("*") if path.is_file() and re.search(f"/{KINDS[kind]}$", str(path)))


def flip(path: Path, random: Random) -> None:
    content = bytearray(path.read_bytes())
    bit = random.randrange(8 * len(content))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def truncate(path: Path, random: Random) -> None:
    path.write_bytes(path.read_bytes()[: random.randrange(path.stat().st_size)])


def empty(path: Path, random: Random) -> None:
    path.write_bytes(b"")


def garbage(path: Path, random: Random) -> None:
    path.write_bytes(random.randbytes(path.stat().st_size))


def remove(path: Path, random: Random) -> None:
    path.unlink()


DAMAGES = [flip, truncate, empty, garbage, remove]


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_named_or_does_no_harm(stopped, tmp_path, kind):
    """Not only the newest file of a kind: those that are not needed any more do no harm."""
    random, named = Random(kind), set()
    found = files_of(stopped, kind)
    assert found
    for number, damage in enumerate([*DAMAGES, "swap", *DAMAGES]):
        place = tmp_path / str(number)
        shutil.copytree(stopped, place)
        files = files_of(place, kind)
        path = random.choice(files)
        hurt = [path]
        if damage != "swap":
            damage(path, random)
        elif len(files) > 1 and (other := random.choice([f for f in files if f != path])):
            one, two = path.read_bytes(), other.read_bytes()
            path.write_bytes(two)
            other.write_bytes(one)
            hurt.append(other)
        lost = damage is remove and kind == "late rows"  # nobody knows of it
        try:
            run = SmallRun(place, STOPPED)
            run.run_from(STOPPED + 1)
            assert run.table() == expected()
            assert run.late_rows() == LATE - lost
            read_metrics(run.folder.sub("metrics"))
            source_statuses(run.folder.sub("source_status"))
        except DamagedFileError as e:
            text = str(e)
        else:
            continue
        places = [path.parent if damage is remove else path for path in hurt]
        assert any(str(place) in text for place in places), (damage, hurt, text)
        named.add(damage)
    if kind not in ("metrics", "source status"):  # figures: they are written again with each batch
        assert named
    assert BATCHES > STOPPED


def test_a_checkpoint_without_checksums_is_refused(stopped, tmp_path):
    """Of an earlier version: the same content, without the line before it."""
    shutil.copytree(stopped, tmp_path / "old")
    for path in (tmp_path / "old" / "checkpoint").rglob("*"):
        if path.is_file() and path.read_bytes().startswith(b"cedr 1"):
            path.write_bytes(path.read_bytes().partition(b"\n")[2])
    with pytest.raises(DamagedFileError, match=r"query.json: it has no checksum: an earlier version .* new checkpoint"):
        SmallRun(tmp_path / "old", STOPPED)


# --- replicas and changelogs ---------------------------------------------------------------------------------------


def chunk(n: int) -> Chunk:
    rows = pl.DataFrame({"_vs": [n], "_ve_old": [n], "_ve_new": [n + 9], "v": [n]})
    return Chunk(rows, n)


@pytest.mark.parametrize("damage", DAMAGES[:-1])
def test_damaged_copies_are_named(tmp_path, damage):
    sink = CopySink(tmp_path, "one")
    sink.open(SinkTable("q", {"v": pl.Int64()}))
    for batch in range(2):
        sink.commit(batch, [sink.prepare(0, batch, chunk(batch))])
    first, settings = tmp_path / "one" / "000000000000-000.parquet", copies_in(tmp_path)
    kept = {path: path.read_bytes() for path in first.parent.iterdir()}
    reads = {
        first.name: lambda: sink.tally(),
        "_copy.json": lambda: CopySink(tmp_path, "one").open(sink.table),
        "_reached.json": lambda: sink.last_batch(),
    }
    for name, read in reads.items():
        path = first.with_name(name)
        damage(path, Random(1))
        with pytest.raises(DamagedFileError, match=f"{path}: .* Retire the replica 'one' and start another"):
            read()
        path.write_bytes(kept[path])
    damage(first, Random(2))
    with pytest.raises(DamagedFileError, match=f"{first}: .* Retire the replica that wrote it"):
        list(file_pieces(FilePart(0, 0, 1), InputFile(str(first), stamp(str(first)), (1,)), settings, {}))


def test_copies_in_another_order_are_named(tmp_path):
    sink = CopySink(tmp_path, "one")
    sink.open(SinkTable("q", {"v": pl.Int64()}))
    for batch in range(2):
        sink.commit(batch, [sink.prepare(0, batch, chunk(batch))])
    one, two = sorted((tmp_path / "one").glob("*.parquet"))
    one.write_bytes(two.read_bytes())
    with pytest.raises(DamagedFileError, match="it has the content of another file"):
        list(file_pieces(FilePart(0, 0, 1), InputFile(str(one), stamp(str(one)), (1,)), copies_in(tmp_path), {}))


@pytest.mark.parametrize("damage", DAMAGES[:-1])
def test_damaged_control_files_are_named(tmp_path, damage):
    control = Control(str(tmp_path))
    control.make()
    control.set_desired(DesiredState("one"))
    control.feed_back(7)
    control.agree_on({"v": pl.Int64()}, "query")
    control.report(MemberStatus("one", "running", 1))
    for name, read in (
        ("wishes/one", control.desired),
        ("feedback", lambda: control.feedback),
        ("set.json", lambda: control.agree_on({"v": pl.Int64()}, "query")),
    ):
        damage(tmp_path / name, Random(1))
        with pytest.raises(DamagedFileError, match=f"{tmp_path / name}: .* Remove the file, and repeat"):
            read()
    damage(tmp_path / "standing/one", Random(1))
    assert control.status() == {}, "it is written again soon"


@pytest.mark.parametrize("damage", DAMAGES[:-1])
def test_damaged_changelogs_are_named(tmp_path, damage):
    frame = pl.DataFrame({"change": ["insert"] * 50, "vs": range(50), "ve": range(1, 51), "ve_new": [None] * 50})
    frame = frame.cast({"ve_new": pl.Int64})
    write_changelog(tmp_path / "ours", [frame])
    (tmp_path / "theirs").mkdir()
    pyarrow.parquet.write_table(frame.to_arrow(), tmp_path / "theirs" / "a.parquet", write_page_checksum=True)
    assert all(read_changelog(tmp_path / whose).rows.height == 50 for whose in ("ours", "theirs"))
    (path,) = (tmp_path / "ours").iterdir()
    damage(path, Random(1))
    with pytest.raises(DamagedFileError, match=f"{path}: .* record the changelog again"):
        read_changelog(tmp_path / "ours")
    theirs = tmp_path / "theirs" / "a.parquet"
    content = bytearray(theirs.read_bytes())
    content[content.index(b"insert")] ^= 1
    theirs.write_bytes(content)
    with pytest.raises(DamagedFileError, match=rf"{theirs}: it cannot be read as Parquet \(could not verify page"):
        read_changelog(tmp_path / "theirs")
