"""`explain` shows every step from what was written to what runs."""

from pathlib import Path

import polars as pl

import cedr
from cedr import api

feed = api.source("machines", {"kind": str, "machine": str, "load": float}, vs="ts")


def test_the_whole_text():
    busy = feed.sliding("60s").group_by("machine").agg(load=cedr.avg("load"), n=cedr.count())
    query = busy.where((pl.col("machine") != "m1") & (pl.col("load") > 0.9)).with_consistency("strong")
    assert query.explain() + "\n" == (Path(__file__).parent / "golden" / "explain.txt").read_text()


def test_shared_plans_are_printed_once():
    counts = feed.sliding("1h").group_by("machine").agg(n=cedr.count())
    text = counts.join(counts.where(pl.col("n") > 1), on="machine").explain()
    assert text.count("see #1") == 2
    assert text.count("Aggregate <-") == 1


def test_unbounded_state_is_reported():
    assert "rows without end stay for ever" in feed.inserts().agg(n=cedr.count()).explain()
    assert "rows without end stay for ever" not in feed.agg(n=cedr.count()).explain()
    assert "at most 5s back" in feed.agg(n=cedr.count()).with_consistency(remember="5s").explain()
    assert "for at most 3s" in feed.agg(n=cedr.count()).with_consistency(block="3s").explain()
