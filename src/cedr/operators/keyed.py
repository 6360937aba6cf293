"""Stored tuples that belong to a key and have a payload, each by its number: what fronts of keys mean for them."""

import numpy as np

from cedr.columnar.chunk import Times
from cedr.operators.front import Front
from cedr.operators.tuple_store import Mask, TupleStore
from cedr.temporal.time import INF, MIN


def by_payload(times: Times, tuples: TupleStore, payloads: int) -> Times:
    """Times of keys as times of the payloads stored with them; one for all stays one."""
    if len(times) <= 1:
        return times
    found = np.full(payloads, MIN, dtype=np.int64)
    found[tuples.value] = times[tuples.key]
    return found


def first_of_each(g: Times, starts: Times, like: Times) -> Times:
    """The earliest start of each key, INF where there is none; of all together if `like` has one time for all."""
    if len(like) == 1:
        return np.array([starts.min(initial=INF)])
    found = np.full(len(like), INF, dtype=np.int64)
    np.minimum.at(found, g, starts)
    return found


def finished_keys(front: Front, port: int, tuples: TupleStore) -> Mask:
    """The keys of which an input has no tuple stored and brings none any more. That never changes again."""
    return without_tuples(front.of(port) == INF, tuples, len(front.index))


def without_tuples(done: Mask | bool, tuples: TupleStore, keys: int) -> Mask:
    """The keys that are done, one by one or all, and have no tuple."""
    found = np.broadcast_to(done, keys).copy()
    found[tuples.key] = False
    return found
