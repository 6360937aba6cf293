"""Two drivers on one remote checkpoint: the older one stops, and nothing that it still writes counts.

The tasks run in this process, on a real S3 server; `test_remote` has two drivers of Spark.
"""

import threading
from dataclasses import replace

import pytest
from plan.catalogue import SCHEMA
from runtime.spark.cluster import Cluster, history
from runtime.spark.tables import table_of
from sinks.places import by_shard, history_of, in_shard

import cedr
from cedr import sinks
from cedr.sinks.base import SinkError, SinkTable
from cedr.sinks.manifest import Manifest
from cedr.sources.files.entry import BatchFiles, InputFile, cut
from cedr.sources.files.listing import Stamp
from cedr.sources.files.log import FileLog
from cedr.storage.epoch import ReplacedError, take_over
from cedr.storage.folder import Folder
from cedr.temporal import INF, Adjust, Cti, Insert, Row, canonical
from cedr.temporal.errors import CedrError

REPLACED = r"was taken over by another driver \(process \d+ on .*\); this one stops"


def test_each_driver_gets_a_number_of_its_own(bucket):
    folder, taken = Folder(f"{bucket}/cedr"), []
    starting = [threading.Thread(target=lambda n=n: taken.append(take_over(folder, f"run {n}"))) for n in range(8)]
    for thread in starting:
        thread.start()
    for thread in starting:
        thread.join()
    assert sorted(epoch.number for epoch in taken) == list(range(1, 9))
    for epoch in taken:
        if epoch.number < 8:
            with pytest.raises(ReplacedError, match=REPLACED):
                epoch.check()
        else:
            epoch.check()


def test_a_local_checkpoint_has_a_lock_instead(tmp_path):
    assert take_over(Folder(str(tmp_path)), "run") is None


# --- shards ----------------------------------------------------------------------------------------------------------

ELEMENTS = [[Insert(t, t + 10, Row(m=t % 3, v=t % 5)) for t in range(10 * n, 10 * n + 10)] for n in range(4)]


class Driver(Cluster):
    def __init__(self, bucket: str) -> None:
        source = cedr.source("a", SCHEMA, vs="vs", ve="ve", delay=100)
        super().__init__(source.group_by("m").agg(n=cedr.count(), v=cedr.sum("v")), f"{bucket}/cedr", 2)
        self.epoch = take_over(Folder(self.job.folder), "run")
        self.job = replace(self.job, epoch=self.epoch)

    def rows(self, batch: int, parts: int = 1):
        """Packets of a micro-batch, from as many parts of the input: the same rows in other packets."""
        return self.packets(batch, {"a": [table_of(ELEMENTS[batch][i::parts], SCHEMA) for i in range(parts)]})

    def forget_epoch(self) -> None:
        """As if it had checked long ago."""
        for shard in self.shards.values():
            shard.job = replace(shard.job, epoch=None)


def files_of(bucket: str) -> set[str]:
    folder = Folder(bucket)
    return set(folder.store.below(folder.path))


def test_an_older_driver_writes_nothing_more(bucket):
    older = Driver(bucket)
    changes = [older.run(batch, older.rows(batch)) for batch in range(2)]
    packets = older.rows(2)
    newer, there = Driver(bucket), files_of(bucket)
    with pytest.raises(ReplacedError, match=REPLACED):
        older.run(2, packets)
    *_, last = older.shards.values()
    with pytest.raises(ReplacedError, match=REPLACED):
        last.tidy(ending=True)
    assert files_of(bucket) == there
    changes += [newer.run(batch, newer.rows(batch)) for batch in (2, 3)]
    changes.append(newer.run(4, newer.closing()))
    assert history(changes, newer.job.plan.schema) == only_one(bucket)


def only_one(bucket: str):
    """What one driver alone gets, in another place."""
    alone = Driver(f"{bucket}/alone")
    changes = [alone.run(batch, alone.rows(batch)) for batch in range(4)]
    return history([*changes, alone.run(4, alone.closing())], alone.job.plan.schema)


def test_a_log_that_is_written_at_the_last_moment_counts(bucket):
    """It had checked before the newer one came, so Spark had noted the offsets: the newer one has the same rows."""
    older = Driver(bucket)
    changes = [older.run(0, older.rows(0))]
    newer = Driver(bucket)
    older.forget_epoch()
    older.run(1, older.rows(1, parts=3))
    changes += [newer.run(batch, newer.rows(batch, parts=2)) for batch in (1, 2, 3)]
    changes.append(newer.run(4, newer.closing()))
    assert history(changes, newer.job.plan.schema) == only_one(bucket)


# --- the file log ----------------------------------------------------------------------------------------------------


def entry_of(*names: str) -> BatchFiles:
    found = tuple(InputFile(name, Stamp(1, 1)) for name in names)
    return BatchFiles(found, cut(found, 2, by_row_group=False), "number")


def test_an_older_driver_plans_no_files(bucket):
    folder = Folder(f"{bucket}/cedr")
    older = FileLog(folder.sub("files"), take_over(folder, "older"))
    assert older.append(entry_of("a")) == 1
    newer = FileLog(folder.sub("files"), take_over(folder, "newer"))
    with pytest.raises(ReplacedError, match=REPLACED):
        older.append(entry_of("b"))
    assert newer.append(entry_of("c")) == 2
    assert FileLog(folder.sub("files")).entry(2) == entry_of("c")


def test_an_entry_that_is_written_at_the_last_moment_counts(bucket):
    folder = Folder(f"{bucket}/cedr")
    newer = FileLog(folder.sub("files"), take_over(folder, "newer"))
    FileLog(folder.sub("files")).append(entry_of("a", "b"))
    assert newer.append(entry_of("b", "c")) == 1
    assert newer.entry(1) == entry_of("a", "b")
    assert "c" not in newer.seen


# --- tables ----------------------------------------------------------------------------------------------------------

TABLE = SinkTable("query", {"m": cedr.source("x", SCHEMA).schema["m"], "v": cedr.source("x", SCHEMA).schema["v"]})
TABLE = replace(TABLE, shards=2)
CHANGES = [
    [
        *([Adjust(batch - 1, INF, batch + 3, Row(m=batch - 1, v=0))] if batch else []),
        Insert(batch, INF, Row(m=batch, v=0)),
        Insert(batch, batch + 1, Row(m=-1, v=batch % 3)),
        Cti(max(0, batch - 2)),
    ]
    for batch in range(16)
]


def opened(bucket: str):
    sink = sinks.parquet(f"{bucket}/table")
    sink.open(TABLE)
    return sink


def prepared(sink, batch: int) -> list[bytes]:
    chunks = by_shard(CHANGES[batch], 2)
    return [in_shard(sink).prepare(shard, batch, chunk) for shard, chunk in enumerate(chunks)]


def expected(batches: int):
    return canonical([e for changes in CHANGES[:batches] for e in changes])


def test_of_two_commits_of_a_batch_one_counts(bucket):
    one, other = opened(bucket), opened(bucket)
    ours, theirs = prepared(one, 0), prepared(other, 0)
    one.commit(0, ours)
    other.commit(0, theirs)
    assert history_of(TABLE, one.read()) == expected(1)
    one.commit(1, prepared(one, 1))
    assert history_of(TABLE, other.read()) == expected(2)
    there = {name for name in Folder(f"{bucket}/table").names() if name != "schema.parquet"}
    assert there == Manifest.newest(one.folder).names, "files that do not count are removed with the next commit"


SETTLING = 5
"""A batch with files of settled tuples, which later batches keep."""


def commit_up_to(sink, first: int, last: int) -> None:
    for batch in range(first, last + 1):
        sink.commit(batch, prepared(sink, batch))


def test_a_commit_that_comes_late_does_no_harm(bucket):
    """The manifest of its batch is gone already, so that it can be created once more."""
    older, newer = opened(bucket), opened(bucket)
    commit_up_to(newer, 0, SETTLING - 1)
    late, before = prepared(older, SETTLING), Manifest.newest(older.folder)
    commit_up_to(newer, SETTLING, SETTLING + 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(older, "_manifest", iter([before, Manifest.newest(newer.folder)]).__next__)
        older.commit(SETTLING, late)
    assert older.folder.sub("_cedr").has(f"{SETTLING}.json")
    assert history_of(TABLE, newer.read()) == expected(SETTLING + 3)
    commit_up_to(newer, SETTLING + 3, SETTLING + 3)
    assert history_of(TABLE, newer.read()) == expected(SETTLING + 4)
    assert Manifest.names_in(newer.folder) == [f"{SETTLING + 3}.json"]


@pytest.mark.parametrize("ahead", [1, 2])
def test_a_driver_that_cleans_up_late_does_no_harm(bucket, ahead):
    """Between its commit and the removal of old files the other one has committed more, and prepares the next."""
    older, newer = opened(bucket), opened(bucket)
    commit_up_to(newer, 0, SETTLING - 1)
    waiting: list[list[bytes]] = []

    def after_others(manifest: Manifest) -> None:
        commit_up_to(newer, SETTLING + 1, SETTLING + ahead)
        waiting.append(prepared(newer, SETTLING + ahead + 1))
        type(older)._sweep(older, manifest)

    ours = prepared(older, SETTLING)
    older._sweep = after_others
    older.commit(SETTLING, ours)
    newer.commit(SETTLING + ahead + 1, waiting[0])
    assert history_of(TABLE, newer.read()) == expected(SETTLING + ahead + 2)


def test_two_drivers_that_do_not_know_of_each_other(bucket):
    """Both commit all batches, as fast as they can, and one of them may stop. The table is right all the same."""
    wrong: list[Exception] = []

    def drive() -> None:
        sink, batch = opened(bucket), 0
        for _ in range(200):
            if batch == len(CHANGES):
                return
            try:
                sink.commit(batch, prepared(sink, batch))
                batch += 1
            except SinkError:
                batch = (sink.last_batch() or 0) + 1  # the other one is ahead
            except Exception as e:
                wrong.append(e)
                return

    opened(bucket)
    both = [threading.Thread(target=drive) for _ in range(2)]
    for driver in both:
        driver.start()
    for driver in both:
        driver.join()
    assert not [e for e in wrong if not isinstance(e, CedrError)]
    assert len(wrong) < 2
    sink = opened(bucket)
    assert sink.last_batch() == len(CHANGES) - 1
    assert history_of(TABLE, sink.read()) == expected(len(CHANGES))
