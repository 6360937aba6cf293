"""Identity of rows: equal rows share a number, unequal rows never do, whatever their hashes."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr.columnar import index as index_module
from cedr.columnar.index import NULL_WORD, RowIndex
from cedr.kernels import hash_table

values = st.lists(
    st.fixed_dictionaries(
        {
            "i": st.one_of(st.none(), st.integers(-2, 2)),
            "f": st.one_of(st.none(), st.sampled_from([0.0, -0.0, float("nan"), 1.5, float("inf")])),
            "s": st.one_of(st.none(), st.sampled_from(["", "a", "ab"])),
            "l": st.one_of(st.none(), st.lists(st.integers(0, 1), max_size=2)),
            "r": st.one_of(st.none(), st.fixed_dictionaries({"x": st.integers(0, 1), "y": st.just("z")})),
        }
    ),
    min_size=1,
    max_size=12,
)
SCHEMA = {
    "i": pl.Int64(),
    "f": pl.Float64(),
    "s": pl.String(),
    "l": pl.List(pl.Int64),
    "r": pl.Struct({"x": pl.Int64, "y": pl.String}),
}


@pytest.fixture(autouse=True, params=[0, 16])
def in_cache(request, monkeypatch):
    """Memory is requested before a search, or only if there are more than a few rows."""
    monkeypatch.setattr(hash_table, "IN_CACHE", request.param)


class Colliding(RowIndex):
    """Every row has one of two hashes."""

    def hashes(self, rows):
        return super().hashes(rows)[0] % np.uint64(2), False


def identity(row):
    return repr([0.0 if v == 0.0 else v for v in row])


@pytest.mark.parametrize("kind", [RowIndex, Colliding])
@given(data=values, cut=st.integers(0, 12))
def test_equal_rows_share_a_number_and_others_do_not(kind, data, cut):
    frame = pl.DataFrame(data, schema=SCHEMA)
    index = kind(SCHEMA)
    ids = np.concatenate([index.ids(frame[:cut]), index.ids(frame[cut:])])
    seen = {}
    for row, number in zip(frame.iter_rows(), ids, strict=True):
        assert seen.setdefault(identity(row), number) == number
    assert len(set(ids.tolist())) == len(seen) == len(index)
    assert [identity(row) for row in index.take(ids).iter_rows()] == [identity(row) for row in frame.iter_rows()]


@pytest.mark.parametrize("kind", [RowIndex, Colliding])
@given(data=values)
def test_numbers_survive_a_snapshot(kind, data):
    frame = pl.DataFrame(data, schema=SCHEMA)
    index, restored = kind(SCHEMA), kind(SCHEMA)
    ids = index.ids(frame)
    restored.restore(index.snapshot())
    assert (restored.ids(frame) == ids).all()
    assert (restored.ids(frame, add=False) == ids).all()


def test_a_number_that_looks_like_a_missing_value_is_not_one():
    index, restored = RowIndex({"v": pl.Int64()}), RowIndex({"v": pl.Int64()})
    frame = pl.DataFrame({"v": [NULL_WORD, None, 5]})
    ids = index.ids(frame).tolist()
    assert sorted(ids) == [0, 1, 2]
    restored.restore(index.snapshot())
    assert restored.ids(frame).tolist() == ids


def test_unknown_rows_have_no_number_unless_they_are_added():
    index = RowIndex({"v": pl.String()})
    assert index.ids(pl.DataFrame({"v": ["a"]}), add=False).tolist() == [-1]
    assert len(index) == 0


@pytest.mark.parametrize("schema", [{"v": pl.Int64()}, {"v": pl.Int64(), "s": pl.String()}])
def test_compact_forgets_what_is_not_used(schema):
    index = RowIndex(schema)
    frame = pl.DataFrame({"v": range(5000)}).with_columns(s=pl.col("v").cast(pl.String))
    ids = index.ids(frame)
    numbers = index.compact(ids[:10])
    assert numbers[:10].tolist() == list(range(10))
    assert len(index) == 10
    assert index.ids(frame[:10]).tolist() == list(range(10))


@pytest.mark.parametrize(("many_rows", "most_pieces"), [(0, 7 * 4), (10_000, 10)])
def test_small_pieces_are_merged(many_rows, most_pieces, monkeypatch):
    monkeypatch.setattr(index_module, "MANY_ROWS", many_rows)
    index = RowIndex({"v": pl.Int64()})
    for v in range(600):
        assert index.ids(pl.DataFrame({"v": [v]})).tolist() == [v]
    assert len(index._pieces) <= most_pieces
    assert index.take(np.arange(600))["v"].to_list() == list(range(600))
