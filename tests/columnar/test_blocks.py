"""Sorted blocks against a dict of rows."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cedr.columnar import blocks
from cedr.columnar.blocks import SortedBlocks
from cedr.kernels import blocks as kernels

keys = st.tuples(st.integers(0, 3), st.integers(0, 9))
rows = st.lists(st.tuples(keys, st.integers(-2, 2), st.integers(-5, 5)), max_size=40)
removals = st.tuples(st.floats(0, 1), st.integers(0, 9))
"""How much of the content is removed, and whether from the beginning (0) or anywhere."""
changes = st.lists(st.one_of(rows, removals), max_size=12)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 4)
    monkeypatch.setattr(blocks, "SEGMENT_BITS", 1)
    monkeypatch.setattr(blocks, "AT_ONCE", 3)


def as_rows(chunk) -> np.ndarray:
    return np.array([[*key, k, w] for key, k, w in sorted(chunk)], dtype=np.int64).reshape(-1, 4)


def as_chunk(content: dict, change) -> list:
    """A change as rows: as they are, or those that remove a part of the content, from the beginning or anywhere."""
    if isinstance(change, list):
        return change
    share, seed = change
    there = sorted(content.items())
    gone = there[: round(share * len(there))] if seed == 0 else Random(seed).sample(there, round(share * len(there)))
    return [(key, -k, -w) for key, (k, w) in gone]


def applied(content: dict, chunk) -> dict:
    content = dict(content)
    for key, k, w in chunk:
        before = content.get(key, (0, 0))
        content[key] = before[0] + k, before[1] + w
    return {key: values for key, values in content.items() if values[0]}


def entries(store: SortedBlocks) -> list[int]:
    """The lines of the entries of the directory, in order."""
    lines = store.segments[: store.numbers[kernels.SEGMENTS]].tolist()
    return [(number << store.bits) + i for number, size, *_ in lines for i in range(size)]


def check(store: SortedBlocks, content: dict) -> None:
    """The content, and what `cedr.kernels.blocks` promises about the arrays."""
    assert store.flat().tolist() == [[*key, *values] for key, values in sorted(content.items())]
    assert store.rows == len(content)
    place, size, *first = store.entries[entries(store)].T
    assert ((size > 0) & (size <= store.block)).all()
    assert np.column_stack(first).tolist() == store.pool[place * store.block, :2].tolist()
    number, size, *first = store.segments[: store.numbers[kernels.SEGMENTS]].T
    assert ((size > 0) & (size <= 1 << store.bits)).all()
    assert np.column_stack(first).tolist() == store.entries[number << store.bits, 2:].tolist()
    free = listed(*store.numbers[[kernels.FIRST_FREE, kernels.FREE]], store.pool[:: store.block, 0])
    assert sorted([*place.tolist(), *free]) == list(range(store.numbers[kernels.USED]))
    heads = store.numbers[[kernels.FIRST_FREE_SEGMENT, kernels.FREE_SEGMENTS]]
    free = listed(*heads, store.entries[:: 1 << store.bits, 0])
    assert sorted([*number.tolist(), *free]) == list(range(store.numbers[kernels.USED_SEGMENTS]))


def listed(first, count, following) -> list[int]:
    found = []
    for _ in range(count):
        found.append(int(first))
        first = following[first]
    return found


def filled(chunks) -> tuple[SortedBlocks, dict]:
    store, content = SortedBlocks(4, 2, 2), {}
    for change in chunks:
        chunk = as_chunk(content, change)
        store.add(as_rows(chunk))
        content = applied(content, chunk)
        check(store, content)
    return store, content


@settings(max_examples=150)
@given(changes)
def test_added_rows_are_summed_up(chunks):
    store, content = filled(chunks)
    first = store.head(3).tolist()
    assert first == [[*key, *values] for key, values in sorted(content.items())][:3]


long_keys = st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 15))


@settings(max_examples=150)
@given(st.lists(st.lists(st.tuples(long_keys, st.integers(-1, 2)), max_size=40), max_size=8))
def test_rows_whose_keys_begin_alike(chunks):
    """A search compares two numbers of each key first, and the others where those are equal."""
    store, content = SortedBlocks(4, 3, 3), {}
    every = [(a, b, c) for a in range(2) for b in range(2) for c in range(16)]
    for chunk in chunks:
        store.add(np.array([[*key, k] for key, k in sorted(chunk)], dtype=np.int64).reshape(-1, 4))
        for key, k in chunk:
            content[key] = content.get(key, 0) + k
        content = {key: k for key, k in content.items() if k}
        assert store.flat().tolist() == [[*key, k] for key, k in sorted(content.items())]
        assert store.of_keys(np.array(every)).tolist() == [[*key, content.get(key, 0)] for key in every]


@settings(max_examples=150)
@given(changes, st.lists(st.tuples(keys, keys), max_size=6), st.booleans())
def test_rows_between_two_keys(chunks, pairs, short):
    store, content = filled(chunks)
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


@settings(max_examples=150)
@given(changes, st.booleans())
def test_positions_forwards_and_backwards(chunks, back):
    store, content = filled(chunks)
    directory, n = store.arrays[1:], len(content)
    last = kernels.end(store.numbers)
    b, i = (last, 0) if back else (0, 0)
    seen = []
    for _ in range(n):
        if back:
            b, i = kernels.previous_row(*directory, b, i)
        seen.append(store.pool[kernels.row_at(*directory, b, i), :2].tolist())
        if not back:
            b, i = kernels.next_row(*directory, b, i)
    assert (b, i) == ((0, 0) if back else (last, 0))
    assert seen == sorted(map(list, content), reverse=back)


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


def test_rows_in_order_fill_their_blocks():
    store = SortedBlocks(4, 2, 2)
    for t in range(64):
        store.add(as_rows([((0, t), 1, 1)]))
    assert (store.entries[entries(store)[1:-1], kernels.SIZE] == store.block).all()


def test_blocks_that_shrink_are_united():
    store, content = filled([[((0, t), 1, 1) for t in range(400)]])
    kept = {key: values for key, values in content.items() if key[1] % 10 == 0}
    for key in content.keys() - kept.keys():
        store.add(as_rows([(key, -1, -1)]))
    check(store, kept)
    assert len(entries(store)) <= len(kept) // 2 + int(store.numbers[kernels.SEGMENTS])
