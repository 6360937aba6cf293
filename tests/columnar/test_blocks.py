"""Sorted blocks against a dict of rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cedr.columnar import blocks
from cedr.columnar.blocks import SortedBlocks

keys = st.tuples(st.integers(0, 5), st.integers(-9, 9))
changes = st.lists(st.lists(st.tuples(keys, st.integers(-2, 2), st.integers(-5, 5)), max_size=12), max_size=12)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 4)


def as_rows(chunk) -> np.ndarray:
    return np.array([[*key, k, w] for key, k, w in sorted(chunk)], dtype=np.int64).reshape(-1, 4)


def applied(content: dict, chunk) -> dict:
    content = dict(content)
    for key, k, w in chunk:
        before = content.get(key, (0, 0))
        content[key] = before[0] + k, before[1] + w
    return {key: values for key, values in content.items() if values[0]}


def check(store: SortedBlocks, content: dict) -> None:
    assert store.flat().tolist() == [[*key, *values] for key, values in sorted(content.items())]
    assert store.rows == len(content)
    assert (store.size > 0).all()
    assert (store.size <= store.block).all()
    assert store.first.tolist() == [store.pool[p * store.block, :2].tolist() for p in store.place]
    assert len({*store.place.tolist(), *store.free.tolist()}) == store.used


@given(changes)
def test_added_rows_are_summed_up(chunks):
    store, content = SortedBlocks(4, 2, 2), {}
    for chunk in chunks:
        store.add(as_rows(chunk))
        content = applied(content, chunk)
        check(store, content)


@given(changes, st.lists(st.tuples(keys, keys), max_size=6), st.booleans())
def test_rows_between_two_keys(chunks, pairs, short):
    store, content = SortedBlocks(4, 2, 2), {}
    for chunk in chunks:
        store.add(as_rows(chunk))
        content = applied(content, chunk)
    pairs = sorted((min(pair), max(pair)) for pair in pairs)
    depth = 1 if short else 2
    low, high = ([np.array([pair[side][m] for pair in pairs], dtype=np.int64) for m in range(depth)] for side in (0, 1))
    which, rows = store.between(low, high)
    expected = [
        (q, [*key, *values])
        for q, (a, b) in enumerate(pairs)
        for key, values in sorted(content.items())
        if a[:depth] <= key[:depth] < b[:depth]
    ]
    assert list(zip(which.tolist(), rows.tolist(), strict=True)) == expected


def test_many_rows_at_once_and_one_by_one():
    random = np.random.default_rng(1)
    store, content = SortedBlocks(4, 2, 2), {}
    for size in [3000, *[1] * 300, 700, *[5] * 100]:
        chunk = [((int(a), int(b)), int(k), 1) for a, b, k in random.integers(-40, 40, (size, 3))]
        store.add(as_rows(chunk))
        content = applied(content, chunk)
    check(store, content)
    store.add(as_rows([(key, -k, -w) for key, (k, w) in content.items()]))
    check(store, {})
    store.add(as_rows([((1, 2), 1, 1)]))
    check(store, {(1, 2): (1, 1)})
