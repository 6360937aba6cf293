"""A changed query at a restart on Spark: tables, changelogs, what has to be accepted, the command line."""

from collections import Counter

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from runtime.spark.test_streaming import Run, readings, table

import cedr
from cedr.temporal import QueryError

ROWS = [(t * 3, "abcdefgh"[t * 5 % 8], t) for t in range(60)]
FIRST, SECOND = ROWS[:30], ROWS[30:]


def sums(rows=None, **aggregates):
    found = readings(delay=30) if rows is None else rows
    return found.sliding(40).group_by("k").agg(**(aggregates or {"n": cedr.count(), "v": cedr.sum("v")}))


def eager(rows=None):
    """Results are corrected, so that their table shows which rows are in them."""
    return sums(rows).with_latency("eager")


def even():
    return eager(readings(delay=30).where(pl.col("v") % 2 == 0))


@pytest.fixture
def run(spark, tmp_path):
    return Run(spark, tmp_path)


def expected(query, rows):
    return query.run(table(*rows), close=False, chunk_size=15).table()


def in_out(run, name="out"):
    return cedr.sinks.parquet(run.folder / name)


def test_another_where_below_has_to_be_accepted(run):
    """The table goes on: results that change are found, though other rows come in from now on."""
    run.write(table(*FIRST))
    run.all(even(), in_out(run), shards=2)
    run.write(table(*SECOND))
    with pytest.raises(QueryError, match=r"Rows that have arrived stay as they were(.|\n)*upgrade=True"):
        run.start(eager(), in_out(run))
    running = run.all(eager(), in_out(run), upgrade=True)
    kept = [row for row in FIRST if row[2] % 2 == 0] + SECOND
    assert_frame_equal(running.table(), expected(eager(), kept))
    assert_frame_equal(run.all(eager(), in_out(run)).table(), expected(eager(), kept))
    assert running.late().height == 0


def test_another_level_is_the_same_query(run):
    """Rows that were held back are there, without that anyone had to accept it."""
    levels = [cedr.STRONG, cedr.MIDDLE, cedr.Consistency(9, cedr.STRONG.remember)]
    for part, level in enumerate(levels):
        run.write(table(*ROWS[20 * part : 20 * part + 20]))
        running = run.all(sums().with_consistency(level), in_out(run), shards=2)
    run.write(table((999, "z", 0)))
    running = run.all(sums(), in_out(run))
    assert_frame_equal(running.table(), expected(sums(), [*ROWS, (999, "z", 0)]))


def test_a_new_table_gets_results_from_then_on(run):
    """Also corrections of results that only the old one has."""
    run.write(table(*FIRST))
    before = run.all(eager(), in_out(run), shards=2).table()
    run.write(table(*SECOND))
    with pytest.raises(cedr.CedrError, match=r"has no batch yet(.|\n)*upgrade=True"):
        run.start(eager(), in_out(run, "new"))
    after = run.all(eager(), in_out(run, "new"), upgrade=True).table()
    complete = expected(eager(), ROWS)
    assert set(after.rows()) == set(complete.rows()) - set(before.rows())
    assert 0 < after.height < complete.height
    run.write(table((500, "z", 1)))
    assert set(after.rows()) < set(run.all(eager(), in_out(run, "new"), shards=3).table().rows())


def test_a_new_table_in_a_database(run):
    run.write(table(*FIRST))
    before = run.all(eager(), cedr.sinks.duckdb(run.folder / "out.db", "old"), shards=2).table()
    run.write(table(*SECOND))
    after = run.all(eager(), cedr.sinks.duckdb(run.folder / "out.db", "new"), upgrade=True).table()
    assert set(after.rows()) == set(expected(eager(), ROWS).rows()) - set(before.rows())


def test_another_result_needs_another_table_if_results_are_corrected(run):
    run.write(table(*FIRST))
    run.all(eager(), in_out(run), shards=2)
    run.write(table(*SECOND))
    high = eager().where(pl.col("v") % 3 != 0)
    with pytest.raises(QueryError, match=r"are corrected later(.|\n)*Use another place for the new result"):
        run.start(high, in_out(run), upgrade=True)
    after = run.all(high, in_out(run, "high"), upgrade=True).table()
    assert set(after.rows()) <= set(expected(high, ROWS).rows())
    assert after.height


def test_a_new_aggregate_of_kept_rows(run):
    old, new = {"mid": cedr.median("v")}, {"mid": cedr.median("v"), "hi": cedr.max("v"), "n": cedr.count()}
    run.write(table(*FIRST))
    run.all(sums(**old), in_out(run), shards=2)
    run.write(table(*SECOND))
    with pytest.raises(QueryError, match="upgrade=True"):
        run.start(sums(**new), in_out(run, "new"))
    with pytest.raises(QueryError, match=r"sum of v Int64 of .*, and has kept only the number, values"):
        run.start(sums(**old, v=cedr.sum("v")), in_out(run, "new"), upgrade=True)
    after = run.all(sums(**new), in_out(run, "new"), upgrade=True).table()
    complete = sums(**new).run(table(*ROWS)).table()
    assert set(after.rows()) <= set(complete.rows())
    assert after.height > 20


def test_an_interrupted_query_is_finished_as_it_was(run):
    run.write(table(*FIRST))
    run.all(even(), in_out(run), shards=2)
    for name in ("0", ".0.crc"):
        (run.folder / "checkpoint" / "spark" / "commits" / name).unlink(missing_ok=True)
    with pytest.raises(QueryError, match="its last micro-batch was interrupted: start the query as it was"):
        run.start(eager(), in_out(run), upgrade=True)
    run.all(even(), in_out(run))
    run.write(table(*SECOND))
    kept = [row for row in FIRST if row[2] % 2 == 0] + SECOND
    assert_frame_equal(run.all(eager(), in_out(run), upgrade=True).table(), expected(eager(), kept))


def test_a_killed_query_has_no_snapshot(run):
    run.write(table(*FIRST))
    run.all(even(), in_out(run), shards=2)
    for file in (run.folder / "checkpoint").rglob("snapshot-*"):
        file.unlink()
    with pytest.raises(QueryError, match=r"2 of 2 shards have no snapshot(.|\n)*start the query as it was once more"):
        run.start(eager(), in_out(run), upgrade=True)


def test_a_changelog_goes_on(run):
    out = str(run.folder / "changes")
    run.write(table(*FIRST))
    run.all(even(), cedr.sinks.changelog("parquet", path=out), shards=2)
    run.write(table(*SECOND))
    run.all(eager(), cedr.sinks.changelog("parquet", path=out), upgrade=True)
    rows = pl.read_parquet(f"{out}/*.parquet").filter(pl.col("change") != "cti")
    kept = [row for row in FIRST if row[2] % 2 == 0] + SECOND
    left: Counter = Counter()
    for change, *key, vs, ve, new in rows.select("change", "k", "n", "v", "vs", "ve", "ve_new").iter_rows():
        left[(vs, ve, *key)] += 1 if change == "insert" else -1
        left[(vs, new, *key)] += change == "adjust"
    assert {row for row, n in left.items() if n} == set(expected(eager(), kept).rows())
    assert min(left.values()) == 0
