"""The first or last event that fits, where a parameter selects and a condition compares it with others.

Which event is left for a completing one is known only when the condition was evaluated. To evaluate it for all pairs of
events is quadratic where a key is dense, and usually one of the first events fits.
"""

from collections.abc import Callable

import numpy as np

from cedr.columnar.chunk import Times
from cedr.kernels.instances import expanded
from cedr.operators.patterns.instances import Mask

AT_FIRST = 16
"""Places of each range that `first_fitting` looks at first. Tests set it to 1."""


def first_fitting(
    low: Times, high: Times, last: bool, fits: Callable[[Times, Times], Mask], at_first: int | None = None
) -> tuple[Times, Times]:
    """Pairs `(i, x)` of x in [low[i], high[i]) that fit, as `expanded`; of each i only some, with the first x, or the
    last, among them.

    It looks at some places of each range, then at twice as many of those where none fits, and so on.
    """
    low, high = low.copy(), high.copy()
    pairs = [(low[:0], low[:0])]
    pending, size = np.flatnonzero(low < high), at_first or AT_FIRST
    while len(pending):
        begin, end = low[pending], high[pending]
        if last:
            begin = high[pending] = np.maximum(begin, end - size)
        else:
            end = low[pending] = np.minimum(end, begin + size)
        which, places = expanded(begin, end)
        which = pending[which]
        fitting = fits(which, places)
        pairs.append((which[fitting], places[fitting]))
        done = low >= high
        done[which[fitting]] = True
        pending, size = pending[~done[pending]], 2 * size
    which, places = (np.concatenate(both) for both in zip(*pairs, strict=True))
    order = np.lexsort((places, which))
    return which[order], places[order]
