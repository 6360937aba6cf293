"""Arithmetic on columns of times, compared with Python's whole numbers, which never wrap around."""

import numpy as np
import pytest

from cedr.columnar.times import since_grid
from cedr.temporal.time import INF, MIN


@pytest.mark.parametrize("hop", [1, 2, 7, 10**7, 2**61 + 5, INF - 1])
@pytest.mark.parametrize("offset", [0, 3, -5, 10**9 + 1])
def test_since_grid_holds_to_both_ends_of_time(hop: int, offset: int) -> None:
    times = np.concatenate((np.random.default_rng(1).integers(MIN, INF, 1000), [MIN, MIN + 1, -1, 0, 1, INF - 1, INF]))
    assert since_grid(times, hop, offset).tolist() == [(time - offset) % hop for time in times.tolist()]
