"""Promises about parts of a stream on Spark: the results they settle are emitted, whatever the other parts do."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from runtime.spark.tables import history_of

import cedr
from cedr import reference as ref
from cedr.temporal import Event, History, Row
from cedr.testing import assert_same

YEAR = timedelta(days=365)


@pytest.fixture
def finished(spark, tmp_path):
    """What a query has emitted after it has read some tables, each in a micro-batch of its own."""

    def run(query, tables, **options):
        (tmp_path / "in").mkdir(exist_ok=True)
        for number, table in enumerate(tables):
            table.write_parquet(tmp_path / "in" / f"{number:04d}.parquet")
        files = cedr.files(tmp_path / "in", "parquet", max_files=1)
        checkpoint = str(tmp_path / "checkpoint")
        sink = cedr.sinks.parquet(tmp_path / "out")
        running = query.start(
            spark, files, sink=sink, checkpoint=checkpoint, trigger={"availableNow": True}, shards=3, **options
        )
        running.await_termination()
        return running

    return run


def one_by_one(query, tables, close=False) -> pl.DataFrame:
    """What the same query emits in this process."""
    *_, last = query.updates(iter(tables), close=close)
    return last.table()


def windows_of(tables, length: int) -> History:
    """How many events each p has in each window."""
    rows = [row for table in tables for row in table.iter_rows(named=True)]
    events = History(Event(row["ts"], row["ts"] + 1, Row(p=row["p"])) for row in rows)
    return ref.aggregate(ref.tumbling(events, length), ("p",), n=ref.count())


@pytest.mark.filterwarnings("ignore::cedr.CedrWarning")
def test_one_partition_is_silent_and_another_a_year_ahead(finished):
    # p      0 .. 5          6                        7
    # ts     0, 10, 20, 30   0, then a year ahead     0, then nothing
    # out    [0, 20)         [0, 10), its windows      nothing
    year = YEAR // timedelta(microseconds=1)
    going_on = [pl.DataFrame({"p": range(7), "ts": [*[step] * 6, step + year]}) for step in (10, 20, 30)]
    tables = [pl.DataFrame({"p": range(8), "ts": [0] * 8}), *going_on]
    source = cedr.source("s", {"p": int}, vs="ts", progress=cedr.Progress(by="p"), delay=5)
    query = source.tumbling(10).group_by("p").agg(n=cedr.count()).with_consistency("strong")
    running = finished(query, tables)
    found = running.table()
    assert_frame_equal(found, one_by_one(query, tables))
    assert running.late().height == 0
    reached = {**dict.fromkeys(range(6), 20), 6: (year + 25) // 10 * 10, 7: 0}
    expected = History(e for e in windows_of(tables, 10) if e.ve <= reached[e.payload.p])
    assert_same(history_of(found, {"p": None, "n": None}), expected)
    assert found["p"].unique().sort().to_list() == list(range(7))


@pytest.mark.filterwarnings("ignore::cedr.CedrWarning")
def test_rows_that_are_punctuations_settle_what_they_are_about(finished):
    def table(*rows):
        return pl.DataFrame(rows, schema={"ts": pl.Int64, "p": pl.Int64, "done": pl.Boolean}, orient="row")

    tables = [
        table((1, 1, False), (2, 2, False), (11, 1, False), (25, 3, None)),
        table((10, 1, True), (None, 2, True)),  # of 1 nothing before 10 any more, of 2 nothing at all
        table((3, 1, False), (12, 1, False), (4, 2, False), (5, 3, False)),
    ]
    source = cedr.source("s", {"p": int}, vs="ts", progress=cedr.Progress(punctuation="done", promises="p"))
    query = source.tumbling(10).group_by("p").agg(n=cedr.count()).with_consistency("strong")
    running = finished(query, tables)
    assert running.table().rows() == [(0, 10, 1, 1), (0, 10, 2, 1)]
    late = running.late().sort("vs")
    assert late["reason"].to_list() == ["below_punctuation"] * 2
    assert [message.split(": ", 1)[1].split(" (in file ")[0] for message in late["message"]] == [
        "it was promised: no more p=1 before 10",
        "it was promised: no more p=2",
    ]
    closed = one_by_one(query, tables, close=True)
    counted = [tables[0], table((12, 1, False), (5, 3, False))]
    assert_same(history_of(closed, {"p": None, "n": None}), windows_of(counted, 10))


def test_in_a_static_table_they_have_no_effect(spark, tmp_path):
    rows = pl.DataFrame({"ts": [1, None, 2], "p": [1, 1, 2], "done": [False, True, None]})
    rows.write_parquet(tmp_path / "rows.parquet")
    source = cedr.source("s", {"p": int}, vs="ts", progress=cedr.Progress(punctuation="done", promises="p"))
    query = source.tumbling(10).group_by("p").agg(n=cedr.count())
    answer = query.batch(spark, cedr.files(tmp_path)).toArrow()
    assert_frame_equal(pl.DataFrame(answer).sort("p"), query.run(rows).table())


def test_rows_from_the_future_are_put_aside_and_move_nobody(finished):
    now = datetime.now(UTC).replace(tzinfo=None)
    starts = [[now - timedelta(hours=3), now + YEAR], [now - timedelta(hours=1)]]
    tables = [
        pl.DataFrame({"ts": ts, "p": range(len(ts))}, schema_overrides={"ts": pl.Datetime("us")}) for ts in starts
    ]
    source = cedr.source("s", {"p": int}, vs="ts", delay="1m", progress=cedr.Progress(max_ahead="10m"))
    running = finished(source.tumbling("1m").agg(n=cedr.count()).with_consistency("strong"), tables)
    assert running.table()["n"].to_list() == [1]
    late = running.late()
    assert late.select("p", "reason").rows() == [(1, "from_the_future")]
    assert sum(p.observedMetrics["cedr"].late for p in running.progress) == 1
