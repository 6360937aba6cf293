"""Every type in every store: values come back as they went in, or the sink rejects the column when the query starts."""

import polars as pl
import pytest
from matrix.cells import suggests
from matrix.compare import same_rows
from matrix.roles import finite, in_turn, rows, source
from matrix.stores import SINKS, rejected
from matrix.values import COLUMNS
from polars.testing import assert_frame_equal
from postgres_server import postgres
from s3_server import s3
from sinks.conftest import place
from sinks.test_values import check_round_trip

import cedr
from cedr.columnar.chunk import Chunk
from cedr.recording.changelog import changelog_rows, read_changelog, write_changelog
from cedr.sinks.spark_types import as_table, spark_frame

__all__ = ["place", "postgres", "s3"]


def wide(columns: dict[str, pl.Series]) -> pl.DataFrame:
    """All columns side by side; shorter ones are repeated."""
    height = max(map(len, columns.values()))
    return pl.DataFrame(
        {name: pl.concat([values] * (height // len(values) + 1))[:height] for name, values in columns.items()}
    )


def test_tables(place):
    """All types that the store takes in one table: inserted, shortened and removed."""
    here = place()
    sink = here.sink()
    kept = {name: values for name, values in COLUMNS.items() if rejected(sink, values.dtype) is None}
    assert len(kept) > 25
    check_round_trip(here, wide(kept))


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("sink", SINKS)
def test_what_is_rejected_is_rejected_with_what_to_do(sink, kind):
    if reason := rejected(SINKS[sink](), COLUMNS[kind].dtype):
        assert "'v'" in reason
        assert suggests(reason)


def test_the_changes_of_a_local_run(tmp_path):
    """`cedr run --local` writes every type."""
    table = wide(COLUMNS).with_columns(ts=pl.int_range(pl.len()))
    stream = cedr.source("s", dict(wide(COLUMNS).schema), vs="ts", delay=0)
    result = stream.run(table)
    emitted = pl.concat([chunk.rows for chunk in result.chunks])
    write_changelog(str(tmp_path / "changes"), [changelog_rows(Chunk(emitted), 0, pl.Int64())])
    again = read_changelog(tmp_path / "changes").rows
    same_rows(again, emitted)


@pytest.mark.parametrize("kind", COLUMNS)
def test_spark_types_hold_the_same_values(kind):
    """What the changelog and `batch` write, without Spark: integers are wider, categories are texts, times instants."""
    values = COLUMNS[kind]
    if rejected(SINKS["batch()"](), values.dtype):
        return
    frame = values.to_frame()
    assert_frame_equal(pl.DataFrame(as_table(frame)), spark_frame(frame))
    back = spark_frame(frame)["v"].cast(values.dtype)
    assert back.eq_missing(values).all()


@pytest.mark.parametrize("sign", [0.0, -0.0])
def test_a_zero_keeps_its_sign_as_payload(sign):
    table = source(pl.Float64()).run(rows(pl.Series("v", [sign]))).table()
    assert str(table["v"][0]) == str(sign)
    assert finite(table["v"]).len() == in_turn(table["v"]).height


def inside(values: pl.Series) -> dict[str, pl.Series]:
    """The values in lists and in structs."""
    lists = values.to_frame().select(pl.concat_list("v", "v").alias("v"))["v"]
    return {"lists": lists, "structs": values.to_frame().select(pl.struct(a="v").alias("v"))["v"]}


@pytest.mark.parametrize("shape", ["lists", "structs"])
def test_values_inside_others(place, shape):
    plain = {name: values for name, values in COLUMNS.items() if name not in ("List", "Struct", "Null")}
    columns = {name: inside(finite(values))[shape] for name, values in plain.items()}
    here = place()
    reasons = {name: rejected(here.sink(), values.dtype) for name, values in columns.items()}
    kept = {name: values for name, values in columns.items() if reasons[name] is None}
    assert len(kept) > 20
    assert all(suggests(reason) for reason in reasons.values() if reason)
    check_round_trip(here, wide(kept))
