"""Stored tuples that belong to a key and have a payload, each by its number: what fronts of keys mean for them."""

from typing import Any

import numpy as np

from cedr.columnar.chunk import Times
from cedr.operators.front import Front
from cedr.temporal.time import INF, MIN

Tuples = tuple[Times, ...]
"""Key number, start, end, payload number and copies, sorted."""

Mask = np.ndarray[Any, np.dtype[np.bool_]]


def kept(tuples: Tuples, mask: Mask) -> Tuples:
    return tuples if mask.all() else tuple(a[mask] for a in tuples)


def by_payload(times: Times, tuples: Tuples, payloads: int) -> Times:
    """Times of keys as times of the payloads stored with them; one for all stays one."""
    if len(times) <= 1:
        return times
    found = np.full(payloads, MIN, dtype=np.int64)
    found[tuples[3]] = times[tuples[0]]
    return found


def first_of_each(g: Times, starts: Times, like: Times) -> Times:
    """The earliest start of each key, INF where there is none; of all together if `like` has one time for all."""
    if len(like) == 1:
        return np.array([starts.min(initial=INF)])
    found = np.full(len(like), INF, dtype=np.int64)
    np.minimum.at(found, g, starts)
    return found


def done(front: Front, port: int, tuples: Tuples) -> Mask:
    """The keys of which an input has no tuple stored and brings none any more. That never changes again."""
    found = np.broadcast_to(front.of(port) == INF, len(front.index)).copy()
    found[tuples[0]] = False
    return found
