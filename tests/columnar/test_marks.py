"""Marks give what a mask gives, whether they are read by a pass or by sorting."""

import random

import numpy as np
import pytest

from cedr.columnar import marks
from cedr.columnar.marks import Marks


@pytest.mark.parametrize("seed", range(10))
def test_marks_give_what_a_mask_gives(seed, monkeypatch):
    choose = random.Random(seed)
    monkeypatch.setattr(marks, "PASS", choose.choice([0, 8, 10_000]))
    size = choose.randrange(20)
    found, expected = Marks(size, marked=True), set(range(size))
    for _ in range(60):
        if choose.random() < 0.3:
            size += choose.randrange(40)
            found.grow(size)
        more = np.array([choose.randrange(size) for _ in range(choose.randrange(9)) if size], dtype=np.int64)
        found.add(more)
        expected |= set(more.tolist())
        assert bool(found) == bool(expected)
        assert found.numbers().tolist() == sorted(expected)
        if choose.random() < 0.2:
            found.clear()
            expected = set()
        if choose.random() < 0.2:
            kept = np.array([choose.random() < 0.6 for _ in range(size)], dtype=np.bool_)
            numbers = np.where(kept, np.cumsum(kept) - 1, -1)
            size = int(kept.sum())
            found, expected = found.renumbered(numbers, size), {int(numbers[x]) for x in expected if kept[x]}
