"""Fixed point: of every snapshot the least set that its body derives from itself (FFP, 3.2).

    X0 = {}        X(i+1) = best(seed + body(Xi, others))        the answer at t is the X that no longer changes

where seed and others are taken at t. `best` keeps every payload once (`distinct`), or of each group the one that comes
first in an order (a monotone aggregate such as min). So the answer is a set, copies do not count, and it has maximal
lifetimes. It is the least one: what only supports itself is not in it. `body` must be monotone in its first argument,
and must look at one instant at a time: it may not move lifetimes.
"""

from collections.abc import Callable
from itertools import pairwise

from cedr.reference.distinct import distinct
from cedr.temporal import History, Interval, QueryError

Body = Callable[..., History]
"""From the history of the loop, and the other inputs, to what is derived from them."""

Best = Callable[[History], History]


def fixed_point(body: Body, seed: History, *others: History, best: Best = distinct, most: int = 1000) -> History:
    """The least fixed point of each snapshot; one that is not reached in `most` rounds is an error."""
    inputs = (seed, *others)
    points = sorted({t for h in inputs for t in h.end_points()})
    found = History()
    for time in (Interval(*both) for both in pairwise(points)):
        now = [History(e.during(time) for e in h.at(time.start)) for h in inputs]
        found += least(body, now[0], now[1:], best, most)
    return distinct(found)


def least(body: Body, seed: History, others: list[History], best: Best, most: int) -> History:
    """The fixed point of one snapshot, from nothing upwards."""
    known = History()
    for _ in range(most):
        grown = distinct(best(seed + body(known, *others)))
        if grown == known:
            return known
        known = grown
    raise QueryError(f"no fixed point after {most} rounds")
