"""Calendar grids for arrays of times: the cell of each time, and the instants at which cells begin.

Python's time zones are used once for each cell that occurs, not for each row.
"""

import numpy as np

from cedr.columnar.times import Times
from cedr.temporal.calendar import DAY, MONDAY, Calendar
from cedr.temporal.time import MIN

FURTHEST = 2 * DAY
"""Upper limit of the difference between local time and UTC."""


def cells_of(grid: Calendar, times: Times) -> Times:
    """The number of the cell in which each time lies."""
    rough, where = np.unique(units(grid, np.maximum(times, MIN + 1)), return_inverse=True)
    shift = 1 + (grid.offset + FURTHEST) // (28 * DAY if grid.unit == "month" else DAY)
    step = grid.count * (7 if grid.unit == "week" else 1)
    first = (rough - shift) // step
    tried = 3 + (shift + 3) // step
    points = instants(grid, first[:, None] + np.arange(tried))
    return first[where] + (points[where] <= times[:, None]).sum(axis=1) - 1


def units(grid: Calendar, times: Times) -> Times:
    """Days or months since the grid's origin, in UTC."""
    if grid.unit == "month":
        return times.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)
    return times // DAY - (MONDAY if grid.unit == "week" else 0)


def instants(grid: Calendar, cells: Times) -> Times:
    """When cells begin."""
    different, where = np.unique(cells, return_inverse=True)
    found = np.array([grid.point(number) for number in different.tolist()], dtype=np.int64)
    return found[where].reshape(cells.shape)
