"""Another number of shards at a restart on Spark: tables, changelogs, interrupted micro-batches, the command line."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from runtime.spark.test_streaming import Run, readings, table

import cedr
from cedr.temporal import QueryError

ROWS = [(t * 3, "abcdefgh"[t * 5 % 8], t) for t in range(60)]
NUMBERS = (2, 5, None, 3, 1)
"""None: that of the last start."""


def sums():
    """Results change while they are open, so that new shards change tuples of those before."""
    return readings(delay=30).sliding(40).group_by("k").agg(n=cedr.count(), v=cedr.sum("v")).with_latency("eager")


def expected():
    return sums().run(table(*ROWS), close=False, chunk_size=12).table()


@pytest.fixture
def run(spark, tmp_path):
    return Run(spark, tmp_path)


def test_a_table_goes_on_with_any_number_of_shards(run):
    for part, shards in enumerate(NUMBERS):
        run.write(table(*ROWS[12 * part : 12 * part + 12]))
        running = run.all(sums(), cedr.sinks.parquet(run.folder / "out"), shards=shards)
        assert running.job.shards == (shards or 5)
        assert set(running.metrics()["shard"]) == {cell.number for cell in running.job.cells(1)}
    assert_frame_equal(running.table(), expected())
    again = run.all(sums(), cedr.sinks.parquet(run.folder / "out"))
    assert again.job.shards == 1
    assert again.job.layout.version == 3


def test_a_database_goes_on_with_any_number_of_shards(run):
    for part, shards in enumerate(NUMBERS):
        run.write(table(*ROWS[12 * part : 12 * part + 12]))
        running = run.all(sums(), cedr.sinks.duckdb(run.folder / "out.db", "sums"), shards=shards)
    assert_frame_equal(running.table(), expected())


def test_an_interrupted_micro_batch_is_finished_first(run):
    """Spark has begun it and the sink may have it; the shards of before have logged it."""
    run.write(table(*ROWS[:30]))
    run.all(sums(), cedr.sinks.parquet(run.folder / "out"), shards=2)
    run.write(table(*ROWS[30:45]))
    run.all(sums(), cedr.sinks.parquet(run.folder / "out"))
    for name in ("1", ".1.crc"):
        (run.folder / "checkpoint" / "spark" / "commits" / name).unlink(missing_ok=True)
    run.write(table(*ROWS[45:]))
    running = run.all(sums(), cedr.sinks.parquet(run.folder / "out"), shards=5)
    assert running.job.layout.batch >= 1
    assert_frame_equal(running.table(), sums().run(table(*ROWS), close=False, chunk_size=15).table())


def test_a_changelog_ends_the_progress_of_shards_that_were_split(run):
    run.write(table(*ROWS[:30]))
    out = str(run.folder / "changes")
    run.all(sums(), cedr.sinks.changelog("parquet", path=out), shards=2)
    run.write(table(*ROWS[30:]))
    run.all(sums(), cedr.sinks.changelog("parquet", path=out), shards=5)
    rows = pl.read_parquet(f"{out}/*.parquet")
    ctis = rows.filter(pl.col("change") == "cti")  # infinity is null
    ended = ctis.filter(pl.col("vs").is_null())["shard"].sort().to_list()
    assert ended == [0, 1]
    assert set(ctis["shard"]) == {0, 1, 2, 3, 4, 5, 6, 7}


def test_there_is_at_least_one_shard(run):
    run.write(table(*ROWS[:15]))
    sink = cedr.sinks.memory()
    run.all(sums(), sink, shards=2)
    with pytest.raises(QueryError, match="shards=-1: there must be at least one shard"):
        run.start(sums(), sink, shards=-1)


def test_a_server_goes_on_with_any_number_of_shards(run, postgres):
    for part, shards in enumerate(NUMBERS):
        run.write(table(*ROWS[12 * part : 12 * part + 12]))
        running = run.all(sums(), cedr.sinks.postgres(postgres.dsn, "rescaled"), shards=shards)
    assert_frame_equal(running.table(), expected())
