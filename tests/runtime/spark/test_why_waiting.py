"""A query on Spark names the one partition of eight that is silent, and the one key whose clock is a year ahead."""

from datetime import datetime, timedelta

import polars as pl

import cedr

START = datetime(2024, 5, 1)


def readings(first: int, members: list[int], ahead: int | None = None) -> pl.DataFrame:
    """A row every second of each member, of those with higher numbers a little later."""
    rows = [(START + timedelta(seconds=first + i, milliseconds=m), f"{m}", 1) for i in range(20) for m in members]
    year = timedelta(days=365)
    rows = [(ts + year if ahead is not None and member == str(ahead) else ts, member, v) for ts, member, v in rows]
    return pl.DataFrame(rows, schema={"ts": pl.Datetime("us"), "id": pl.String, "v": pl.Int64}, orient="row")


def test_the_silent_partition_and_the_key_ahead_are_named(spark, tmp_path):
    schema = {"id": str, "v": int}
    lines = cedr.source("lines", schema, vs="ts", delay="5s", progress=cedr.Progress(partition="id"))
    devices = cedr.source("devices", schema, vs="ts", delay="5s", progress=cedr.Progress(by="id"))
    given = {
        "lines": [readings(0, list(range(8))), readings(20, list(range(7)))],
        "devices": [readings(0, list(range(8))), readings(20, list(range(8)), ahead=3)],
    }
    for name, tables in given.items():
        (tmp_path / name).mkdir()
        for number, table in enumerate(tables):
            table.write_parquet(tmp_path / name / f"{number}.parquet")
    query = lines.union(devices).tumbling("10s").group_by("id").agg(n=cedr.count()).with_consistency("strong")
    running = query.start(
        spark,
        {name: cedr.files(tmp_path / name, "parquet", max_files=1) for name in given},
        sink=cedr.sinks.memory(),
        checkpoint=str(tmp_path / "checkpoint"),
        trigger={"availableNow": True},
    )
    running.await_termination()
    why = running.why_waiting()
    silent, slowest, ahead, held = why.reasons
    assert silent.startswith(
        "source 'lines' has progressed to 2024-05-01 00:00:14.007000: id=7 has progressed to 2024-05-01 00:00:14"
    )
    assert "and is the slowest of 8; its last report was at" in silent
    assert slowest.startswith(
        "source 'devices' has separate progress for each id: id=0 has progressed to 2024-05-01 00:00:34"
    )
    assert ahead.startswith("id=3 of source 'devices' is far ahead: its highest start is 2025-05-01 00:00:39")
    assert held.startswith("Align ordered, block ∞, promises about id holds back")
    assert why.sources.filter(note="ahead")["of"].to_list() == ["id=3"]
    assert why.operators["rows"].min() > 0
    assert running.table().height == 8  # of each id the window up to 10, as far as both have come
