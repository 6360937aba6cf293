"""Any operator over histories of versions: at each instant of occurrence time, the operator over valid time.

This is the shredded canonical form of the CEDR paper, one interval at a time instead of one chronon: between two
neighbouring occurrence end points of any input nothing changes, so the operator sees one valid-time history there.
Results that go on in the next interval are one event again.
"""

from collections.abc import Callable
from itertools import pairwise

from cedr.temporal import Event, History, Version, known_at


def per_occurrence(
    operator: Callable[..., History], *inputs: History, view: Callable[[History, int], History] = known_at
) -> History:
    """`operator` takes and gives valid-time histories; the result is a history of versions with id None.

    An operator that needs the ids of its input (patterns do) takes the view `versions_at` and gives `Version` payloads.
    """
    points = sorted({point for history in inputs for point in history.end_points()})
    pieces = (
        Event(os, oe, e.payload if isinstance(e.payload, Version) else Version(None, *e))
        for os, oe in pairwise(points)
        for e in operator(*(view(history, os) for history in inputs))
    )
    return History(pieces).coalesce()


def versions_at(history: History, occurrence: int) -> History:
    """Like `known_at`, but each payload is the whole version, id included."""
    return History((e.payload.vs, e.payload.ve, e.payload) for e in history if occurrence in e.lifetime)
