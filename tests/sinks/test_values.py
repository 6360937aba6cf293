"""Values of every type come back from every store as they went in, and are found again when they are taken away."""

import datetime as dt
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from sinks.places import opened, send

from cedr.columnar.chunk import NEW, OLD, VS, Chunk
from cedr.columnar.tally import Tally
from cedr.runtime.result import Result
from cedr.sinks.base import SinkError, SinkTable
from cedr.temporal import INF, QueryError

NAN, INFINITE = float("nan"), float("inf")
MOMENT = dt.datetime(2024, 2, 29, 23, 59, 59, 999999)
NASTY = [
    "",
    " ",
    "'",
    '"',
    '"";',
    "\\",
    "\\N",
    "\\.",
    "\n",
    "\r\n",
    "\t",
    ",",
    "{}",
    "NULL",
    "null",
    "ü€😀",
    "%s $1",
    "a\\",
]

COLUMNS = {
    "int": pl.Series([1, -(2**63), 2**63 - 1], dtype=pl.Int64),
    "small": pl.Series([1, -128, 127], dtype=pl.Int8),
    "unsigned": pl.Series([0, 1, 2**64 - 1], dtype=pl.UInt64),
    "byte": pl.Series([0, 255, 3], dtype=pl.UInt8),
    "float": pl.Series([0.1, NAN, INFINITE, -INFINITE, 5e-324, 1.7976931348623157e308, 0.1 + 0.2]),
    "real": pl.Series([0.1, NAN, 3.4e38], dtype=pl.Float32),
    "bool": pl.Series([True, False]),
    "text": pl.Series(NASTY),
    "word": pl.Series(["a", "b"], dtype=pl.Enum(["b", "a"])),
    "label": pl.Series(["x", "", "y"], dtype=pl.Categorical),
    "bytes": pl.Series([b"", b"\0\xff\\", b"'\n"]),
    "date": pl.Series([dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 12, 31)]),
    "moment": pl.Series([MOMENT, dt.datetime(1, 1, 1)], dtype=pl.Datetime("us")),
    "zoned": pl.Series([MOMENT, dt.datetime(2024, 10, 27, 0, 30)], dtype=pl.Datetime("us", "UTC")).dt.convert_time_zone(
        "Europe/Berlin"
    ),
    "coarse": pl.Series([MOMENT], dtype=pl.Datetime("ms")),
    "time": pl.Series([dt.time(0), dt.time(23, 59, 59, 999999)]),
    "length": pl.Series([dt.timedelta(days=-3, microseconds=1), dt.timedelta(days=400)], dtype=pl.Duration("us")),
    "decimal": pl.Series([Decimal("1.50"), Decimal("-99999999.99")], dtype=pl.Decimal(20, 2)),
    "numbers": pl.Series([[1, None, 3], [], [None]], dtype=pl.List(pl.Int64)),
    "floats": pl.Series([[NAN, 0.1], [INFINITE]]),
    "words": pl.Series([NASTY, [], [None, "NULL"]], dtype=pl.List(pl.String)),
    "moments": pl.Series([[MOMENT, None]], dtype=pl.List(pl.Datetime("us"))),
    "blobs": pl.Series([[b"\0", b'"\\']], dtype=pl.List(pl.Binary)),
    "pair": pl.Series([[1, 2], [3, 4]], dtype=pl.Array(pl.Int64, 2)),
    "lists": pl.Series([[[1], None, []], []], dtype=pl.List(pl.List(pl.Int64))),
    "struct": pl.Series([{"a": 1, "b": 'x"'}, {"a": None, "b": None}]),
    "nothing": pl.Series([None], dtype=pl.Null),
}


def inserts(payload: pl.DataFrame, end: int = INF) -> Chunk:
    """One tuple per row, starting at 0, 1, ..."""
    starts = pl.int_range(payload.height, eager=True, dtype=pl.Int64)
    times = pl.DataFrame({VS: starts, OLD: starts, NEW: pl.repeat(end, payload.height, dtype=pl.Int64, eager=True)})
    return Chunk(times.hstack(payload))


def with_end(chunk: Chunk, end: str | int) -> Chunk:
    new = pl.col(end) if isinstance(end, str) else pl.lit(end, pl.Int64)
    return Chunk(chunk.rows.with_columns(pl.col(NEW).alias(OLD), new.alias(NEW)))


def check_round_trip(here, values: pl.DataFrame, time_type: pl.DataType | None = None) -> None:
    """Inserted, shortened, removed: each time the table is the answer, and in the end there is nothing left."""
    table = SinkTable("q", dict(values.schema), time_type or pl.Int64())
    sink, tally = opened(here, table), Tally(table.columns)
    first = inserts(values)
    second = with_end(first, values.height + 10)
    for batch, chunk in enumerate([first, second, with_end(second, VS)]):
        send(sink, batch, [chunk])
        tally.add(chunk)
        assert_frame_equal(
            sink.read(), Result(table.columns, [], tally, table.time_type).table(), check_row_order=False
        )
    assert sink.read().height == 0


@pytest.mark.parametrize("name", COLUMNS)
def test_each_type(place, name):
    values = COLUMNS[name]
    with_nulls = pl.concat([values, pl.Series([None, None], dtype=values.dtype), values])
    check_round_trip(place(), pl.DataFrame({name: with_nulls}))


def test_times_are_the_users(place):
    table = SinkTable("q", {"v": pl.Int64()}, pl.Datetime("us", "America/New_York"))
    sink = opened(place(), table)
    micro = 1_000_000
    year_12345 = 327_403_382_400 * micro
    rows = {VS: [0, 5, year_12345, -(10**10) * micro], OLD: [0, 5, year_12345, -(10**10) * micro]}
    rows |= {NEW: [10, INF, year_12345 + 1, 0], "v": [1, 2, 3, 4]}
    send(sink, 0, [Chunk(pl.DataFrame(rows))])
    found = sink.read()
    assert found.schema["vs"] == table.time_type
    assert found["vs"].cast(pl.Int64).to_list() == [-(10**10) * micro, 0, 5, year_12345]
    assert found["ve"].cast(pl.Int64).to_list() == [0, 10, None, year_12345 + 1]


def test_years_before_the_first(place):
    """-100000000000 s is in the year 1200 before our era."""
    sink = opened(place(), SinkTable("q", {"v": pl.Int64()}, pl.Datetime("us")))
    start = -(10**11) * 1_000_000
    send(sink, 0, [Chunk(pl.DataFrame({VS: [start], OLD: [start], NEW: [start + 1], "v": [1]}))])
    assert sink.read()["vs"].cast(pl.Int64).to_list() == [start]


characters = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=5)
mixed = st.fixed_dictionaries(
    {
        "s": st.none() | characters,
        "f": st.none() | st.floats(),
        "b": st.none() | st.binary(max_size=4),
        "l": st.none() | st.lists(st.none() | characters, max_size=3),
        "t": st.none() | st.datetimes(),
        "d": st.none() | st.decimals(-1000, 1000, places=3),
    }
)
MIXED = {
    "s": pl.String,
    "f": pl.Float64,
    "b": pl.Binary,
    "l": pl.List(pl.String),
    "t": pl.Datetime("us"),
    "d": pl.Decimal(10, 3),
}


@settings(max_examples=settings.default.max_examples // 6)
@given(rows=st.lists(mixed, max_size=12))
def test_any_values(place, rows):
    columns = {name: [row[name] for row in rows] for name in MIXED}
    check_round_trip(place(), pl.DataFrame(columns, schema=MIXED), pl.Datetime("us", "UTC"))


def test_more_rows_than_a_row_group_of_duckdb(place):
    """DuckDB 2.0.0 silently lost batches from 122,880 rows on when they went through a table made AS SELECT."""
    size = 125_000
    values = pl.DataFrame({"n": pl.int_range(size, eager=True), "text": pl.int_range(size, eager=True).cast(pl.String)})
    check_round_trip(place(), values)


# --- what a store cannot represent ------------------------------------------------------------------------------


def commit(here, payload: pl.DataFrame) -> None:
    sink = opened(here, SinkTable("q", dict(payload.schema)))
    send(sink, 0, [inserts(payload)])


@pytest.mark.parametrize("values", [["a\0b"], [["a\0b"]]])
def test_postgres_keeps_no_nul_characters(postgres_place, values):
    with pytest.raises(SinkError, match="column 'v' has a text with a NUL character"):
        commit(postgres_place(), pl.DataFrame({"v": values}))


def test_postgres_keeps_no_nanoseconds_of_the_day(postgres_place):
    with pytest.raises(SinkError, match="column 'v' has times of day finer than a microsecond"):
        commit(postgres_place(), pl.DataFrame({"v": pl.Series([1]).cast(pl.Time)}))


def test_postgres_keeps_no_nan_in_json(postgres_place):
    with pytest.raises(SinkError, match=r"column 'v' of type Struct.* has values that JSON cannot represent"):
        commit(postgres_place(), pl.DataFrame({"v": [{"x": NAN}]}))


@pytest.mark.parametrize("kind", [pl.Datetime("ns"), pl.Duration("ns"), pl.List(pl.Datetime("ns", "UTC"))])
def test_databases_keep_microseconds(sql_place, kind):
    with pytest.raises(QueryError, match=r'use pl.col\("v"\).dt.cast_time_unit\("us"\)'):
        opened(sql_place(), SinkTable("q", {"v": kind}))


def test_types_without_a_counterpart_are_refused(sql_place):
    with pytest.raises(QueryError, match="column 'v' is of type"):
        opened(sql_place(), SinkTable("q", {"v": pl.UInt128()}))
