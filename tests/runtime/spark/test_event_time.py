"""Event time from expressions, formats and units on Spark: the same answer as in this process."""

from datetime import datetime

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import cedr
from cedr.api import source_of_keys
from cedr.temporal.errors import CedrError, QueryError

ALL_THERE = {"availableNow": True}
START = datetime(2024, 1, 1, 5)
ROWS = pl.DataFrame(
    {
        "hour": [START, START, START],
        "minute": [3, 59, 3],
        "ms": [1_000, 2_500, 1_000],
        "us": ["01/01/2024 05:03", "01/01/2024 05:59", "2024-01-01 05:03"],
        "v": [1, 2, 4],
    },
    schema_overrides={"minute": pl.Int64},
)
TIMES = {
    "text": {"vs": "hour + minute * 1 minute"},
    "polars": {"vs": pl.col("hour") + pl.duration(minutes="minute"), "duration": "minute * 1 second"},
    "unit": {"vs": "ms", "unit": "ms", "duration": 500},
    "format": {"vs": "us", "format": "%m/%d/%Y %H:%M"},
}
SCHEMA = "hour timestamp_ntz, minute long, ms long, us string, v long"


def query(times):
    return source_of_keys("s", {"v": int}, delay="1 day", **times).group_by().agg(v=cedr.sum("v")).with_latency("eager")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    ROWS.write_parquet(folder / "rows.parquet")
    return str(folder)


@pytest.mark.parametrize("name", TIMES)
def test_same_answer(spark, place, tmp_path, name):
    asked, here = query(TIMES[name]), query(TIMES[name]).run(ROWS)
    late = str(tmp_path / "late") if name == "format" else None
    rows = pl.DataFrame(asked.batch(spark, spark.read.schema(SCHEMA).parquet(place), late=late).toArrow())
    assert_frame_equal(rows.sort("vs"), here.table(), check_dtypes=False)
    for given in (spark.readStream.schema(SCHEMA).parquet(place), cedr.files(place)):
        checkpoint = str(tmp_path / type(given).__name__)
        running = asked.start(spark, given, sink=cedr.sinks.memory(), checkpoint=checkpoint, trigger=ALL_THERE)
        running.await_termination()
        assert_frame_equal(running.table(), here.table())
        assert running.late().height == here.late().height


def test_mistakes_are_found_before_anything_runs(spark, place):
    rows = spark.read.schema(SCHEMA).parquet(place)
    for times, message in (
        ({"vs": "us"}, "vs='us' is text; declare its format, for example format="),
        ({"vs": "hour + minuet"}, "no column 'minuet'"),
        ({"vs": "hour + minute"}, "cannot combine them"),
    ):
        with pytest.raises(CedrError) as caught:
            query(times).batch(spark, rows)
        assert message in str(caught.value)
    with pytest.raises(QueryError, match="no column"):
        query({"vs": "hour + * minute"}).batch(spark, rows)
