"""Snapshot-oriented operators: a function of the events that live together, per group.

    snapshot(S, f) = { (v, v.next, r) | v an end point of S but the last, r in f(F_v), F_v not empty }

where `F_v` are the events that cover `[v, v.next)`. Each group has its own end points. Neighbouring results are not
merged, even when they are equal; an empty snapshot gives nothing.
"""

from collections.abc import Callable, Iterable
from typing import Any

from cedr.temporal import Event, History


def snapshot(
    history: History, f: Callable[[list[Event]], Iterable[Any]], by: Callable[[Any], Any] = lambda p: None
) -> History:
    return History(
        (time.start, time.end, result)
        for group in history.groups(by).values()
        for time, events in group.snapshots()
        for result in f(events)
    )
