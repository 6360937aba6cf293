"""Every type on Spark, as static and as streaming tables. Few queries, each with a column of every type."""

from collections.abc import Callable
from functools import reduce

import polars as pl
import pytest
from matrix.compare import same_rows
from matrix.stores import SINKS, rejected
from matrix.test_sinks import wide
from matrix.values import COLUMNS
from runtime.spark.conftest import spark

import cedr
from cedr.runtime.spark.types import as_table
from cedr.stream import Stream

__all__ = ["spark"]

ALL_THERE = {"availableNow": True}


def kept_by(sink: str) -> dict[str, pl.Series]:
    return {name: values for name, values in COLUMNS.items() if not rejected(SINKS[sink](), values.dtype)}


def table(columns: dict[str, pl.Series]) -> pl.DataFrame:
    """All columns, in rows that live together."""
    times = {"id": pl.int_range(pl.len()), "ts": pl.lit(0, pl.Int64), "end": pl.lit(1000, pl.Int64)}
    return wide(columns).with_columns(**times)


def source(columns: dict[str, pl.Series], name: str = "s", start: str = "ts") -> Stream:
    schema = {"id": pl.Int64, **{name: values.dtype for name, values in columns.items()}}
    return cedr.source(name, schema, vs=start, ve="end" if start == "ts" else None, delay=0)


def of_each(columns: dict[str, pl.Series], query: Callable[[str], Stream]) -> Stream:
    """The answers for all types, each with its name."""
    answers = [query(name).with_columns(kind=pl.lit(name)) for name in columns]
    return reduce(Stream.union, answers)


def groups(columns: dict[str, pl.Series]) -> Stream:
    stream = source(columns)
    return of_each(
        columns, lambda name: stream.group_by(name).agg(n=cedr.count(), one=cedr.min("id")).select("n", "one")
    )


def partners(columns: dict[str, pl.Series]) -> Stream:
    left, right = source(columns), source(columns, "t")
    return of_each(columns, lambda name: left.join(right, on=name).select("id", "id_right"))


def extremes(columns: dict[str, pl.Series]) -> Stream:
    made = {"min": cedr.min, "max": cedr.max, "first": cedr.first, "median": cedr.median, "count": cedr.count}
    wanted = {f"{f} of {name}": made[f](name) for name in columns for f in made}
    return source(columns).agg(**wanted)


def sequences(columns: dict[str, pl.Series]) -> Stream:
    a, b = source(columns, "A", "id"), source(columns, "B", "id")
    text = 'EVENT P WHEN SEQUENCE(A x, B y, 100) WHERE x."{0}" = y."{0}" OUTPUT x.id AS x, y.id AS y'
    return of_each(columns, lambda name: cedr.query(text.format(name), a, b))


QUERIES = {
    "payload": source,
    "group keys": groups,
    "join keys": partners,
    "aggregates": extremes,
    "correlations": sequences,
}


def expected(query: Stream, rows: pl.DataFrame) -> pl.DataFrame:
    """The local answer; tests/matrix/test_local.py compares that with plain polars."""
    return query.run(dict.fromkeys(sources(query), rows)).table()


def sources(query: Stream) -> list[str]:
    return list(query.fragment().sources)


@pytest.mark.parametrize("name", QUERIES)
def test_static_tables(spark, name):
    kept = kept_by("batch()")
    rows, query = table(kept), QUERIES[name](kept)
    frame = spark.createDataFrame(as_table(rows))
    answer = query.batch(spark, dict.fromkeys(sources(query), frame))
    wanted = expected(query, rows)
    same_rows(pl.DataFrame(answer.toArrow()), pl.DataFrame(as_table(wanted)))


def start(spark, folder, query: Stream, rows: pl.DataFrame, sink) -> None:
    (folder / "in").mkdir(exist_ok=True)
    rows.write_parquet(folder / "in" / "rows.parquet")
    data = dict.fromkeys(sources(query), cedr.files(folder / "in", "parquet"))
    settings = {"checkpoint": str(folder / "checkpoint"), "trigger": ALL_THERE, "close": True}
    query.start(spark, data, sink=sink, **settings).await_termination()


@pytest.mark.parametrize("name", ["payload", "group keys", "join keys", "correlations"])
def test_streams(spark, tmp_path, name):
    """From files, all types of polars, nanoseconds too."""
    rows, query, sink = table(COLUMNS), QUERIES[name](COLUMNS), cedr.sinks.memory()
    start(spark, tmp_path, query, rows, sink)
    same_rows(sink.read(), expected(query, rows))


def test_streams_to_a_changelog(spark, tmp_path):
    kept = kept_by("changelog")
    rows, query = table(kept), source(kept)
    start(spark, tmp_path, query, rows, cedr.sinks.changelog("parquet", str(tmp_path / "out")))
    written = spark.read.parquet(str(tmp_path / "out")).where("change = 'insert'").drop("change", "ve_new", "shard")
    same_rows(pl.DataFrame(written.toArrow()), pl.DataFrame(as_table(expected(query, rows))))
