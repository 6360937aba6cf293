"""Events near some times, looked up with a directory, against a pass over all events."""

import numpy as np
import pytest

from cedr.kernels import near_events as ne

FIRST_GROUP = -1


def sorted_lists(
    rng: np.random.Generator, sizes: list[int], weights: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    found = []
    for size in sizes:
        g = rng.choice(len(weights), size, p=weights / weights.sum()) + FIRST_GROUP
        vs = rng.integers(0, 50, size)
        order = np.lexsort((vs, g))
        found.append((g[order], vs[order]))
    return found


def some_stretches(rng: np.random.Generator, groups: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of many groups, also of some that have no events, before, between and after the others."""
    chosen = np.flatnonzero(rng.random(groups + 20) < 0.7) + FIRST_GROUP - 10
    low = rng.integers(-5, 50, len(chosen))
    return chosen, low, low + rng.integers(0, 30, len(chosen))


WEIGHTS = {
    "as many events in each group": np.ones(100),
    "most events in one group": np.where(np.arange(100) == 40, 5_000.0, 1.0),
    "gaps between groups": np.where(np.arange(400) % 90 < 3, 1.0, 0.0),
    "one group": np.ones(1),
    "few events in each group": np.ones(3_000),
}


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("sizes", [[0], [1], [7, 0, 3], [2_000, 100, 9], [5_000]], ids=str)
def test_events_near_some_times(weights, sizes):
    rng = np.random.default_rng(len(weights) + sum(sizes))
    lists = sorted_lists(rng, sizes, weights)
    groups, low, high = some_stretches(rng, len(weights))
    begin, end = np.empty((2, len(lists), len(groups)), dtype=np.int64)
    found = np.empty((2, 10_000), dtype=np.int64)
    at = 0
    for i, (g, vs) in enumerate(lists):
        count = ne.near_ranges(g, vs, *ne.directory(g), groups, low, high, begin[i], end[i])
        ne.copy_ranges((g, vs), begin[i], end[i], found, at)
        at += count
    number, order = ne.merge_near(begin, end, found[1, :at])
    shown = [
        (groups[k], *found[:, x], int(np.searchsorted(np.cumsum((end - begin).sum(1)), x, "right")))
        for k, x in zip(number, order, strict=True)
    ]
    wanted = [
        (group, group, start, i)
        for group, a, b in zip(groups, low, high, strict=True)
        for start, i in sorted(
            (v, i) for i, (g, vs) in enumerate(lists) for v in vs[(g == group) & (a <= vs) & (vs <= b)]
        )
    ]
    assert shown == wanted
    assert sorted(order) == list(range(at))


def test_a_directory_shows_where_the_events_of_neighbouring_groups_begin():
    g = np.repeat([3, 4, 9], [10, 20, 30])
    first, shift, places = ne.directory(g)
    assert (first, shift, places.tolist()) == (3, 0, [0, 10, 30, 30, 30, 30, 30, 60])
    first, shift, places = ne.directory(g[::6])
    assert (first, shift, places.tolist()) == (3, 3, [0, 10])
