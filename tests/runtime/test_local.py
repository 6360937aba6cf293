"""The local runtime: tables and elements in, tables and elements out."""

from datetime import UTC, date, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan.catalogue import QUERIES, SCHEMA, a, b, few, payloads

import cedr
from cedr import api, testing
from cedr.temporal import END, INF, Adjust, Cti, ExternalCti, History, Insert, QueryError, Row, StreamError, canonical
from cedr.temporal.errors import CedrError
from cedr.temporal.stream import timed

START = datetime(2024, 1, 1, 12)
feed = api.source("machines", {"machine": str, "load": float}, vs="ts")
readings = pl.DataFrame(
    {
        "ts": [START, START + timedelta(seconds=30), START + timedelta(seconds=10)],
        "machine": ["a", "a", "b"],
        "load": [1.0, 2.0, 3.0],
        "ignored": [7, 8, 9],
    }
)
busy = feed.sliding("60s").group_by("machine").agg(load=cedr.avg("load"), n=cedr.count())


def at(seconds):
    return START + timedelta(seconds=seconds)


# --- what goes in ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "give",
    [
        lambda frame: frame,
        lambda frame: frame.lazy(),
        lambda frame: frame.to_arrow(),
        lambda frame: frame.to_pandas(),
        lambda frame: frame.to_dicts(),
        lambda frame: {"machines": frame},
        lambda frame: iter([frame[:1], frame[1:]]),
        lambda frame: frame.with_columns(pl.col("ts").dt.cast_time_unit("ns")),
        lambda frame: frame.with_columns(pl.col("ts").dt.cast_time_unit("ms")),
    ],
)
def test_any_table_will_do(give):
    """a   [12:00:00 ------- 12:01:00)
    a            [12:00:30 ------- 12:01:30)
    b      [12:00:10 ------- 12:01:10)
    """
    assert busy.run(give(readings)).table().rows() == [
        (at(0), at(30), "a", 1.0, 1),
        (at(10), at(70), "b", 3.0, 1),
        (at(30), at(60), "a", 1.5, 2),
        (at(60), at(90), "a", 2.0, 1),
    ]


def test_times_keep_their_type():
    zoned = readings.with_columns(pl.col("ts").dt.replace_time_zone("Europe/Berlin"))
    assert busy.run(zoned).table().schema["vs"] == pl.Datetime("us", "Europe/Berlin")
    assert busy.run(readings.with_columns(pl.col("ts").dt.date())).table()["vs"][0] == datetime(2024, 1, 1)
    numbers = readings.with_columns(ts=pl.int_range(3))
    assert feed.run(numbers).table().schema["vs"] == pl.Int64
    assert date(2024, 1, 1) < datetime(2024, 1, 2, tzinfo=UTC).date()


def test_ends_durations_and_corrections():
    source = api.source("s", {"v": int}, vs="s", ve="e", times=cedr.Times(ve_new="n"), cti="c")
    table = pl.DataFrame(
        {
            "s": [1, 2, None, 1, 2],
            "e": [5, None, None, 5, None],
            "n": [None, None, None, 3, 2],
            "c": [None, None, 2, None, 9],
            "v": [10, 20, None, 10, 20],
        }
    )
    result = source.run(table, chunk_size=1, close=False)
    assert result.elements() == [
        Insert(1, 5, Row(v=10)),
        Insert(2, INF, Row(v=20)),
        Cti(2),
        Adjust(1, 5, 3, Row(v=10)),
        Adjust(2, INF, 2, Row(v=20)),
        Cti(9),
    ]  # fmt: skip
    assert result.changelog().rows() == [
        ("insert", 1, 5, None, 10),
        ("insert", 2, None, None, 20),
        ("adjust", 1, 5, 3, 10),
        ("remove", 2, None, 2, 20),
    ]
    assert result.table().rows() == [(1, 3, 10)]


@pytest.mark.parametrize(("duration", "end"), [(None, 2), (5, 6), ("d", 8), ("inf", None)])
def test_lengths(duration, end):
    source = api.source("s", {}, vs="s", duration=duration)
    assert source.run(pl.DataFrame({"s": [1], "d": [7]})).table()["ve"].to_list() == [end]


def test_several_sources():
    query = a(vs="t").sliding(5).join(b(vs="t").sliding(5), on="m")
    one, two = pl.DataFrame({"t": [1], "m": [1], "v": [1]}), pl.DataFrame({"t": [3], "m": [1], "v": [2]})
    assert query.run({"a": one, "b": two}).table().rows() == [(3, 6, 1, 1, 2)]
    assert query.run({"a": one}).table().rows() == []
    with pytest.raises(
        QueryError, match=r'the query reads 2 sources; give the data of each: run\({"a": ..., "b": ...}'
    ):
        query.run(one)
    with pytest.raises(QueryError, match="the query has no source 'c'; its sources are 'a', 'b'"):
        query.run({"c": one})
    with pytest.raises(QueryError, match="the sources use different time types"):
        query.run({"a": one, "b": two.with_columns(t=pl.lit(START))})


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: feed.run(readings.drop("load")), "table for source 'machines': no column 'load'"),
        (lambda: feed.run(readings.rename({"ts": "time"})), "no column 'ts'"),
        (lambda: feed.run(readings.with_columns(pl.col("ts").cast(str))), "parse it first"),
        (lambda: feed.run(readings.with_columns(ts=1.5)), "time column 'ts' is of type Float64; cast it"),
        (lambda: feed.run(readings.with_columns(load=pl.lit("x"))), "conversion from `str` to `f64` failed"),
        (lambda: feed.run(5), "cannot read a int"),
        (lambda: feed.run(readings, chunk_size=0), "a chunk has at least one row"),
        (lambda: a().run(readings), "source 'a' has no time column"),
        (lambda: a().run([Insert(1, 2, "x")]), "source 'a' requires rows"),
        (lambda: a().run([Insert(1, 2, Row(m=1))]), "no column 'v'"),
        (lambda: a(insert_only=True).run([Insert(1, 2, Row(m=1, v=1)), Adjust(1, 2, 3, Row(m=1, v=1))]), "insert_only"),
        (lambda: a(ordered=True).run([Insert(3, 4, Row(m=1, v=1)), Insert(1, 2, Row(m=1, v=1))]), "declared ordered"),
    ],
)
def test_mistakes_name_the_source(run, message):
    with pytest.raises(CedrError) as caught:
        run()
    assert message in str(caught.value)


# --- what comes out --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", QUERIES)
@few
@given(data=st.data())
def test_forms_of_a_result_agree(name, data):
    query = QUERIES[name]
    options = {"infinite": query.infinite, "adjusts": query.infinite}
    streams = [data.draw(testing.streams(payloads, max_size=5, **options)) for _ in range(query.ports)]
    result = query.stream().run(dict(zip("ab", streams, strict=False)), chunk_size=data.draw(st.integers(1, 9)))
    expected = query.oracle(*map(canonical, streams))
    testing.assert_same(result.history(), expected)
    testing.assert_same(canonical(result.elements()), expected)
    names = list(result.schema)
    rows = result.table().with_columns(pl.col("ve").fill_null(INF)).rows()
    assert History((vs, ve, Row(dict(zip(names, row, strict=True)))) for vs, ve, *row in rows) == expected
    assert result.to_arrow().num_rows == len(result.to_pandas()) == len(expected)
    assert result.changelog().height == sum(map(len, result.chunks))


@given(testing.streams(payloads, closed=True), st.integers(1, 4))
def test_updates_add_up_to_the_run(stream, chunk_size):
    query = QUERIES["aggregate"].stream()
    whole = query.run(stream, chunk_size=chunk_size)
    updates = list(query.updates(stream, chunk_size=chunk_size))
    assert [e for update in updates for e in update.elements()] == whole.elements()
    assert updates[-1].history() == whole.history()
    so_far = []
    for update in updates:
        so_far += update.elements()
        assert update.history() == canonical(so_far)


def test_updates_take_a_stream_that_never_ends():
    def forever():
        t = 0
        while True:
            yield pl.DataFrame({"ts": [t], "machine": ["a"], "load": [1.0]})
            t += 1

    updates = feed.updates(forever())
    assert [next(updates).table().height for _ in range(5)] == [1, 2, 3, 4, 5]


def test_names_the_payload_has_get_an_underscore():
    source = api.source("s", {"vs": int, "change": str}, vs="vs")
    result = source.run(pl.DataFrame({"vs": [3], "change": ["x"]}))
    assert result.table().columns == ["_vs", "ve", "vs", "change"]
    assert result.changelog().columns == ["_change", "_vs", "ve", "ve_new", "vs", "change"]


def test_copies_and_missing_values_are_counted():
    row = Row(m=None, v=1)
    assert a().run([Insert(1, 5, row), Insert(1, 5, row)]).table().rows() == [(1, 5, None, 1)] * 2


def test_metrics():
    stream = [Insert(1, 5, Row(m=1, v=1)), Cti(3), Insert(4, 9, Row(m=1, v=1)), Adjust(1, 5, 8, Row(m=1, v=1))]
    metrics = (
        a().group_by("m").agg(n=cedr.count()).with_latency("eager").run(stream, chunk_size=1, close=False).metrics()
    )
    assert metrics["operator"].to_list() == ["Project", "Finalize", "Aggregate"]
    aggregate = metrics.row(-1, named=True)
    assert (aggregate["rows_in"], aggregate["adjusts_in"], aggregate["cti_in"], aggregate["lag"]) == (3, 1, 3, 1)
    assert aggregate["repaired"] == aggregate["adjusts_out"] / (aggregate["rows_out"] - aggregate["adjusts_out"]) > 0
    assert aggregate["state_rows"] > 0 < aggregate["state_bytes"]


# --- progress and what comes too late ------------------------------------------------------------------------------


@pytest.mark.parametrize("stateful", [False, True])
@pytest.mark.parametrize("chunk_size", [1, 100])
def test_late_rows_are_kept_with_the_reason(stateful, chunk_size):
    query = a().distinct() if stateful else a().where(pl.col("v") > 0)
    good, late = Row(m=1, v=1), Row(m=2, v=2)
    result = query.run([Insert(5, 9, good), Cti(5), Insert(3, 4, late)], chunk_size=chunk_size)
    assert result.table().rows() == [(5, 9, 1, 1)]
    assert result.late().drop("message").rows() == [(3, 4, None, 2, 2, "below_cti")]
    assert "cti 5 promised that nothing before it would come" in result.late()["message"][0]
    assert result.metrics()["late"].sum() == 1


@pytest.mark.parametrize("query", [lambda s: s.distinct(), lambda s: s])
def test_late_rows_raise_when_asked(query):
    stream = [Insert(5, 9, Row(m=1, v=1)), Cti(5), Insert(3, 4, Row(m=2, v=2))]
    with pytest.raises(StreamError, match="cti 5 promised"):
        query(a(late="raise")).run(stream)


def test_rows_without_a_lifetime_are_put_aside():
    source = api.source("s", {"v": int}, vs="s", ve="e")
    result = source.run(pl.DataFrame({"s": [1, 5, None], "e": [3, 5, 6], "v": [1, 2, 3]}))
    assert result.table().rows() == [(1, 3, 1)]
    assert result.late()["reason"].to_list() == ["no_lifetime"] * 2
    with pytest.raises(StreamError, match="its times are not a lifetime"):
        api.source("s", {"v": int}, vs="s", ve="e", late="raise").run(pl.DataFrame({"s": [5], "e": [5], "v": [2]}))


def test_adjusts_of_nothing_are_reported():
    nothing = [Adjust(1, 5, 3, Row(m=1, v=1))]
    assert a().distinct().run(nothing).late()["reason"].to_list() == ["unknown_tuple"]
    assert a().run(nothing).late()["reason"].to_list() == ["unknown_tuple"]


def test_progress_follows_from_the_delay():
    source = api.source("s", {"v": int}, vs="s", delay=3)
    table = pl.DataFrame({"s": [10, 8, 6], "v": [1, 2, 3]})
    result = source.run(table, chunk_size=1, close=False)
    assert [e.t for e in result.elements() if isinstance(e, Cti)] == [7]
    assert result.late()["v"].to_list() == [3]
    ordered = api.source("s", {"v": int}, vs="s", progress=cedr.Progress(ordered=True))
    assert ordered.run(table.sort("s"), close=False).elements()[-1] == Cti(10)


def test_a_leading_cti_counts():
    """A row that only reports progress applies to the rows after it, in the same chunk too."""
    source = api.source("s", {"v": int}, vs="s", cti="c")
    table = pl.DataFrame({"s": [None, 3, 7], "c": [5, None, None], "v": [None, 1, 2]})
    result = source.run(table)
    assert (result.table()["v"].to_list(), result.late()["v"].to_list()) == ([2], [1])
    assert source.run(table[:1], close=False).elements() == [Cti(5)]


def test_external_ctis_are_counted_before_rows_are_dropped():
    stream = [ExternalCti(0, 5, 2), Insert(1, 9, Row(m=1, v=0)), Insert(2, 9, Row(m=1, v=5))]
    query = a(external_ctis=True).where(pl.col("v") > 1)
    assert timed(query.run(stream, close=False).elements()) == [Insert(2, 9, Row(m=1, v=5)), Cti(5)]
    assert query.agg(n=cedr.count()).run([*stream, END]).table().rows() == [(2, 9, 1)]


def test_strong_waits_and_middle_repairs():
    """late      [2 ---- 6)
    early  [4 ------ 8)      arrives first
    """
    stream = [Insert(4, 8, Row(m=1, v=1)), Insert(2, 6, Row(m=1, v=1)), Cti(10)]
    counts = a().agg(n=cedr.count()).with_latency("eager")
    strong = counts.with_consistency("strong").run(stream, chunk_size=1)
    middle = counts.run(stream, chunk_size=1)
    assert strong.history() == middle.history()
    assert set(strong.changelog()["change"]) == {"insert"}
    assert set(middle.changelog()["change"]) > {"insert"}


def test_schema_of_the_catalogue():
    assert a().schema == SCHEMA
