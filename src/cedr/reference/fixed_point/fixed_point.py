"""Fixed point: of every snapshot the least set that its body derives from itself (FFP, 3.2).

    X0 = {}        X(i+1) = best(seed + body(Xi, others))        the answer at t is the X that no longer changes

where seed and others are taken at t. `best` keeps every payload once (`distinct`), or of each group the one that comes
first in an order (a monotone aggregate such as min). So the answer is a set, copies do not count, and it has maximal
lifetimes. It is the least one: what only supports itself is not in it. `body` must be monotone in its first argument,
and must look at one instant at a time: it may not move lifetimes.
"""

from collections.abc import Callable

from cedr.reference.distinct import distinct
from cedr.reference.fixed_point.snapshots import common_snapshots
from cedr.temporal import History, QueryError

Body = Callable[..., History]
"""From the history of the loop, and the other inputs, to what is derived from them."""

Best = Callable[[History], History]


def fixed_point(body: Body, seed: History, *others: History, best: Best = distinct, most: int = 1000) -> History:
    """The least fixed point of each snapshot; one that is not reached in `most` rounds is an error."""
    found = History()
    for _, (first, *rest) in common_snapshots(seed, *others):
        found += least(body, first, rest, best, most)
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
