"""Event time from expressions, formats and units, in tables and in files."""

import json
import pickle
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import cedr
from cedr.api import source_of_keys
from cedr.cli import app
from cedr.job.job import read
from cedr.job.local import LocalAnswer
from cedr.job.rows import Rows, peek
from cedr.temporal.errors import CedrError, QueryError

START = datetime(2024, 1, 1, 5)
flights = pl.DataFrame(
    {
        "hour": [START, START, None],
        "minute": [3, 59, 1],
        "length": [10, 20, 30],
        "day": [date(2024, 1, 1)] * 3,
        "clock": [time(5, 3), time(5, 59), None],
        "us": ["01/01/2024 05:03", "01/01/2024 05:59", None],
        "v": [1, 2, 3],
    }
)
STARTS = [datetime(2024, 1, 1, 5, 3), datetime(2024, 1, 1, 5, 59)]


def starts(data: Any = flights, **times: Any) -> list[Any]:
    return source_of_keys("s", {"v": int}, **times).run(data).table()["vs"].to_list()


@pytest.mark.parametrize(
    "vs",
    [
        "hour + minute * 1 minute",
        '"hour" + 1 minute * "minute"',
        "day + clock",
        pl.col("hour") + pl.duration(minutes="minute"),
        pl.col("day").dt.combine(pl.col("clock")),
    ],
)
def test_a_start_made_of_columns(vs):
    assert starts(vs=vs) == STARTS


def test_all_times_may_be_expressions():
    source = cedr.source(
        "s",
        {"v": int},
        vs="hour + minute * 1 minute",
        ve="hour + (minute + length) * 1 minute",
        cti="hour - 1 hour",
        times=cedr.Times(ve_new="CASE WHEN v = 99 THEN hour END"),
    )
    table = source.run(flights).table()
    assert table["ve"].to_list() == [datetime(2024, 1, 1, 5, 13), datetime(2024, 1, 1, 6, 19)]
    lasting = cedr.source(
        "s", {"v": int}, vs="us", times=cedr.Times(format="%m/%d/%Y %H:%M"), duration="length * 1 minute"
    )
    assert lasting.run(flights).table()["ve"].to_list() == table["ve"].to_list()
    lasting = cedr.source("s", {"v": int}, vs="hour", duration=pl.duration(minutes=pl.col("length")))
    assert lasting.run(flights).table()["ve"].to_list() == [datetime(2024, 1, 1, 5, 10), datetime(2024, 1, 1, 5, 20)]


def test_a_column_of_this_name_comes_first():
    table = pl.DataFrame({"hour + minute": [7], "hour": [START], "minute": [1], "v": [1]})
    assert starts(table, vs="hour + minute") == [7]


@pytest.mark.parametrize(
    ("texts", "format", "found"),
    [
        (["12/31/2023 23:59", "31/12/2023 23:59"], "%m/%d/%Y %H:%M", [datetime(2023, 12, 31, 23, 59)]),
        (["31.12.2023", " 01.01.2024 ", "x", ""], "%d.%m.%Y", [datetime(2023, 12, 31), datetime(2024, 1, 1)]),
        (["2024-01-01T02:00:00+0200"], "%Y-%m-%dT%H:%M:%S%z", [datetime(2024, 1, 1, tzinfo=UTC)]),
    ],
)
def test_formats(texts, format, found):
    source = cedr.source("s", {"v": int}, vs="t", times=cedr.Times(format=format))
    result = source.run(pl.DataFrame({"t": texts, "v": range(len(texts))}))
    assert result.table()["vs"].to_list() == found
    assert result.late().height == len(texts) - len(found)
    assert all(f"which does not fit format='{format}'" in text for text in result.late()["message"])


def test_a_format_for_parts():
    table = pl.DataFrame({"d": ["31.12.2023"], "t": ["23:59"], "v": [1]})
    assert starts(table, vs="d || ' ' || t", format="%d.%m.%Y %H:%M") == [datetime(2023, 12, 31, 23, 59)]


@pytest.mark.parametrize(("unit", "number"), [("s", 1), ("ms", 1_000), ("us", 1_000_000), ("ns", 10**9)])
def test_units(unit, number):
    source = cedr.source("s", {"v": int}, vs="t", duration="d", times=cedr.Times(unit=unit))
    table = source.run(pl.DataFrame({"t": [number], "d": [2 * number], "v": [1]})).table()
    assert table.row(0) == (datetime.fromtimestamp(1, UTC), datetime.fromtimestamp(3, UTC), 1)
    fixed = cedr.source("s", {"v": int}, vs="t", duration=2 * number, times=cedr.Times(unit=unit))
    assert fixed.run(pl.DataFrame({"t": [number], "v": [1]})).table().rows() == table.rows()


def test_plain_numbers_count_the_unit():
    source = cedr.source("s", {"v": int}, vs="t", times=cedr.Times(unit="s"), delay=5).plan
    assert source.delay == 5_000_000
    assert cedr.source("s", {"v": int}, vs="t", times=cedr.Times(unit="s"), delay="5s").plan.delay == 5_000_000


def test_numbers_of_a_unit_outside_the_range_of_times():
    source = cedr.source("s", {"v": int}, vs="t", times=cedr.Times(unit="s"))
    result = source.run(pl.DataFrame({"t": [10**13, 5], "v": [1, 2]}))
    assert result.table()["v"].to_list() == [2]
    assert "vs is 10000000000000, which is outside the range of times" in result.late()["message"][0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vs": "t", "unit": "h"}, "unit='h' is not one of 's', 'ms', 'us', 'ns'"),
        ({"vs": "t", "unit": "s", "format": "%Y"}, "give unit='s' for whole numbers or format='%Y' for text"),
        ({"unit": "s"}, "unit='s' needs vs"),
        ({"vs": "t", "format": "%H:%M"}, "does not determine the day"),
        ({"vs": "t", "format": "YYYY-MM-DD"}, "names no part of a time"),
    ],
)
def test_mistakes_in_settings(settings, message):
    with pytest.raises(QueryError, match=message.replace("?", r"\?")):
        source_of_keys("s", {"v": int}, **settings)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ({"vs": "us"}, "vs='us' is text, such as '01/01/2024 05:03'; declare its format, for example format="),
        ({"vs": "hour + minuet * 1 minute"}, "no column 'minuet'; did you mean 'minute'?"),
        ({"vs": "hour + minute"}, "+ cannot combine them"),
        ({"vs": "hour +* minute"}, "no column 'hour +* minute'"),
        ({"vs": pl.col("hour") + pl.col("x")}, "no column 'x'"),
        ({"vs": pl.col("hour").max()}, "uses several rows"),
        ({"vs": "minute * 1.5"}, "is of type Float64"),
        ({"vs": "hour", "duration": "us"}, "duration='us' is text"),
    ],
)
def test_mistakes_in_times(times, message):
    with pytest.raises(CedrError) as caught:
        starts(**times)
    assert message in str(caught.value)


# --- zones -----------------------------------------------------------------------------------------------------------


def test_the_first_table_determines_the_type_of_times():
    source = cedr.source("s", {"v": int}, vs="hour")
    plain, zoned = flights, flights.with_columns(pl.col("hour").dt.replace_time_zone("Europe/Berlin"))
    for first, second in ((plain, zoned), (zoned, plain), (plain, flights.with_columns(hour=pl.lit(5)))):
        with pytest.raises(QueryError, match=r"source 's': times were .* before, and this table has"):
            source.run(iter([first, second]))
    elsewhere = zoned.with_columns(pl.col("hour").dt.convert_time_zone("Asia/Tokyo"))
    table = source.run(iter([zoned, elsewhere])).table()
    assert table.schema["vs"] == pl.Datetime("us", "Europe/Berlin")
    assert table["vs"].n_unique() == 1


# --- files and jobs --------------------------------------------------------------------------------------------------

JOB = """
[query]
text = "EVENT E SELECT v FROM s"
[sources.s]
files = "data/*"
columns = {{ {columns} }}
{times}
"""


def job(folder: Path, times: str, columns: str = 'v = "int"', **files: str) -> LocalAnswer:
    (folder / "data").mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / "data" / name.replace("_", ".")).write_text(content)
    (folder / "job.toml").write_text(JOB.format(columns=columns, times=times))
    made = read(folder / "job.toml")
    for source in made.sources.values():
        peek(source)
    (sink,) = made.sinks.values()
    answer = LocalAnswer(made, sink)
    list(answer.steps())
    return answer


def found(answer: LocalAnswer) -> list[tuple[Any, ...]]:
    assert answer.result is not None
    return answer.result.table().select("vs", "v").rows()


def late(answer: LocalAnswer) -> list[str]:
    assert answer.result is not None
    return answer.result.late()["message"].to_list()


MORNING = [(datetime(2024, 1, 1, 5, 3), 1), (datetime(2024, 1, 1, 5, 59), 2)]


def test_an_expression_in_a_job(tmp_path):
    columns = 'v = "int", hour = "timestamp", minute = "int"'
    content = "hour,minute,v\n2024-01-01T05:00,3,1\n2024-01-01T05:00,59,2\n"
    assert found(job(tmp_path, 'vs = "hour + minute * 1 minute"', columns, a_csv=content)) == MORNING


def test_parts_need_types_in_text_files(tmp_path):
    content = "hour,minute,v\n2024-01-01T05:00,3,1\n"
    with pytest.raises(
        CedrError, match="column 'hour' is a part of vs='hour \\+ minute \\* 1 minute'; declare its type"
    ):
        job(tmp_path, 'vs = "hour + minute * 1 minute"', a_csv=content)


def test_parts_of_parquet_files_have_types(tmp_path):
    (tmp_path / "data").mkdir()
    flights.drop_nulls().write_parquet(tmp_path / "data/a.parquet")
    assert found(job(tmp_path, 'vs = "hour + minute * 1 minute"')) == MORNING
    assert found(job(tmp_path, 'vs = "us"\nformat = "%m/%d/%Y %H:%M"')) == MORNING
    assert found(job(tmp_path, 'vs = "us"\nformat = "parquet"\ntime_format = "%m/%d/%Y %H:%M"')) == MORNING


FORMATTED = 'vs = "t"\nformat = "%d.%m.%Y %H:%M"'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a_csv", "t,v\n01.01.2024 05:03,1\n2024-01-01 05:04,7\n01.01.2024 05:59,2\n"),
        (
            "a_json",
            '{"t": "01.01.2024 05:03", "v": 1}\n{"t": "2024-01-01 05:04", "v": 7}\n{"t": "01.01.2024 05:59", "v": 2}\n',
        ),
    ],
)
def test_a_format_in_a_job(tmp_path, name, content):
    line = 3 if name == "a_csv" else 2
    answer = job(tmp_path, f'{FORMATTED}\non_bad = "late"', **{name: content})
    assert found(answer) == MORNING
    assert len(late(answer)) == 1
    where = (
        f"{tmp_path}/data/{name.replace('_', '.')}, line {line}: vs is '2024-01-01 05:04', which does not fit format="
    )
    assert where in late(answer)[0]
    with pytest.raises(CedrError, match=f"line {line}: vs is '2024-01-01 05:04'"):
        job(tmp_path, FORMATTED, **{name: content})


def test_two_columns_and_a_format_in_a_job(tmp_path):
    times = """vs = "d || ' ' || t"\nformat = "%d.%m.%Y %H:%M\""""
    assert found(job(tmp_path, times, a_csv="d,t,v\n01.01.2024,05:03,1\n01.01.2024,05:59,2\n")) == MORNING


def test_a_unit_in_a_job(tmp_path):
    answer = job(tmp_path, 'vs = "t"\nunit = "ms"', a_csv="t,v\n1000,1\n2000,2\n")
    assert found(answer) == [(datetime.fromtimestamp(1, UTC), 1), (datetime.fromtimestamp(2, UTC), 2)]


@pytest.mark.parametrize("name", ["a_csv", "a_json"])
def test_text_without_a_format_is_an_error_with_a_remedy(tmp_path, name):
    content = "t,v\n01/02/2024 05:03,1\n" if name == "a_csv" else '{"t": "01/02/2024 05:03", "v": 1}\n'
    with pytest.raises(CedrError, match="format = "):
        job(tmp_path, 'vs = "t"', **{name: content})
    with pytest.raises(CedrError, match="declare its format, for example format="):
        job(tmp_path, 'vs = "t"', 'v = "int", t = "str"', **{name: content})


def test_a_column_with_a_name_like_an_expression_in_files(tmp_path):
    assert found(job(tmp_path, 'vs = "start-time"', a_csv="start-time,v\n2024-01-01T05:03,1\n")) == MORNING[:1]
    (tmp_path / "data/a.csv").unlink()
    pl.DataFrame({"start-time": [START], "v": [1]}).write_parquet(tmp_path / "data/a.parquet")
    assert found(job(tmp_path, 'vs = "start-time"')) == [(START, 1)]
    (tmp_path / "data/a.parquet").unlink()
    content = '{"start-time": "2024-01-01T05:03", "v": 1}\n'
    assert found(job(tmp_path, """vs = '"start-time"'""", a_json=content)) == MORNING[:1]


ZONED, NAIVE = "2024-01-01T05:03Z", "2024-01-01T05:03"
OFFSETS = [("timestamp", ZONED, "expected no zone offset"), ("timestamp UTC", NAIVE, "expected a zone offset")]
CLOCKED = {"timestamp": NAIVE, "timestamp UTC": ZONED}


@pytest.mark.parametrize("name", ["a_csv", "a_json"])
@pytest.mark.parametrize("column", ["t", "e", "p"])
@pytest.mark.parametrize(("clock", "wrong", "message"), OFFSETS)
def test_a_time_with_an_offset_is_not_one_without(tmp_path, name, column, clock, wrong, message):
    """For the start, the end and a column of the payload."""
    right = {"t": CLOCKED[clock], "e": CLOCKED[clock].replace("05", "06", 1), "p": CLOCKED[clock]}
    rows = [{**right, "v": 1}, {**right, column: wrong, "v": 2}, {**right, "v": 3}]
    lines = [",".join(map(str, row.values())) for row in rows]
    content = "\n".join(["t,e,p,v", *lines] if name == "a_csv" else map(json.dumps, rows)) + "\n"
    columns = f'v = "int", p = "{clock}"'
    answer = job(tmp_path, 'vs = "t"\nve = "e"\non_bad = "late"', columns, **{name: content})
    assert [v for _, v in found(answer)] == [1, 3]
    assert len(late(answer)) == 1
    assert f"line {3 if name == 'a_csv' else 2}: column {column!r} should be timestamp[us" in late(answer)[0]
    assert f"{message} in '{wrong}'" in late(answer)[0]
    assert "assume_timezone" not in late(answer)[0]
    with pytest.raises(CedrError, match=f"{message} in '{wrong}'"):
        job(tmp_path, 'vs = "t"\nve = "e"', columns, **{name: content})


def test_offsets_inside_lists_and_structs_of_json(tmp_path):
    (tmp_path / "a.json").write_text('{"t": 1, "p": ["2024-01-01"], "q": {"at": "2024-01-01"}}\n')
    (tmp_path / "b.json").write_text('{"t": 2, "p": ["2024-01-01"], "q": {"at": "2024-01-01T00:00+01:00"}}\n')
    (tmp_path / "c.json").write_text('{"t": 3, "p": ["2024-01-01", "2024-01-01T00:00Z"], "q": null}\n')
    schema = {"p": pl.List(pl.Datetime), "q": pl.Struct({"at": pl.Datetime})}
    source, settings = cedr.source("s", schema, vs="t").plan, cedr.files(tmp_path, "json", on_bad="late")
    rows = Rows(source, settings)
    assert [row for frame in rows.batches() for row in frame.select("p", "q").rows()] == [
        ([datetime(2024, 1, 1)], {"at": datetime(2024, 1, 1)})
    ]
    messages = [table["message"][0] for table in rows.late]
    assert "column 'q' should be struct<at: timestamp[us]>, but: expected no zone offset in '2024-01" in messages[0]
    assert "column 'p' should be list<item: timestamp[us]>, but: expected no zone offset in '2024-01" in messages[1]


def test_the_first_file_determines_the_type_of_times(tmp_path):
    content = {"a_csv": "t,v\n2024-01-01T05:03,1\n", "b_csv": "t,v\n2024-01-01T05:03Z,7\n"}
    answer = job(tmp_path, 'vs = "t"\nmax_files = 1\non_bad = "late"', **content)
    assert found(answer) == MORNING[:1]
    assert f"{tmp_path}/data/b.csv, line 2: column 't' should be timestamp" in late(answer)[0]
    with pytest.raises(CedrError, match=r"b\.csv', line 2: column 't' should be timestamp"):
        job(tmp_path, 'vs = "t"\nmax_files = 1', **content)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ('vs = "t"\nunit = "hours"', 'sources.s.unit: "hours" is not one of s, ms, us or ns'),
        ('vs = "t"\nformat = "%Q"', "sources.s.format: "),
        ('vs = "t"\nformat = "%Y-%m-%d"\ntime_format = "%Y-%m-%d"', "sources.s.time_format: "),
        ('vs = "hour + 5 apples"', "no column 'hour + 5 apples'"),
        ('vs = "v || v"', "|| joins texts"),
    ],
)
def test_mistakes_in_a_job(tmp_path, times, message):
    with pytest.raises(CedrError) as caught:
        job(tmp_path, times, a_csv="hour,v\n2024-01-01T05:00,1\n")
    assert message in str(caught.value)


# --- lengths with a unit ---------------------------------------------------------------------------------------------

NUMBERS = pl.DataFrame({"t": [1, 2, 5], "v": [1, 2, 3]})
PATTERN = "EVENT P WHEN UNLESS(s x, s y, {}) OUTPUT x.v"


INSIDE_EXPRESSIONS = [
    "EVENT P WHEN SEQUENCE(s x, s y, 5) WHERE x.Vs + 5 minutes > y.Vs OUTPUT x.v",
    "EVENT P WHEN SEQUENCE(s x, s y, 5) WHERE y.Vs - x.Vs BETWEEN 0 AND 5 minutes OUTPUT x.v AS a, y.v AS b",
    "EVENT P WHEN SEQUENCE(s x, s y, 5) OUTPUT x.Vs + 5 minutes AS later",
    "EVENT P WHEN SEQUENCE(s x, s y, 5) OUTPUT MAX(Vs - 5 minutes) AS earlier",
    "EVENT P WHEN s x WHERE x.v IN (1, 5 minutes) OUTPUT x.v",
    "EVENT P SELECT GREATEST(v, 5 minutes) AS w FROM s",
    "EVENT P SELECT CASE WHEN v < 5 minutes THEN 1 ELSE 0 END AS w FROM s",
    "EVENT P SELECT SUM(v / 5 minutes) AS w FROM s GROUP BY v HAVING SUM(v) < 5 minutes",
    "EVENT P SELECT a.v FROM s AS a JOIN s AS b ON a.v = b.v AND a.v + 5 minutes > b.v",
    "EVENT P WHEN REGEX(A+ B, 9) OVER s REGISTER r = 0 DEFINE A AS v - r < 5 minutes SET r = v DEFINE B AS v > r",
    "EVENT A SELECT v FROM s WHERE v < 5 minutes; EVENT B SELECT v FROM A SLIDING 5",
]


def plain(**settings: Any) -> cedr.Stream:
    return source_of_keys("s", {"v": int}, vs="t", **settings)


@pytest.mark.parametrize(
    "query",
    [
        lambda **unit: plain(**unit).sliding("5 minutes"),
        lambda **unit: plain(**unit).tumbling(timedelta(minutes=5)).group_by("v").agg(n=cedr.count()),
        lambda **unit: plain(**unit).session("5 minutes", "v"),
        lambda **unit: plain(delay="5 minutes", **unit),
        lambda **unit: plain(duration="5 minutes", **unit),
        lambda **unit: plain(**unit).with_consistency(block="5 minutes"),
        lambda **unit: plain(**unit).with_consistency(cedr.Consistency(block=0, remember="5 minutes")),
        lambda **unit: plain(**unit).sliding(5).join(plain(**unit).shift("5 minutes"), on="v"),
        lambda **unit: cedr.query(PATTERN.format("5 minutes"), plain(**unit)),
        lambda **unit: cedr.query(PATTERN.format("5") + " CONSISTENCY BLOCK 5 minutes", plain(**unit)),
        lambda **unit: cedr.query("EVENT P SELECT v FROM s SLIDING 5 minutes", plain(**unit)),
        *(lambda text=text, **unit: cedr.query(text, plain(**unit)) for text in INSIDE_EXPRESSIONS),
    ],
)
def test_a_length_with_a_unit_needs_times_with_one(query):
    with pytest.raises(QueryError, match=r"vs='t'\) are whole numbers without a unit, but the query has the length"):
        query().run(NUMBERS)
    query(unit="s").run(NUMBERS)
    query().run(NUMBERS.with_columns(pl.col("t").cast(pl.Datetime("us"))))
    query().run([cedr.Insert(1, 2, cedr.Row(v=1))])  # elements are in microseconds


def test_plain_lengths_go_with_plain_numbers():
    assert cedr.query(PATTERN.format("3"), plain()).run(NUMBERS).table()["v"].to_list() == [2, 3]
    assert plain(idle="1s", partition="v", delay=1).run(NUMBERS).table().height == 3


def test_the_unit_makes_the_length_right():
    seconds = plain(unit="s").sliding("3 seconds").group_by().agg(n=cedr.count()).run(NUMBERS).table()
    chronons = plain().sliding(3).group_by().agg(n=cedr.count()).run(NUMBERS).table()
    assert seconds["n"].to_list() == chronons["n"].to_list()
    assert seconds["vs"].dt.epoch("s").to_list() == chronons["vs"].to_list()


def test_lengths_are_whole_numbers_that_know_their_text():
    length = cedr.source("s", {"v": int}, vs="t", delay="5 minutes").plan.delay
    assert length == 300_000_000
    assert length.text == "5 minutes"
    assert pickle.loads(pickle.dumps(length)).text == "5 minutes"


def test_a_length_added_to_a_timestamp_of_the_payload_needs_no_unit():
    """It is a number only next to whole numbers."""
    source = cedr.source("s", {"at": datetime, "v": int}, vs="t")
    query = cedr.query("EVENT P WHEN ANY(s x) WHERE x.at + 5 minutes > x.at OUTPUT x.at + 5 minutes AS later", source)
    table = query.run(pl.DataFrame({"t": [1], "v": [1], "at": [START]})).table()
    assert table["later"].to_list() == [START + timedelta(minutes=5)]


@pytest.mark.parametrize("unit", [None, "s", "us"])
def test_a_length_next_to_whole_numbers_in_an_expression_of_event_time(unit):
    """The expression is computed before the unit counts."""
    query = cedr.source("s", {"v": int}, vs="t + 5 minutes", times=cedr.Times(unit=unit))
    if unit == "us":
        assert query.run(NUMBERS).table()["vs"].dt.epoch("us").to_list() == [300_000_001, 300_000_002, 300_000_005]
        return
    with pytest.raises(QueryError, match="vs='t \\+ 5 minutes' adds the length '5 minutes' to whole numbers"):
        query.run(NUMBERS)


@pytest.mark.parametrize("clause", ["SLIDING 5 minutes", "WHERE v + 5 minutes > 0"])
def test_check_finds_lengths_without_a_unit(tmp_path, clause):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.csv").write_text("t,v\n1,1\n")
    text = JOB.format(columns='v = "int"', times='vs = "t"').replace("FROM s", f"FROM s {clause}")
    (tmp_path / "job.toml").write_text(text)
    found = CliRunner().invoke(app, ["check", str(tmp_path / "job.toml")])
    assert isinstance(found.exception, CedrError)
    assert "sources.s.vs: its times (vs='t') are whole numbers without a unit" in str(found.exception)
    (tmp_path / "job.toml").write_text(text.replace('vs = "t"', 'vs = "t"\nunit = "ms"'))
    assert CliRunner().invoke(app, ["check", str(tmp_path / "job.toml")]).exit_code == 0
