"""The events of the Spark benchmark: the same from the same seed, as late as requested, a file per micro-batch."""

import numpy as np
import polars as pl
import pytest
from peers.data import FLUSH, LATENESS, SECOND, Shape, events, read, write


def test_the_same_seed_gives_the_same_events_and_another_seed_others():
    assert events(1_000, 10, 100, seed=1).equals(events(1_000, 10, 100, seed=1))
    assert not events(1_000, 10, 100, seed=1).equals(events(1_000, 10, 100, seed=2))


def test_a_fifth_of_the_events_is_late_and_none_by_more_than_the_limit():
    ts = events(100_000, 10, 2_000, seed=1)["ts"].cast(pl.Int64).to_numpy()
    behind = np.maximum.accumulate(ts) - ts
    assert 0 < behind.max() < LATENESS
    # An event that is late by next to nothing may still come first.
    assert 0.19 < (behind > 0).mean() < 0.21


def test_events_spread_over_the_seconds_that_the_rate_requires():
    ts = events(100_000, 10, 2_000, seed=1)["ts"].cast(pl.Int64)
    assert (ts.max() - ts.min()) / SECOND == pytest.approx(50, rel=0.01)


def test_files_hold_the_stream_in_order_of_arrival_and_end_with_the_flush(tmp_path):
    write(tmp_path, ("left", "right"), Shape(events=2_000, files=4, keys=10, rate=100))
    files = sorted((tmp_path / "left").iterdir(), key=lambda path: path.stat().st_mtime)
    assert [path.name for path in files] == ["000.parquet", "001.parquet", "002.parquet", "003.parquet", "004.parquet"]
    tables = [pl.read_parquet(path) for path in files]
    assert [table.height for table in tables] == [250, 250, 250, 250, 1]
    assert pl.concat(tables[:-1]).equals(events(1_000, 10, 50, seed=0))
    assert tables[-1]["k"].item() == FLUSH
    assert tables[-1]["ts"].item() > pl.concat(tables[:-1])["ts"].max()
    both = read(tmp_path, ("left", "right"))
    assert both["left"].equals(events(1_000, 10, 50, seed=0))
    assert not both["right"].equals(both["left"])
