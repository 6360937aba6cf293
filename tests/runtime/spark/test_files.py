"""The file source on Spark: micro-batches, restarts, splits and bad files, with a packing that shows what it gets."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming import StreamingQuery

import cedr
from cedr.plan.nodes.source import Source
from cedr.runtime.spark.driver.starting import start_until_running
from cedr.runtime.spark.reader.source import Pack, read_files, time_type_of
from cedr.runtime.spark.shard.errors import cedr_error_inside
from cedr.sources.files import files
from cedr.sources.files.reading import Piece, Split
from cedr.temporal.errors import CedrError, QueryError

PACKED = "origin int, piece int, ts long, k long, why string"
Batches = dict[int, list[Row]]


def feed() -> Source:
    found = cedr.source("feed", {"k": int}, vs="ts").plan
    assert isinstance(found, Source)
    return found


def showing() -> Pack:
    """One row for each row and each bad line. Made in a function, so that it is pickled with its code."""

    def pack(pieces: Iterator[Piece], split: Split) -> Iterator[pa.RecordBatch]:
        import polars as pl

        for number, piece in enumerate(pieces):
            if isinstance(piece, pl.DataFrame):
                rows = piece.select("ts", "k", why=pl.lit(None, pl.String))
            else:
                rows = piece.rows.select(ts=pl.lit(None, pl.Int64), k="count", why=pl.format("{}{}", "file", "why"))
            table = rows.select(
                pl.lit(split.origin, pl.Int32).alias("origin"), pl.lit(number, pl.Int32).alias("piece"), pl.all()
            )
            for batch in table.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches():
                yield batch.cast(
                    pa.schema(
                        [
                            ("origin", pa.int32()),
                            ("piece", pa.int32()),
                            ("ts", pa.int64()),
                            ("k", pa.int64()),
                            ("why", pa.string()),
                        ]
                    )
                )

    return pack


class Run:
    """A query over a folder of files with a checkpoint: started again and again, it remembers what each batch gave."""

    def __init__(self, spark: SparkSession, place: Path) -> None:
        self.spark, self.place = spark, place
        self.data = place / "in"
        self.data.mkdir()
        self.batches: Batches = {}

    def frame(self, **settings: Any) -> DataFrame:
        chosen = files(self.data, **settings)
        log = str(self.place / "checkpoint" / "cedr" / "files" / "feed")
        return read_files(self.spark, chosen, feed(), showing(), PACKED, log=log)

    def start(
        self, fail: Callable[[int], bool] = lambda batch: False, now: bool = True, **settings: Any
    ) -> StreamingQuery:
        def keep(frame: DataFrame, batch: int) -> None:
            rows = frame.collect()
            if batch in self.batches:
                assert self.batches[batch] == rows, "a batch must be the same when it is read again"
            self.batches[batch] = rows
            if fail(batch):
                raise RuntimeError("lights out")

        writer = self.frame(**settings).writeStream.foreachBatch(keep)
        writer = writer.option("checkpointLocation", str(self.place / "checkpoint"))
        writer = writer.trigger(availableNow=True) if now else writer.trigger(processingTime="100 milliseconds")
        return start_until_running(writer.start)

    def finish(self, **settings: Any) -> None:
        self.start(**settings).awaitTermination()

    def times(self) -> list[list[int]]:
        """The times of each batch in the order of origins."""
        return [
            [row.ts for row in sorted(rows, key=lambda row: (row.origin, row.piece)) if row.ts is not None]
            for _, rows in sorted(self.batches.items())
        ]

    def whys(self) -> list[str]:
        return [row.why for _, rows in sorted(self.batches.items()) for row in rows if row.why is not None]

    def error(self, **settings: Any) -> str:
        """What the user reads when the query stops."""
        with pytest.raises(StreamingQueryException) as e:
            self.finish(**settings)
        found = cedr_error_inside(e.value)
        assert isinstance(found, CedrError)
        return str(found)


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    return Run(spark, tmp_path)


def csv(run: Run, number: int, rows: int = 2, name: str = "{:04}.csv") -> Path:
    """Under its name only when it is complete: a query may be looking."""
    unfinished, path = run.data / "csv.tmp", run.data / name.format(number)
    unfinished.write_text("ts,k\n" + "".join(f"{number * 10 + row},{row}\n" for row in range(rows)))
    return unfinished.rename(path)


def parquet(run: Run, number: int, rows: int = 40, row_group_size: int = 10) -> Path:
    path = run.data / f"{number:04}.parquet"
    times = range(number * rows, (number + 1) * rows)
    pl.DataFrame({"ts": times, "k": times}).write_parquet(path, row_group_size=row_group_size)
    return path


def test_available_now_in_several_batches(run: Run) -> None:
    for number in range(5):
        csv(run, number)
    run.finish(max_files=2)
    assert run.times() == [[0, 1, 10, 11], [20, 21, 30, 31], [40, 41]]
    csv(run, 5)
    run.finish(max_files=2)
    assert run.times()[3:] == [[50, 51]]


def test_without_a_limit_there_is_one_batch(run: Run) -> None:
    for number in range(5):
        csv(run, number)
    run.finish()
    assert run.times() == [[0, 1, 10, 11, 20, 21, 30, 31, 40, 41]]


def test_a_restart_reads_the_broken_batch_again_and_goes_on(run: Run) -> None:
    for number in range(6):
        parquet(run, number)
    with pytest.raises(StreamingQueryException, match="lights out"):
        run.finish(max_files=2, fail=lambda batch: batch == 1)
    broken = run.batches[1]
    (run.data / "0000a.parquet").write_bytes((run.data / "0000.parquet").read_bytes())  # arrives meanwhile
    run.finish(max_files=3, order="modified")
    assert run.batches[1] == broken
    times = run.times()
    assert times[:2] == [list(range(80)), list(range(80, 160))]
    assert sorted(time for batch in times[2:] for time in batch) == sorted([*range(160, 240), *range(40)])


def test_files_that_arrive_while_the_query_runs(run: Run) -> None:
    csv(run, 0)
    query = run.start(now=False, max_files=1)
    try:
        query.processAllAvailable()
        assert run.times() == [[0, 1]]
        csv(run, 2, name=".{:04}.csv").rename(run.data / "0002.csv")
        csv(run, 1)
        query.processAllAvailable()
        assert sorted(time for batch in run.times() for time in batch) == [0, 1, 10, 11, 20, 21]
    finally:
        query.stop()


def test_row_groups_are_read_by_several_tasks(run: Run) -> None:
    parquet(run, 0, rows=100, row_group_size=10)
    run.finish()
    assert {row.origin: row.ts for row in run.batches[0]} == {0: 49, 1: 99}
    assert run.times() == [list(range(100))]


def test_a_thousand_small_files(run: Run) -> None:
    for number in range(1000):
        csv(run, number)
    run.finish(max_files=400)
    assert [len(batch) for batch in run.times()] == [800, 800, 400]
    assert len({(row.origin, row.piece) for row in run.batches[0]}) == 2
    assert [time for batch in run.times() for time in batch] == [n * 10 + row for n in range(1000) for row in range(2)]


def test_static_files_are_a_table(spark: SparkSession, run: Run) -> None:
    for number in range(3):
        parquet(run, number)
    found = read_files(spark, files(run.data), feed(), showing(), PACKED)
    assert not found.isStreaming
    assert sorted(row.ts for row in found.collect()) == list(range(120))
    assert found.select("origin").distinct().count() == 2
    assert time_type_of(files(run.data), feed()) == pl.Int64


def test_no_files_are_no_rows(spark: SparkSession, run: Run) -> None:
    assert read_files(spark, files(run.data, "csv"), feed(), showing(), PACKED).collect() == []
    run.finish(format="csv")
    csv(run, 0).write_text("ts,k\n")
    run.finish(format="csv")
    assert run.times() == [[], []]  # Spark's first batch is there even without files
    assert time_type_of(files(run.data), feed()) is None


def test_a_path_that_is_not_there(spark: SparkSession, run: Run) -> None:
    run.data.rmdir()
    assert f"there is no file or folder '{run.data}'" in run.error(format="csv")
    with pytest.raises(QueryError, match="there is no file or folder"):
        run.frame()


def test_a_bad_line_stops_the_query_until_the_file_is_repaired(run: Run) -> None:
    for number in range(3):
        csv(run, number)
    bad = run.data / "0001.csv"
    bad.write_text("ts,k\n10,0\n11,x\n")
    message = run.error(max_files=1)
    assert (
        f"file '{bad}', line 3: column 'k' should be int64, but: invalid value 'x' in '11,x'. To continue, repair"
        in message
    )
    assert run.error(max_files=1) == message
    csv(run, 1)
    run.finish(max_files=1)
    assert run.times() == [[0, 1], [10, 11], [20, 21]]


def test_a_bad_file_may_be_moved_away_when_it_is_noted(run: Run) -> None:
    for number in range(3):
        csv(run, number)
    bad = run.data / "0001.csv"
    bad.write_text("ts\n10\n")
    assert "no column 'k' (columns: ts)" in run.error(max_files=1)
    bad.unlink()
    assert f"file '{bad}' was planned for this batch and no longer exists" in run.error(max_files=1)
    run.finish(max_files=1, on_bad="late")
    assert run.times() == [[0, 1], [], [20, 21]]
    assert run.whys() == [f"{bad} was planned for this batch and no longer exists"]


def test_a_bad_parquet_file_can_be_moved_away_before_it_is_planned(run: Run) -> None:
    for number in range(3):
        parquet(run, number)
    bad = run.data / "0001.parquet"
    bad.write_bytes(bad.read_bytes()[:-20])
    message = run.error(max_files=1)
    assert f"file '{bad}': this is not a complete Parquet file" in message
    assert "repair the file or move it away and restart" in message
    bad.unlink()
    run.finish(max_files=1)
    assert run.times() == [list(range(40)), list(range(80, 120))]


def test_late_keeps_the_query_running(run: Run) -> None:
    for number in range(4):
        csv(run, number, rows=3)
    (run.data / "0001.csv").write_text("ts,k\n10,0\n11,x\n12,2\n13")
    (run.data / "0002.csv").write_text("ts,K\n20,0\n")
    run.finish(max_files=2, on_bad="late")
    assert run.times() == [[0, 1, 2, 10, 12], [30, 31, 32]]
    assert run.whys() == [
        f"{run.data}/0001.csvcolumn 'k' should be int64, but: invalid value 'x'",
        f"{run.data}/0001.csvexpected 2 values, found 1",
        f"{run.data}/0002.csv: no column 'k'; did you mean 'K'? (columns: ts, K)",
    ]


def test_a_late_parquet_file_is_all_or_nothing(run: Run) -> None:
    parquet(run, 0, rows=100)
    half = [*(float(n) for n in range(50)), *(n + 0.5 for n in range(50))]
    pl.DataFrame({"ts": range(100, 200), "k": half}).write_parquet(run.data / "0001.parquet", row_group_size=10)
    run.finish(on_bad="late")
    assert run.times() == [list(range(100))]
    ((count, why),) = [(row.k, row.why) for row in run.batches[0] if row.why]
    assert count == 100
    assert "column 'k' should be Int64 and is Float64; 0.5 cannot be cast without loss" in why


def test_a_file_that_changes_later_stops_the_query(run: Run) -> None:
    csv(run, 0)
    run.finish()
    csv(run, 0, rows=3)
    assert "0000.csv' was read with 13 bytes and has changed to 17 bytes" in run.error()
    run.finish(on_bad="late")
    assert run.whys() == [f"{run.data}/0000.csv was read with 13 bytes and has changed to 17 bytes"]
    run.finish()
    assert run.times() == [[0, 1], []]


def test_a_static_table_with_a_bad_file(spark: SparkSession, run: Run) -> None:
    csv(run, 0)
    (run.data / "0001.csv").write_text("ts,k\n10,x\n")
    with pytest.raises(Exception, match=r"0001.csv', line 2: column 'k' should be int64") as e:
        read_files(spark, files(run.data), feed(), showing(), PACKED).collect()
    assert isinstance(cedr_error_inside(e.value), CedrError)
    late = read_files(spark, files(run.data, on_bad="late"), feed(), showing(), PACKED).collect()
    assert sorted(row.k for row in late) == [0, 1, 1]
