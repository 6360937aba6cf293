"""Patterns over several thousand rows of several streams, compared with a join in DuckDB."""

import duckdb
import polars as pl
import pytest

import cedr

WITHIN = 5


@pytest.mark.parametrize("chunk_size", [97, 1_000, 50_000])
@pytest.mark.parametrize(("left", "right"), [(4_200, 9_000), (9_000, 4_200), (1, 12_000)])
def test_a_sequence_over_two_streams_that_forget(left, right, chunk_size):
    x, y = rows(left, "a"), rows(right, "b")
    a = cedr.source("A", {"k": int, "a": str}, vs="ts", delay=1)
    b = cedr.source("B", {"k": int, "b": str}, vs="ts", delay=1)
    query = cedr.query(f"EVENT P WHEN SEQUENCE(A x, B y, {WITHIN}) WHERE x.k = y.k OUTPUT x.a AS a, y.b AS b", a, b)
    expected = duckdb.sql(
        f"SELECT x.a, y.b FROM x JOIN y ON x.k = y.k AND y.ts > x.ts AND y.ts <= x.ts + {WITHIN} ORDER BY ALL"
    ).pl()
    found = query.run({"A": x, "B": y}, chunk_size=chunk_size).table().select("a", "b").sort("a", "b")
    assert found.equals(expected)
    assert found.height


def rows(n: int, name: str) -> pl.DataFrame:
    """Names that differ, so that a payload of another row shows."""
    return pl.select(ts=pl.int_range(n), k=pl.int_range(n) % 3).with_columns(pl.format("{}" + name, "ts").alias(name))
