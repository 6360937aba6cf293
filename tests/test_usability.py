"""What a user meets first: names, texts, warnings, and rows of an answer that can be asked about."""

import subprocess
import sys
import warnings
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import polars as pl
import pytest

import cedr
from cedr.plan.aggregates import BY_NAME
from cedr.recording.changelog import read_changelog
from cedr.recording.difference import difference
from cedr.sources.late_rows import with_user_times

BERLIN = ZoneInfo("Europe/Berlin")

# --- why -----------------------------------------------------------------------------------------------------------

VALUES = {
    "bool": (pl.Boolean, True),
    "int8": (pl.Int8, -3),
    "uint64": (pl.UInt64, 2**63 + 5),
    "float": (pl.Float64, 0.1),
    "float32": (pl.Float32, 0.1),
    "nan": (pl.Float64, float("nan")),
    "text": (pl.String, "2024-01-01"),
    "bytes": (pl.Binary, b"\x00x"),
    "decimal": (pl.Decimal(20, 3), Decimal("1.500")),
    "date": (pl.Date, date(2024, 3, 31)),
    "time": (pl.Time, time(1, 2, 3, 4)),
    "timestamp": (pl.Datetime("us"), datetime(2024, 3, 31, 2, 30)),
    "timestamp ms": (pl.Datetime("ms"), datetime(2024, 3, 31, 2, 30)),
    "zoned": (pl.Datetime("us", "Europe/Berlin"), datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=BERLIN)),
    "utc": (pl.Datetime("us", "UTC"), datetime(2024, 10, 27, 2, 30, tzinfo=UTC)),
    "length": (pl.Duration("us"), timedelta(hours=1)),
    "enum": (pl.Enum(["a", "b"]), "b"),
    "missing": (pl.Int64, None),
}


@pytest.mark.parametrize(("kind", "value"), VALUES.values(), ids=VALUES.keys())
@pytest.mark.parametrize("times", ["numbers", "timestamps", "zoned"])
def test_a_row_of_the_answer_can_be_asked_about(kind, value, times):
    start = datetime(2024, 10, 27, 0, 30, tzinfo=UTC)
    starts = {
        "numbers": pl.Series([5, 6, 7]),
        "timestamps": pl.Series([datetime(2024, 10, 27, 1, 30)] * 3),
        "zoned": pl.Series([start, start + timedelta(hours=1), start]).dt.convert_time_zone("Europe/Berlin"),
    }[times]
    source = cedr.source("e", {"v": kind, "n": int}, vs="ts", kind="E")
    rows = pl.DataFrame({"ts": starts, "v": pl.Series([value, None, value], dtype=kind), "n": [1, 2, 3]})
    query = cedr.query("EVENT P WHEN ANY(E x) OUTPUT x.v, x.n", source)
    table = query.run(rows).table()
    for row in table.iter_rows(named=True):
        found = query.why(rows, row)
        assert found.matches == 1
        assert found.contributors["n"].to_list() == [row["n"]]


def test_so_can_a_row_with_lists_and_columns_named_as_times():
    source = cedr.source("e", {"vs": int, "l": pl.List(pl.Int64), "s": pl.Struct({"a": pl.Int64})}, vs="ts", kind="E")
    rows = pl.DataFrame({"ts": [1, 2], "vs": [7, 8], "l": [[1, 2], None], "s": [{"a": 1}, {"a": None}]})
    query = cedr.query("EVENT P WHEN ANY(E x) OUTPUT x.vs, x.l, x.s", source)
    for row in query.run(rows).table().iter_rows(named=True):
        assert query.why(rows, row).matches == 1


def test_what_fits_nothing_is_refused_with_the_times_of_the_user():
    source = cedr.source("e", {"n": int}, vs="ts", kind="E")
    rows = pl.DataFrame({"ts": [datetime(2024, 1, 1, tzinfo=UTC)], "n": [1]})
    query = cedr.query("EVENT P WHEN ANY(E x) OUTPUT x.n", source)
    row = query.run(rows).table().row(0, named=True)
    with pytest.raises(cedr.CedrError, match=r"has vs=2024-01-02 00:00:00\+00:00"):
        query.why(rows, row, vs=datetime(2024, 1, 2, tzinfo=UTC))


# --- names and texts -----------------------------------------------------------------------------------------------


def test_dir_lists_the_api():
    assert set(cedr.__all__) <= set(dir(cedr))
    assert all(hasattr(cedr, name) for name in cedr.__all__)
    assert set(BY_NAME) <= set(cedr.__all__)
    code = "import cedr, sys; assert 'source' in dir(cedr); assert 'polars' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_findings_are_a_text():
    a, b = (cedr.source(name, {"k": int}, vs="vs", ve="ve", delay=1) for name in "ab")
    found = a.join(b, on="k").findings()
    assert str(found) == repr(found)
    assert str(found).splitlines()[0] == "Join inner on k: emits at once; state is unbounded"
    assert len(str(found)) < 600
    assert "&#x27;" in found._repr_html_()
    assert found._repr_html_().startswith("<pre>Join")
    assert repr(found[0]).startswith("Join inner on k: emits at once")
    assert str(a.where("k > 1").findings()) == "nothing waits and nothing is kept"


# --- late rows -----------------------------------------------------------------------------------------------------


def late_rows(times, delay="1s"):
    source = cedr.source("e", {"note": str}, vs="ts", delay=delay)
    notes = ["[1, 2) before 5", "b", "c"]
    return source.group_by("note").agg(n=cedr.count()), pl.DataFrame({"ts": times, "note": notes})


def test_late_messages_have_the_times_of_the_user():
    noon = datetime(2024, 7, 1, 12, tzinfo=UTC)
    times = [noon, noon + timedelta(minutes=1), noon]
    query, rows = late_rows(pl.Series(times).dt.convert_time_zone("Europe/Berlin"))
    (message,) = query.run(rows, chunk_size=1).late()["message"]
    assert message == (
        "element 4, insert note=c [2024-07-01 14:00:00+02:00, 2024-07-01 14:00:00.000001+02:00): its sync time "
        "2024-07-01 14:00:00+02:00 lies before 2024-07-01 14:00:59+02:00, but cti 2024-07-01 14:00:59+02:00 promised "
        "that nothing before it would come"
    )
    query, rows = late_rows([0, 60_000_000, 0], delay=1_000_000)
    assert (
        "its sync time 0 lies before 59000000, but cti 59000000" in query.run(rows, chunk_size=1).late()["message"][0]
    )


def test_so_have_errors():
    noon = datetime(2024, 7, 1, 12)
    rows = pl.DataFrame({"ts": [noon, noon + timedelta(minutes=1), noon], "k": 1})
    strict = cedr.source("e", {"k": int}, vs="ts", delay="1s", late="raise").group_by("k").agg(n=cedr.count())
    with pytest.raises(cedr.CedrError, match="its sync time 2024-07-01 12:00:00 lies before 2024-07-01 12:00:59, but"):
        strict.run(rows, chunk_size=1)
    with pytest.raises(cedr.CedrError, match="declared ordered, but an earlier row has 2024-07-01 12:01:00"):
        cedr.source("e", {"k": int}, vs="ts", progress=cedr.Progress(ordered=True)).run(rows)


def test_lengths_and_ends_in_messages():
    messages = pl.Series(
        [
            "element 1, adjust k=3 [0, ∞) to 1000000: there is no tuple k=3 [0, 5) to adjust",
            "element 2, insert k=[1, 2] [0, 1): it starts more than 3600000000 after 60000000, when it arrived",
            "element 3, insert  [0, 1): its sync time 0 lies before 5; what is more than 5000000 before the highest",
            "file a.csv, line 7: bad",
        ]
    )
    assert with_user_times(messages, pl.Datetime("us")).to_list() == [
        "element 1, adjust k=3 [1970-01-01 00:00:00, ∞) to 1970-01-01 00:00:01: there is no tuple k=3 "
        "[1970-01-01 00:00:00, 1970-01-01 00:00:00.000005) to adjust",
        "element 2, insert k=[1, 2] [1970-01-01 00:00:00, 1970-01-01 00:00:00.000001): it starts more than 1h "
        "after 1970-01-01 00:01:00, when it arrived",
        "element 3, insert  [1970-01-01 00:00:00, 1970-01-01 00:00:00.000001): its sync time "
        "1970-01-01 00:00:00 lies before 1970-01-01 00:00:00.000005; what is more than 5s before the highest",
        "file a.csv, line 7: bad",
    ]
    assert with_user_times(messages[3:], pl.Datetime("us")).to_list() == ["file a.csv, line 7: bad"]


def test_a_run_warns_once_of_late_rows():
    query, rows = late_rows([0, 60_000_000, 0], delay=1_000_000)
    with pytest.warns(cedr.LateWarning) as caught:
        result = query.run(rows, chunk_size=1)
    (warning,) = caught
    assert str(warning.message) == (
        "1 row arrived behind the watermark and is not part of the result; late() returns it with the reasons, and "
        'late="raise" in cedr.source raises an error instead'
    )
    assert warning.filename == __file__
    assert result.late().height == 1
    with pytest.warns(cedr.LateWarning, match="1 row arrived behind the watermark") as caught:
        assert len(list(query.updates(rows, chunk_size=1))) > 1
    assert len(caught) == 1


def test_a_run_without_late_rows_warns_of_nothing():
    query, rows = late_rows([0, 1, 2], delay=1_000_000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        query.run(rows)
        list(query.updates(rows))


# --- diff ----------------------------------------------------------------------------------------------------------


def test_tables_can_be_compared_with_tables_and_changelogs(tmp_path):
    start = pl.Series([datetime(2024, 1, 1, tzinfo=UTC)] * 3)
    table = pl.DataFrame({"vs": start, "ve": [None, start[0] + timedelta(1), None], "shard": [1, 2, 1], "told": "x"})
    table.reverse().write_parquet(tmp_path / "a.parquet")
    table.write_parquet(tmp_path / "b.parquet")
    one, two = read_changelog(tmp_path / "a.parquet"), read_changelog(tmp_path / "b.parquet")
    assert not difference(one, two)
    table[:2].write_parquet(tmp_path / "c.parquet")
    assert difference(one, read_changelog(tmp_path / "c.parquet"))
