"""Sources whose lifetimes all end: what may be relied on, and what becomes of a row without an end."""

import warnings
from datetime import UTC, datetime

import polars as pl
import pytest

import cedr
from cedr import INF, Adjust, Cti, Insert, Row
from cedr.api import source_of_keys
from cedr.plan.analysis import analyse
from cedr.plan.analysis.warning import warnings_of
from cedr.plan.nodes import Level
from cedr.plan.optimizer import optimize
from cedr.runtime.local import LocalRun
from cedr.temporal.errors import QueryError

COLUMNS = {"k": pl.Int64}


def source(name, **options):
    return source_of_keys(name, COLUMNS, vs="vs", ve="ve", delay=10, **options)


def joined(**options):
    return source("a", **options).join(source("b", **options), on="k")


def rows(n, length=5):
    starts = pl.int_range(n, eager=True)
    return pl.DataFrame({"vs": starts, "ve": starts + length, "k": starts % 3})


def test_a_join_of_intervals_that_end_needs_no_more_than_progress():
    missing = [text for finding in analyse(optimize(Level(joined().plan)).plan) for text in finding.missing]
    declared = (
        "ends=True for source 'a' and 'b', if each of its rows has an end; or lifetimes that end, as windows give them"
    )
    assert missing == [
        f"punctuations of source {other!r} about k that state when a value is done; or {declared}"
        for other in ("b", "a")
    ]
    assert warnings_of(Level(joined(ends=True).plan)) == []
    (found,) = analyse(optimize(Level(joined(ends=True).plan)).plan)
    assert str(found) == "emits at once; state is bounded by CTIs and lifetimes that end"


@pytest.mark.parametrize(
    "query",
    [
        lambda s: s.group_by("k").agg(n=cedr.count()),
        lambda s: s.distinct(),
        lambda s: s.where("k > 0").select("k").coalesce(),
        lambda s: s.union(s).top_k(1, by="k"),
    ],
)
def test_so_do_other_operators(query):
    assert warnings_of(Level(query(source("a")).plan)) != []
    assert warnings_of(Level(query(source("a", ends=True)).plan)) == []


def test_lifetimes_that_a_query_makes_endless_are_not_helped():
    endless = source("a").inserts().join(source("b"), on="k")
    advice = [text for finding in analyse(optimize(Level(endless.plan)).plan) for text in finding.missing]
    assert all("ends=True for source 'b'," in text for text in advice)
    assert warnings_of(Level(source("a", ends=True).inserts().join(source("b", ends=True), on="k").plan)) != []


def test_the_state_is_as_small_as_promised():
    run = LocalRun(joined(ends=True).fragment(), chunk_size=100)
    states = [
        run.engine.metrics()["state_rows"].sum() for _ in run.steps({"a": rows(5_000), "b": rows(5_000)}, close=False)
    ]
    assert max(states) < 500


@pytest.mark.parametrize("kind", [pl.Int64, pl.Datetime("us"), pl.Datetime("ms", "Europe/Berlin"), pl.Date])
def test_a_row_without_an_end_is_late(kind):
    table = pl.DataFrame({"vs": [1, 2, 3], "ve": [9, None, 8], "k": [1, 2, 3]})
    table = table.with_columns(pl.col("vs", "ve").cast(pl.Int64 if kind == pl.Int64 else kind))
    result = source("a", ends=True).run(table)
    assert result.table()["k"].to_list() == [1, 3]
    ((k, reason, message),) = result.late().select("k", "reason", "message").rows()
    assert (k, reason) == (2, "no_lifetime")
    assert message.endswith(": it has no end, but its source is declared with ends=True")


def test_so_is_one_without_a_length_and_one_that_is_lengthened_for_ever():
    lengths = cedr.source("a", COLUMNS, vs="vs", duration="d", times=cedr.Times(ends=True))
    table = pl.DataFrame({"vs": [1, 2], "d": [None, 3], "k": [1, 2]})
    assert lengths.run(table).table().rows() == [(2, 5, 2)]
    corrected = cedr.source("a", COLUMNS, vs="vs", ve="ve", times=cedr.Times(ve_new="new", ends=True))
    table = pl.DataFrame({"vs": [1, 1], "ve": [4, 4], "new": [None, INF], "k": [1, 1]})
    result = corrected.run(table)
    assert (result.table().rows(), result.late().height) == ([(1, 4, 1)], 1)


def test_so_are_elements():
    elements = [Insert(1, 4, Row(k=1)), Insert(2, INF, Row(k=2)), Adjust(1, 4, INF, Row(k=1)), Cti(3)]
    result = cedr.source("a", COLUMNS, times=cedr.Times(ends=True)).run(elements)
    assert result.table().rows() == [(1, 4, 1)]
    assert [message[:9] for message in result.late()["message"]] == ["element 1", "element 2"]
    with pytest.raises(cedr.CedrError, match="ends=True"):
        cedr.source("a", COLUMNS, times=cedr.Times(ends=True), late="raise").run(elements)


def test_rows_that_only_report_progress_have_no_lifetime():
    source = cedr.source(
        "a",
        COLUMNS,
        vs="vs",
        ve="ve",
        cti="cti",
        progress=cedr.Progress(punctuation="done", promises=["k"]),
        times=cedr.Times(ends=True),
    )
    table = pl.DataFrame(
        {
            "vs": [1, None, 9],
            "ve": [4, None, None],
            "cti": [None, 3, None],
            "done": [False, False, True],
            "k": [1, None, 1],
        }
    )
    result = source.run(table)
    assert (result.table().rows(), result.late().height) == ([(1, 4, 1)], 0)


def test_a_duration_without_end_contradicts_it():
    with pytest.raises(QueryError, match="ends=True contradicts duration='inf'"):
        cedr.source("a", COLUMNS, vs="vs", duration="inf", times=cedr.Times(ends=True))


def test_the_end_of_a_zoned_interval_may_be_any_time():
    start = datetime(2024, 3, 31, tzinfo=UTC)
    table = pl.DataFrame({"vs": [start], "ve": [datetime(9999, 12, 31, tzinfo=UTC)], "k": [1]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert source("a", ends=True).run(table).table().height == 1
