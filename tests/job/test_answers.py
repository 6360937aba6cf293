"""A job gives the same answer in this process and on Spark, and that is the answer of the query itself."""

import duckdb
import polars as pl
import pytest
from job.files import JOB, LATER, ROWS, put

from cedr import sinks
from cedr.columnar.chunk import Chunk
from cedr.columnar.tally import Tally
from cedr.job.job import read
from cedr.job.local import LocalAnswer
from cedr.job.on_spark import SparkAnswer
from cedr.recording.changelog import read_changelog
from cedr.runtime.spark.driver.streaming import settings_for
from cedr.temporal.errors import CedrError, QueryError, StreamError

TWO = """
[query]
function = "query.py:build"

[sources.readings]
files = "data/*.csv"
max_files = 1
columns = { machine = "str", load = "float" }
vs = "start"
ve = "end"
delay = 5

[sources.owners]
files = "owners"
columns = { machine = "str", owner = "str" }
vs = "start"
ve = "end"
ve_new = "end_new"
cti = "cti"

[sinks.table]
parquet = "out/table"

[sinks.changes]
changelog = "out/changes"
late = "out/late"

[sinks.all]
duckdb = "out/all.duckdb"
statement = "owned"

[spark]
shards = 2
"""

QUERY = """
import cedr
import polars as pl


def greatest(rows):
    return max(rows["owner"])


def build(readings, owners):
    owned = readings.join(owners, on="machine")
    named = cedr.aggregate("owner", function=greatest, dtype=pl.String)
    return {"owned": owned, "busy": owned.tumbling(10).group_by("machine").agg(load=cedr.max("load"), owner=named)}
"""

OWNERS = [
    # start, end, end_new, cti
    {"start": 0, "end": 100, "machine": "web1", "owner": "ann"},
    {"start": 0, "end": 100, "machine": "web2", "owner": "bob"},
    {"start": 0, "end": 100, "end_new": 6, "machine": "web1", "owner": "ann"},
    {"start": 6, "end": None, "machine": "web1", "owner": "bob"},
    {"cti": 8},
    {"start": 10, "end": 50, "machine": "db1", "owner": "cid"},
]


@pytest.fixture
def job(tmp_path):
    file = put(tmp_path, TWO)
    (tmp_path / "query.py").write_text(QUERY)
    (tmp_path / "owners").mkdir()
    kinds = {"start": pl.Int64, "end": pl.Int64, "end_new": pl.Int64, "cti": pl.Int64}
    owners = pl.DataFrame(OWNERS, schema={**kinds, "machine": pl.String, "owner": pl.String})
    owners[:3].write_parquet(tmp_path / "owners" / "0.parquet")
    owners[3:].write_parquet(tmp_path / "owners" / "1.parquet")
    return file


def expected(job, statement: str) -> pl.DataFrame:
    """What the query answers to the same tables, without any of the job's machinery."""
    readings = pl.concat([pl.read_csv(job.file.parent / "data" / name) for name in ("a.csv", "b.csv")])
    tables = {
        "readings": readings.filter(pl.col("machine") != "late"),
        "owners": pl.read_parquet(job.file.parent / "owners" / "*.parquet"),
    }
    return job.streams[statement].run(tables).table()


def test_here_and_on_spark(job, spark, tmp_path):
    made = read(job)
    local_reports = [report for sink in made.sinks.values() for report in LocalAnswer(made, sink).steps()]
    check(made, local_reports)
    assert sinks.read_parquet(tmp_path / "out" / "table").equals(expected(made, "busy"))
    assert duckdb_rows(tmp_path / "out" / "all.duckdb") == expected(made, "owned").rows()
    (tmp_path / "out").rename(tmp_path / "out of the local run")
    compact = {"spark.sql.streaming.fileSink.log.compactInterval": "2"}  # so that its log is compacted, too
    with settings_for(spark, compact):
        answer = SparkAnswer(made, made.sinks["changes"], spark, once=True, close=True)
        answer.running.await_termination()
    assert any((tmp_path / "out" / "changes" / "_spark_metadata").glob("*.compact"))
    check(made, list(answer.reports()))
    with pytest.raises(QueryError, match="belongs to a run that closes at the end of its input; run it with --once"):
        SparkAnswer(made, made.sinks["changes"], spark, once=False, close=False)
    again = SparkAnswer(made, made.sinks["changes"], spark, once=True, close=True)
    again.running.await_termination()
    assert not list(again.reports())


def test_another_number_of_shards(spark, tmp_path):
    made = read(put(tmp_path))
    (tmp_path / "data" / "b.csv").unlink()
    for shards in (None, 5, 1):
        answer = SparkAnswer(made, made.sinks["hot"], spark, once=True, close=False, shards=shards)
        answer.running.await_termination()
        assert answer.running.job.shards == (shards or 2)
        number = answer.running.job.shards
        rows = f"start,end,machine,load\n{20 + number},{30 + number},web{number},0.9\n"
        (tmp_path / "data" / f"{number}.csv").write_text(rows)
    SparkAnswer(made, made.sinks["hot"], spark, once=True, close=False, shards=3).running.await_termination()
    tables = [pl.read_csv(tmp_path / "data" / name) for name in ("a.csv", "2.csv", "5.csv", "1.csv")]
    hot = made.streams["Hot"].run({"readings": pl.concat(tables)}, close=False).table()
    assert sinks.read_parquet(tmp_path / "out" / "hot").rows() == hot.rows()


def test_a_changed_query_has_to_be_accepted(spark, tmp_path):
    job = put(tmp_path)
    made = read(job)
    SparkAnswer(made, made.sinks["hot"], spark, once=True, close=False).running.await_termination()
    job.write_text(job.read_text().replace('"out/hot"', '"out/other"'))
    made = read(job)
    with pytest.raises(CedrError, match="--upgrade"):
        SparkAnswer(made, made.sinks["hot"], spark, once=True, close=False)
    SparkAnswer(made, made.sinks["hot"], spark, once=True, close=False, upgrade=True).running.await_termination()
    assert sinks.read_parquet(tmp_path / "out" / "other").height == 0
    assert sinks.read_parquet(tmp_path / "out" / "hot").height > 0


def check(made, reports) -> None:
    folder = made.file.parent / "out"
    busy = expected(made, "busy")
    log = read_changelog(folder / "changes")
    tally = Tally(log.schema)
    tally.add(Chunk(log.rows))
    assert tally.table().rename({"_vs": "vs", "_ve": "ve"}).equals(busy)
    assert log.ctis[-1][1] == 2**63 - 1
    assert log.emitted_at is not None
    late = pl.concat([pl.read_parquet(p) for p in (folder / "late").glob("*.parquet")], how="diagonal_relaxed")
    assert late.select("machine", "reason").rows() == [("late", "below_cti")]
    events = (ROWS + LATER).count("\n") - 2 + len(OWNERS) - 1
    assert sum(r.rows_in for r in reports if r.sink == "changes") - events in (0, 1)  # the row that is a CTI
    assert {r.late for r in reports if r.sink == "changes"} == {0, 1}
    assert reports[-1].progress == "∞"


def duckdb_rows(path) -> list[tuple]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.sql('SELECT vs, ve, machine, load, owner FROM "all" ORDER BY ALL').fetchall()


def test_a_local_run_replaces_its_own_answer(job):
    made = read(job)
    sink = made.sinks["table"]
    list(LocalAnswer(made, sink).steps())
    (job.parent / "data" / "a.csv").write_text(ROWS.replace("0.9", "0.1"))
    list(LocalAnswer(made, sink).steps())
    assert sinks.read_parquet(job.parent / "out" / "table").equals(expected(made, "busy"))


def test_without_sinks_the_answer_is_shown(tmp_path, spark):
    made = read(put(tmp_path, JOB[: JOB.index("[sinks")]))
    (sink,) = made.sinks.values()
    local = LocalAnswer(made, sink)
    list(local.steps())
    assert sink.place == "memory"
    answer = SparkAnswer(made, sink, spark, once=True, close=True)
    answer.running.await_termination()
    assert answer.running.table().equals(local.result.table())
    assert local.result.table()["machine"].to_list() == ["web1", "late", "web1", "db1", "web1"]
    answer.clean_up()


def test_a_source_may_declare_that_its_lifetimes_end(tmp_path):
    two = JOB[: JOB.index("[query]")] + JOB[JOB.index("[sources") :]
    (tmp_path / "q.py").write_text("def build(readings, more):\n    return readings.join(more, on='machine')\n")
    section = two[two.index("[sources") : two.index("[consistency")]
    job = (
        '[query]\nfunction = "q.py:build"\n\n'
        + section
        + section.replace("readings", "more")
        + two[two.index("[cons") :]
    )
    assert len(read(put(tmp_path, job)).warnings()) == 1
    assert read(put(tmp_path, job.replace("delay = 5", "delay = 5\nends = true"))).warnings() == []


def test_late_rows_without_a_lifetime_name_their_file(tmp_path):
    made = read(put(tmp_path, JOB))
    (tmp_path / "data" / "c.csv").write_text("start,end,machine,load\n30,25,web1,0.9\n")
    local = LocalAnswer(made, next(iter(made.sinks.values())))
    list(local.steps())
    messages = local.result.late().filter(reason="no_lifetime")["message"].to_list()
    assert [message.partition(" (in file ")[2] for message in messages] == [f"{tmp_path}/data/c.csv)"]


LATE_JOB = """
[query]
text = "EVENT Loads SELECT machine, COUNT(*) AS n FROM readings TUMBLING 10 WHERE load > 0 GROUP BY machine"

[sources.readings]
files = "data/*.csv"
max_files = 3
columns = { machine = "str", load = "float" }
vs = "start"
ve = "end"
delay = 5

[sinks.changes]
changelog = "out/changes"
late = "out/late"

[spark]
shards = 2
"""


@pytest.mark.parametrize("on_spark", [False, True])
def test_rows_below_a_cti_name_their_files(on_spark, tmp_path, request):
    """Of the second micro-batch two files have late rows, a third has none."""
    (tmp_path / "data").mkdir()
    rows = {
        "a": ["0,3,web1,1", "30,33,web2,1"],
        "b": ["40,41,web1,1"],
        "c": ["100,101,web2,1"],
        "d": ["110,111,web1,1", "7,8,web1,1", "9,10,web2,0"],
        "e": ["111,112,web2,1", "112,113,web1,1"],
        "f": ["8,9,web2,1", "7,8,web1,1"],
    }
    for name, lines in rows.items():
        (tmp_path / "data" / f"{name}.csv").write_text("\n".join(["start,end,machine,load", *lines]))
    (tmp_path / "job.toml").write_text(LATE_JOB)
    made = read(tmp_path / "job.toml")
    sink = next(iter(made.sinks.values()))
    if on_spark:
        answer = SparkAnswer(made, sink, request.getfixturevalue("spark"), once=True, close=True)
        answer.running.await_termination()
        late = pl.read_parquet(tmp_path / "out/late/*.parquet")
    else:
        local = LocalAnswer(made, sink)
        list(local.steps())
        late = local.result.late()
    assert late["reason"].unique().to_list() == ["below_cti"]
    found = late.select("machine", pl.col("message").str.extract(r" \(in file (.*)\)$")).sort("machine", "message")
    data = tmp_path / "data"
    assert found.rows() == [("web1", f"{data}/d.csv"), ("web1", f"{data}/f.csv"), ("web2", f"{data}/f.csv")]


def rows_in_files(folder, **files):
    (folder / "data").mkdir()
    for name, lines in files.items():
        (folder / "data" / f"{name}.csv").write_text("\n".join(["start,end,machine,load", *lines]))


def answered(folder, job):
    (folder / "job.toml").write_text(job)
    made = read(folder / "job.toml")
    local = LocalAnswer(made, next(iter(made.sinks.values())))
    list(local.steps())
    return local.result.late()


@pytest.mark.parametrize("max_files", [1, 3])
def test_an_error_about_a_late_row_names_its_file(max_files, tmp_path):
    """One file at once, and several in one chunk."""
    rows_in_files(tmp_path, a=["0,3,web1,1", "100,103,web2,1"], b=["200,201,web1,1"], c=["300,301,web1,1"])
    for name, line in {"d": "310,311,web1,1", "e": "7,8,web1,1", "f": "311,312,web1,1"}.items():
        (tmp_path / "data" / f"{name}.csv").write_text(f"start,end,machine,load\n{line}")
    job = LATE_JOB.replace("max_files = 3", f"max_files = {max_files}").replace(
        "delay = 5", 'delay = 5\nlate = "raise"'
    )
    with pytest.raises(StreamError, match=rf"\(in file {tmp_path}/data/e\.csv\)"):
        answered(tmp_path, job)


def test_forgotten_rows_name_their_files(tmp_path):
    """They are below no CTI of the stream, but older than what a weak query remembers."""
    rows_in_files(tmp_path, a=["0,3,web1,1"], b=["500,501,web2,1"], c=["501,502,web2,1"], d=["502,503,web1,1"])
    (tmp_path / "data" / "e.csv").write_text("start,end,machine,load\n7,8,web2,1")
    job = LATE_JOB.replace("delay = 5", "delay = 1000").replace(
        "GROUP BY machine", "GROUP BY machine CONSISTENCY BLOCK 0 REMEMBER 20"
    )
    late = answered(tmp_path, job)
    assert late["reason"].to_list() == ["forgotten"]
    assert late["message"][0].endswith(f" (in file {tmp_path}/data/e.csv)")


@pytest.mark.parametrize(
    "query",
    [
        "EVENT W SELECT machine FROM readings TUMBLING 10",
        "EVENT A SELECT machine FROM readings; EVENT U SELECT machine FROM A UNION SELECT machine FROM readings",
    ],
)
def test_late_rows_of_windows_and_unions_name_their_files(query, tmp_path):
    """Two files in one chunk have late rows."""
    rows_in_files(tmp_path, a=["0,3,web1,1"], b=["500,501,web2,1"], c=["501,502,web2,1"], d=["502,503,web1,1"])
    for name, line in {"e": "7,8,web2,1", "f": "8,9,web1,1"}.items():
        (tmp_path / "data" / f"{name}.csv").write_text(f"start,end,machine,load\n{line}")
    text = next(line for line in LATE_JOB.splitlines() if line.startswith("text"))
    late = answered(tmp_path, LATE_JOB.replace(text, f'text = "{query}"'))
    files = late.select("machine", pl.col("message").str.extract(r" \(in file .*/(.)\.csv\)$"))
    assert files.unique().sort("machine").rows() == [("web1", "f"), ("web2", "e")]
