"""The events of Nexmark: the same from the same seed, in the standard mix, as late and as corrected as requested."""

import numpy as np
import polars as pl
import pytest
from nexmark.generator import LONGEST, MIX, SHARE_CORRECTED, settled, tables, write
from peers.data import FLUSH, LATENESS, SECOND, Shape, files

N, RATE = 50_000, 2_000


@pytest.fixture(scope="module")
def plain():
    return tables(N, RATE, seed=1)


@pytest.fixture(scope="module")
def corrected():
    return tables(N, RATE, seed=1, corrected=True)


def test_the_same_seed_gives_the_same_events_and_another_seed_others(plain):
    again, other = tables(N, RATE, seed=1), tables(N, RATE, seed=2)
    assert all(plain[name].equals(again[name]) for name in MIX)
    assert not any(plain[name].equals(other[name]) for name in MIX)


def test_of_fifty_events_one_is_a_person_three_are_auctions_and_the_rest_bids(plain):
    assert {name: table.height for name, table in plain.items()} == {name: N * n // 50 for name, n in MIX.items()}


def test_a_fifth_is_late_by_up_to_five_seconds(plain):
    every = pl.concat([t.select(pl.col("ts").dt.epoch("us"), "arrived") for t in plain.values()]).sort("arrived")
    behind = np.maximum.accumulate(every["ts"].to_numpy()) - every["ts"].to_numpy()
    assert 4.9 * SECOND < behind.max() < LATENESS
    assert 0.18 < (behind > 0).mean() < 0.21


def test_times_are_whole_milliseconds(plain):
    assert all((t["ts"].dt.epoch("us") % 1_000 == 0).all() for t in plain.values())


def test_what_is_named_was_there_before(plain):
    sold = plain["auction"].join(plain["person"], left_on="seller", right_on="id", suffix="_of_seller")
    assert sold.height == plain["auction"].height
    known = sold.filter(pl.col("id") > 0)
    assert (known["ts_of_seller"] <= known["ts"]).all()
    wanted = plain["bid"].join(plain["auction"], left_on="auction", right_on="id", suffix="_opened")
    assert wanted.height == plain["bid"].height
    assert (wanted["ts_opened"] <= wanted["ts"]).mean() > 0.99
    open_for = (plain["auction"]["expires"] - plain["auction"]["ts"]).dt.total_milliseconds()
    assert 1_000 <= open_for.min() <= open_for.max() < LONGEST


def test_corrections_retract_an_earlier_bid_and_insert_it_again(plain, corrected):
    bid = corrected["bid"].with_row_index("place")
    back = bid.filter(pl.col("ve_new").is_not_null())
    assert (back["ve_new"] == back["ts"]).all()
    share = back.height / plain["bid"].height
    assert 0.5 * SHARE_CORRECTED < share < SHARE_CORRECTED
    same = ["ts", "auction", "bidder", "price"]
    first = bid.filter(pl.col("ve_new").is_null()).group_by(same).agg(pl.min("place").alias("first_place"))
    pairs = back.join(first, on=same)
    assert pairs.height == back.height
    assert (pairs["first_place"] < pairs["place"]).all()
    assert (back["arrived"] - back["ts"].dt.epoch("us")).is_between(1, LATENESS, closed="left").all()


def test_settled_bids_are_as_many_as_without_corrections_and_some_cost_more(plain, corrected):
    before, after = plain["bid"], settled(corrected["bid"])
    assert after.height == before.height
    taken_back = corrected["bid"]["ve_new"].is_not_null().sum()
    assert before["price"].sum() < after["price"].sum() < before["price"].sum() + 1_000 * taken_back
    assert settled(before) is before


def test_files_hold_what_arrived_up_to_the_same_moments_and_end_with_the_flush(plain, tmp_path):
    write(tmp_path, ("person", "bid"), Shape(events=N, files=4, rate=RATE))
    assert not (tmp_path / "auction").exists()
    for name in ("person", "bid"):
        parts = [pl.read_parquet(path) for path in files(tmp_path / name)]
        assert len(parts) == 4
        assert pl.concat(parts).equals(plain[name].drop("arrived"))
        assert all(part.height == pytest.approx(N * MIX[name] / 50 / 4, rel=0.2) for part in parts)
        last = pl.read_parquet(sorted((tmp_path / name).iterdir())[-1])
        assert last.height == 1
        assert last.select(pl.col(pl.Int64)).row(0) == (FLUSH,) * len(last.select(pl.col(pl.Int64)).columns)
        assert last["ts"].item() > plain[name]["ts"].max()


def test_the_flush_has_a_lifetime(tmp_path):
    write(tmp_path, ("auction",), Shape(events=1_000, files=2, rate=RATE))
    last = pl.read_parquet(sorted((tmp_path / "auction").iterdir())[-1])
    assert last["expires"].item() > last["ts"].item()
