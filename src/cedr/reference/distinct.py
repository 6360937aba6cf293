"""Distinct: at each instant every payload once, in maximal lifetimes."""

from cedr.temporal import Event, History
from cedr.temporal.interval import merge


def distinct(history: History) -> History:
    return History(
        Event(time.start, time.end, p)
        for p, members in history.groups(lambda p: p).items()
        for time in merge(e.lifetime for e in members)
    )
