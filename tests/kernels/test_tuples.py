"""Sweeps over live tuples: asked for few end points or for all, they give the same answers."""

import numpy as np
import pytest

from cedr.kernels import tuples as tu

SWEEPS = {
    "kth": lambda *a: tu.kth(*a, np.arange(9_000), np.arange(9_000) // 2),
    "distinct_counts": tu.distinct_counts,
    "most_frequent": tu.most_frequent,
}


def random_tuples(random, n, groups):
    g, vs = random.integers(0, groups, n), random.integers(0, 100, n)
    ve, copies = vs + random.integers(1, 80, n), random.integers(1, 3, n)
    order = np.lexsort((ve, vs, g))
    return g[order], vs[order], ve[order], copies[order], random.integers(0, n // 4, n)[order]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", [*SWEEPS, "best_k"])
def test_many_tuples_that_start_at_once_are_sorted_together(name, seed):
    random = np.random.default_rng(seed)
    tg, vs, ve, copies, rank = random_tuples(random, 4_000, 3)
    points = np.unique(np.column_stack((np.tile(tg, 2), np.concatenate((vs, ve)))), axis=0)
    g, t = np.ascontiguousarray(points[:, 0]), np.ascontiguousarray(points[:, 1])
    every = np.arange(len(g))
    few = np.sort(random.choice(every, 12, replace=False))
    arguments = tg, vs, ve, copies, tu.by_end(tg, ve), rank
    if name == "best_k":
        which, chosen, place = tu.best_k(g, t, every, *arguments, 5)
        asked = np.isin(which, few)
        expected = few.searchsorted(which[asked]), chosen[asked], place[asked]
        for one, other in zip(tu.best_k(g, t, few, *arguments, 5), expected, strict=True):
            np.testing.assert_array_equal(one, other)
        return
    found, expected = SWEEPS[name](g, t, few, *arguments), SWEEPS[name](g, t, every, *arguments)[few]
    np.testing.assert_array_equal(found, expected)
    assert len(set(found.tolist())) > 1


def test_the_live_tuples_are_those_that_have_begun_and_not_ended():
    random = np.random.default_rng(1)
    tg, vs, ve, copies, rank = random_tuples(random, 1_000, 1)
    which, chosen, _ = tu.best_k(
        tg[:2] * 0, np.array([30, 60]), np.array([0, 1]), tg, vs, ve, copies, tu.by_end(tg, ve), rank, 10**6
    )
    for w, t in enumerate((30, 60)):
        live = np.flatnonzero((vs <= t) & (ve > t))
        expected = np.repeat(live, copies[live])
        mine = chosen[which == w]
        assert sorted(mine.tolist()) == expected.tolist()
        assert (np.diff(rank[mine]) >= 0).all()
