"""Fixed point: for every snapshot the least set that the body derives from itself (FFP, 3.2).

    X0 = {}        X(i+1) = best(seed + body(Xi, others))        the result at t is the X that no longer changes

where seed and others are taken at t. `best` keeps every payload once (`distinct`), or of each group the one that comes
first in an order (a monotone aggregate such as min). So the result is a set, copies do not count, and it has maximal
lifetimes. It is the least one: rows that only derive each other are not in it. `body` must be monotone in its first
argument, and must not move lifetimes.
"""

from collections.abc import Callable

from cedr.reference.distinct import distinct
from cedr.reference.fixed_point.snapshots import common_snapshots
from cedr.temporal import History, QueryError

Body = Callable[..., History]
"""From the history of the loop and the other inputs to the rows derived from them."""

Best = Callable[[History], History]


def fixed_point(body: Body, seed: History, *others: History, best: Best = distinct, most: int = 1000) -> History:
    """The least fixed point of each snapshot; an error if it is not reached in `most` rounds."""
    found = History()
    for _, (first, *rest) in common_snapshots(seed, *others):
        found += least(body, first, rest, best, most)
    return distinct(found)


def least(body: Body, seed: History, others: list[History], best: Best, most: int) -> History:
    """The fixed point of one snapshot, starting with the empty set."""
    derived = History()
    for _ in range(most):
        grown = distinct(best(seed + body(derived, *others)))
        if grown == derived:
            return derived
        derived = grown
    raise QueryError(f"no fixed point after {most} rounds")
