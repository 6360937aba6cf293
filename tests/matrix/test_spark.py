"""Every type in every role on Spark, as static and as streaming tables, and in every source and sink of a stream.

Few queries, each with a column of every type. What is expected comes from plain polars, as in test_local.
"""

from collections import Counter
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from matrix import roles
from matrix.compare import comparable, same_rows
from matrix.files import FORMATS, written
from matrix.files import rejected as rejected_in
from matrix.roles import ROLES, finite
from matrix.stores import SINKS, rejected
from matrix.test_sinks import wide
from matrix.together import AsKeys, Together, accepted
from matrix.values import COLUMNS
from postgres_server import postgres
from runtime.spark.conftest import spark
from sinks.conftest import local_place

import cedr
from cedr.sinks.spark_types import as_table
from cedr.sources.files import Files
from cedr.stream import Stream

__all__ = ["local_place", "postgres", "spark"]

SECTIONS = {
    "keys": lambda: Together(*roles.KEYS),
    "patterns": lambda: Together(*roles.PATTERNS),
    "aggregates": lambda: Together(*roles.AGGREGATES),
    "order and automata": lambda: Together(*roles.ORDER, *roles.AUTOMATA),
    "punctuation": lambda: AsKeys("punctuation"),
    "progress_by": lambda: AsKeys("progress_by"),
}
CHANGES = ("change", "vs", "ve", "ve_new")


@cache
def section(name: str) -> Together | AsKeys:
    return SECTIONS[name]()


def test_no_role_and_no_type_is_left_out():
    found = Counter(cell for name in SECTIONS for cell in section(name).cells)
    assert found == Counter(accepted(*ROLES))


# --- roles -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SECTIONS)
def test_static_tables(spark, tmp_path, name):
    here = section(name)
    files = {source: in_files(tmp_path / source, [rows]) for source, rows in here.rows().items()}
    found = pl.DataFrame(here.query(in_spark=True).batch(spark, files).toArrow())
    for cell in here.cells:
        role, values = ROLES[cell[0]], COLUMNS[cell[1]]
        same_rows(here.answer(cell, found), (role.whole or role.expected)(values))


@pytest.mark.parametrize("name", SECTIONS)
def test_streams(spark, tmp_path, name):
    """In two micro-batches, so that state of every type is kept from one to the other."""
    here, emitted = section(name), []
    files = {source: in_files(tmp_path / source, halves(rows)) for source, rows in here.rows().items()}
    close = all(ROLES[role].close for role, _ in here.cells)
    start(
        spark, tmp_path, here.query(), files, cedr.sinks.foreach(lambda batch, changes: emitted.append(changes)), close
    )
    changes = pl.concat(emitted)
    for cell in here.cells:
        role, values = ROLES[cell[0]], COLUMNS[cell[1]]
        of_this_cell = changes.filter(pl.col("cell") == " of ".join(cell))
        found, expected = here.answer(cell, in_the_end(of_this_cell)), role.expected(values)
        same_rows(found, expected)
        if role.ordered:
            assert comparable(here.answer(cell, of_this_cell)["id"]) == comparable(expected["id"])


def halves(rows: pl.DataFrame) -> list[pl.DataFrame]:
    return [rows[: rows.height // 2], rows[rows.height // 2 :]]


def in_files(folder: Path, tables: list[pl.DataFrame]) -> Files:
    """A micro-batch of a stream reads one of the files."""
    folder.mkdir(parents=True)
    for number, rows in enumerate(tables):
        rows.write_parquet(folder / f"{number}.parquet")
    return cedr.files(folder, "parquet", max_files=1)


def in_the_end(changes: pl.DataFrame) -> pl.DataFrame:
    """What is left of the rows when all changes are made."""
    rows = changes.drop(CHANGES)
    lives = zip(changes["vs"], changes["ve"], map(repr, zip(*map(comparable, rows), strict=True)), strict=True)
    place: dict[tuple, list[int]] = {}
    for i, (change, new, (vs, ve, row)) in enumerate(zip(changes["change"], changes["ve_new"], lives, strict=True)):
        if change != "insert":
            place[vs, ve, row].pop()
        if change != "remove":
            place.setdefault((vs, ve if change == "insert" else new, row), []).append(i)
    return rows[sorted(i for left in place.values() for i in left)]


# --- sources and sinks -----------------------------------------------------------------------------------------------


def table(columns: dict[str, pl.Series]) -> pl.DataFrame:
    """All columns, in rows that live together."""
    return wide(columns).with_columns(ts=pl.lit(0, pl.Int64), end=pl.lit(1000, pl.Int64))


def payload(columns: dict[str, pl.Series]) -> Stream:
    return cedr.source("s", {name: values.dtype for name, values in columns.items()}, vs="ts", ve="end", delay=0)


def kept_by(sink: str) -> dict[str, pl.Series]:
    return {name: values for name, values in COLUMNS.items() if not rejected(SINKS[sink](), values.dtype)}


def start(spark, folder: Path, query: Stream, data, sink, close: bool = True) -> None:
    settings = {"checkpoint": str(folder / "checkpoint"), "trigger": {"availableNow": True}, "close": close}
    running = query.start(spark, data, sink=sink, **settings)
    running.await_termination()
    assert not running.late().height, running.late()


def test_static_data_frames(spark):
    rows = table(kept := kept_by("batch()"))
    answer = payload(kept).batch(spark, spark.createDataFrame(as_table(rows)))
    same_rows(pl.DataFrame(answer.toArrow()).drop("vs", "ve"), pl.DataFrame(as_table(rows.drop("ts", "end"))))


def test_streaming_data_frames(spark, tmp_path):
    rows, sink = table(kept := kept_by("changelog")), cedr.sinks.memory()
    frame = spark.createDataFrame(as_table(rows))
    frame.write.parquet(str(tmp_path / "in"))
    data = spark.readStream.schema(frame.schema).parquet(str(tmp_path / "in"))
    start(spark, tmp_path, payload(kept), data, sink)
    same_rows(sink.read().drop("vs", "ve"), rows.drop("ts", "end"))


@pytest.mark.parametrize("format_", FORMATS)
def test_streams_from_files(spark, tmp_path, format_):
    """JSON has no NaN and no infinity."""
    read = {name: values for name, values in COLUMNS.items() if not rejected_in(format_, values.dtype)}
    rows = table({name: finite(values) for name, values in read.items()} if format_ == "json" else read)
    (tmp_path / "in").mkdir()
    written(rows, tmp_path / "in", format_)
    sink = cedr.sinks.memory()
    start(spark, tmp_path, payload(read), cedr.files(tmp_path / "in", format_), sink)
    found = sink.read().drop("vs", "ve")
    assert found.schema == rows.drop("ts", "end").schema
    same_rows(found, rows.drop("ts", "end"))


def test_streams_to_tables(spark, tmp_path, local_place):
    """Of rows that come twice, one is taken back in the second micro-batch."""
    sink = local_place().sink()
    kept = {name: values for name, values in COLUMNS.items() if rejected(sink, values.dtype) is None}
    rows = table(kept).with_columns(new=pl.lit(None, pl.Int64))
    files = in_files(tmp_path / "in", [pl.concat([rows, rows]), rows.with_columns(new=pl.lit(0, pl.Int64))])
    schema = {name: values.dtype for name, values in kept.items()}
    query = cedr.source("s", schema, vs="ts", ve="end", times=cedr.Times(ve_new="new"), delay=0)
    start(spark, tmp_path, query, files, sink)
    same_rows(sink.read().select(*kept), rows.select(*kept))


def test_streams_to_a_changelog(spark, tmp_path):
    rows = table(kept := kept_by("changelog"))
    sink = cedr.sinks.changelog("parquet", str(tmp_path / "out"))
    start(spark, tmp_path, payload(kept), in_files(tmp_path / "in", [rows]), sink)
    written = spark.read.parquet(str(tmp_path / "out")).where("change = 'insert'").drop(*CHANGES, "shard")
    same_rows(pl.DataFrame(written.toArrow()), pl.DataFrame(as_table(rows.drop("ts", "end"))))
