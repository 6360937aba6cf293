"""Shards: equal keys meet, whatever their type; shards are filled evenly; and nothing of it ever changes."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr.columnar.sharding import shards_of, split
from cedr.temporal import QueryError

MANY = 1_000_003
"""Enough shards that different keys hardly ever share one."""


def shards(values, kind=None, n=MANY) -> list[int]:
    return shards_of(pl.DataFrame({"k": pl.Series(values, dtype=kind)}), ("k",), n).tolist()


# --- equal keys ----------------------------------------------------------------------------------------------------

INTEGERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)


def test_whole_numbers_of_all_widths_agree():
    assert {tuple(shards([0, 1, 5, 127, None], kind)) for kind in INTEGERS} == {tuple(shards([0, 1, 5, 127, None]))}
    signed = [kind for kind in INTEGERS if kind.is_signed_integer()]
    assert {tuple(shards([-1, -128], kind)) for kind in signed} == {tuple(shards([-1, -128]))}


def test_numbers_beyond_64_bits_are_distinguished():
    big = [2**63 + 1, 2**63 + 2, 2**64 - 1]
    assert len(set(shards(big, pl.UInt64))) == 3
    assert shards(big, pl.UInt64) == shards(big, pl.Int128)


def test_doubles_have_one_zero_and_one_nan():
    other_nan = np.array([0x7FF8000000000123], dtype=np.uint64).view(np.float64)
    assert len(set(shards([0.0, -0.0]))) == 1
    assert len(set(shards([float("nan"), -float("nan"), *other_nan]))) == 1
    assert len(set(shards([0.0, 0.5, 1.0, float("inf"), -float("inf"), float("nan"), None]))) == 7
    assert shards([0.5, 2.0, None], pl.Float32) == shards([0.5, 2.0, None], pl.Float64)


@given(st.lists(st.one_of(st.none(), st.text(max_size=20)), max_size=8))
def test_texts_are_their_bytes(values):
    there = [None if v is None else v.encode() for v in values]
    assert shards(values, pl.String) == shards(there, pl.Binary)
    assert shards(values[::-1], pl.String) == shards(values, pl.String)[::-1]


def test_texts_that_differ_in_length_or_place_only():
    texts = ["", "\0", "\0\0", "a", "a\0", "abcdefgh", "abcdefgh\0", "hgfedcba", "abcdefghabcdefgh", "abcdefghi"]
    assert len(set(shards(texts))) == len(texts)


def test_slices_of_a_column_hash_like_the_column():
    texts = pl.DataFrame({"k": [f"name {i}" if i % 3 else None for i in range(100)]})
    whole = shards_of(texts, ("k",), 7)
    assert (shards_of(texts[30:60], ("k",), 7) == whole[30:60]).all()
    pieces = pl.concat([texts[:30], texts[30:]], rechunk=False)
    assert (shards_of(pieces, ("k",), 7) == whole).all()


def test_other_types():
    days = [date(2020, 1, 1), date(1950, 6, 30), None]
    moments = [None if d is None else datetime(d.year, d.month, d.day) for d in days]
    units = {tuple(shards(moments, pl.Datetime(unit))) for unit in ("ms", "us", "ns")}
    assert units == {tuple(shards(days))}
    zoned = pl.Series(moments).dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo")
    assert shards(zoned) == shards(days)
    assert shards([timedelta(seconds=3)], pl.Duration("ms")) == shards([timedelta(seconds=3)], pl.Duration("ns"))
    names = ["x", "y", None, "x"]
    assert shards(names, pl.Categorical) == shards(names, pl.Enum(["y", "x"])) == shards(names)
    assert shards([Decimal("1.50")], pl.Decimal(10, 2)) == shards(["1.50"])
    assert len(set(shards([True, False, None]))) == 3
    assert len(set(shards([None, None], pl.Null))) == 1


def test_lists_and_structs_are_no_keys():
    with pytest.raises(QueryError, match=r"column 'k' is of type List\(Int64\), which cannot be a key for sharding"):
        shards([[1], [2]])


def test_several_keys_count_in_their_order():
    rows = pl.DataFrame({"a": [1, 2, 1, None], "b": ["x", "x", "y", "x"]})
    assert len(set(shards_of(rows, ("a", "b"), MANY).tolist())) == 4
    assert shards_of(rows, ("a", "b"), MANY).tolist() != shards_of(rows, ("b", "a"), MANY).tolist()


def test_no_keys_and_any_shard():
    rows = pl.DataFrame({"_vs": [5, 6, 5], "a": [1, 2, 3]})
    assert shards_of(rows, (), 3).tolist() == [0, 0, 0]
    by_start = shards_of(rows, None, MANY)
    assert by_start[0] == by_start[2] != by_start[1]
    assert shards_of(rows, None, MANY).dtype == np.int32


# --- for ever ------------------------------------------------------------------------------------------------------


def test_shards_never_change():
    """These numbers determine in which shard state is. If this test fails, no checkpoint can be continued."""
    assert shards([0, 1, 2, -1, None]) == [431529, 912599, 749151, 706306, 119715]
    assert shards([0.0, 0.5, float("nan")]) == [431529, 15172, 75819]
    assert shards(["", "a", "machine 12", "Zürich"]) == [802553, 333667, 714872, 25200]
    assert shards([True]) + shards([datetime(2024, 2, 29, tzinfo=UTC)]) == [912599, 334290]


# --- evenly --------------------------------------------------------------------------------------------------------

KEYS = {
    "consecutive": pl.Series(range(10_000)),
    "even": pl.Series(range(0, 20_000, 2)),
    "thousands": pl.Series(range(0, 10_000_000, 1000)),
    "high bits": pl.Series([i << 40 for i in range(10_000)]),
    "doubles": pl.Series([float(i) for i in range(10_000)]),
    "names": pl.Series([f"machine{i}" for i in range(10_000)]),
    "days": pl.Series([date(1990, 1, 1) + timedelta(days=i) for i in range(10_000)]),
}


@pytest.mark.parametrize("n", [2, 3, 4, 8, 64])
@pytest.mark.parametrize("keys", KEYS)
def test_shards_are_filled_evenly(keys, n):
    """The statistic of a chi-square test: about n - 1 for a fair hash, and far beyond this bound for a poor one."""
    filled = np.bincount(shards(KEYS[keys], n=n), minlength=n)
    expected = len(KEYS[keys]) / n
    assert ((filled - expected) ** 2 / expected).sum() < (n - 1) + 5 * (2 * (n - 1)) ** 0.5


# --- split ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 3), max_size=30), st.integers(4, 6))
def test_split_keeps_every_row_in_its_shard_and_order(ids, n):
    rows = pl.DataFrame({"row": range(len(ids)), "text": [f"t{i}" for i in ids]}, schema={"row": int, "text": str})
    parts = split(rows, np.array(ids, dtype=np.int32), n)
    assert len(parts) == n
    for shard, part in enumerate(parts):
        assert part.schema == rows.schema
        assert part["row"].to_list() == [row for row, id in enumerate(ids) if id == shard]
        assert part["text"].to_list() == [f"t{shard}"] * part.height
