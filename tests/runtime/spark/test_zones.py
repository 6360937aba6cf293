"""Times with a zone on Spark: an ordinary `timestamp` column as event time and as payload, for every kind of answer and
for sessions in any time zone."""

import datetime as dt

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import cedr
from cedr.temporal import QueryError

ALL_THERE = {"availableNow": True}
UTC = dt.UTC
# 2024-10-27 01:00 UTC is when clocks in Berlin go back from 3:00 to 2:00, 2024-11-03 06:00 UTC is New York's hour.
STARTS = [
    dt.datetime(2024, 10, 27, 0, 30, tzinfo=UTC),
    dt.datetime(2024, 10, 27, 1, 30, tzinfo=UTC),
    dt.datetime(2024, 11, 3, 5, 30, 0, 123456, tzinfo=UTC),
    dt.datetime(2024, 11, 3, 6, 30, tzinfo=UTC),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
]
ROWS = pl.DataFrame(
    {"at": STARTS, "k": ["a", "b", "a", "b", "a"], "seen": [None, *STARTS[:4]]},
    schema={"at": pl.Datetime("us", "UTC"), "k": pl.String, "seen": pl.Datetime("us", "UTC")},
)


def query():
    source = cedr.source(
        "s", {"k": str, "seen": pl.Datetime("us", "Asia/Tokyo")}, vs="at", duration="1 hour", delay="1 day"
    )
    return source.group_by("k").agg(n=cedr.count(), last=cedr.max("seen")).with_latency("eager")


def expected(zone: str) -> pl.DataFrame:
    shown = pl.Datetime("us", zone)
    return query().run(ROWS).table().with_columns(pl.col("vs", "ve").cast(shown))


@pytest.fixture(params=["America/New_York", "+05:30"])
def session(spark, request):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


def shown_zone(session) -> str:
    """A zone without a name is shown in UTC."""
    zone = session.conf.get("spark.sql.session.timeZone")
    return "UTC" if zone.startswith("+") else zone


def written(folder) -> str:
    """As Spark writes such columns."""
    (folder / "in").mkdir()
    ROWS.write_parquet(folder / "in" / "rows.parquet")
    return str(folder / "in")


def as_utc(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col(pl.Datetime("us", "*")).dt.convert_time_zone("UTC"))


def test_batch(session, tmp_path):
    answer = query().batch(session, session.read.parquet(written(tmp_path)))
    assert [field.dataType.simpleString() for field in answer.schema] == ["timestamp"] * 2 + [
        "string",
        "bigint",
        "timestamp",
    ]
    found = pl.DataFrame(answer.toArrow()).sort("k", "vs")
    assert_frame_equal(as_utc(found), as_utc(expected("UTC")).sort("k", "vs"))


def start(session, folder, sink, **options):
    schema = "at timestamp, k string, seen timestamp"
    data = session.readStream.schema(schema).parquet(str(folder / "in"))
    running = query().start(
        session, data, sink=sink, checkpoint=str(folder / options.pop("name", "checkpoint")), trigger=ALL_THERE
    )
    running.await_termination()
    return running


def test_tables(session, tmp_path):
    written(tmp_path)
    sinks = {"memory": cedr.sinks.memory(), "parquet": cedr.sinks.parquet(tmp_path / "out")}
    sinks["duckdb"] = cedr.sinks.duckdb(tmp_path / "answers.duckdb", "answers")
    for name, sink in sinks.items():
        assert_frame_equal(start(session, tmp_path, sink, name=name).table(), expected(shown_zone(session)))


def test_changes(session, tmp_path):
    written(tmp_path)
    batches = []
    start(session, tmp_path, cedr.sinks.foreach(lambda number, changes: batches.append(changes)), name="foreach")
    changes = pl.concat(batches).filter(pl.col("change") == "insert")
    assert changes.schema["vs"] == pl.Datetime("us", shown_zone(session))
    assert changes.height == ROWS.height

    start(session, tmp_path, cedr.sinks.changelog("parquet", str(tmp_path / "log")), name="changelog")
    answer = session.read.parquet(str(tmp_path / "log"))
    assert dict(answer.dtypes)["ve_new"] == "timestamp"
    log = pl.DataFrame(answer.where("change = 'insert'").toArrow())
    names = ["k", "vs", "ve", "n", "last"]
    assert_frame_equal(as_utc(log).select(names).sort(names), as_utc(changes).select(names).sort(names))


def test_nanoseconds_are_rejected_before_anything_is_written(spark, tmp_path):
    written(tmp_path)
    source = cedr.source("s", {"seen": pl.Datetime("ns", "UTC")}, vs="at", delay="1 day")
    data = spark.read.parquet(str(tmp_path / "in"))
    with pytest.raises(QueryError, match=r"'seen' is of type .*pl.col\('seen'\).dt.cast_time_unit\('us'\)"):
        source.batch(spark, data)
    stream = spark.readStream.schema(data.schema).parquet(str(tmp_path / "in"))
    sink = cedr.sinks.changelog("parquet", str(tmp_path / "log"))
    with pytest.raises(QueryError, match="Spark's timestamps have microseconds"):
        source.start(spark, stream, sink=sink, checkpoint=str(tmp_path / "checkpoint"))
    assert not list((tmp_path / "checkpoint").rglob("query.json"))
