"""AlterLifetime: the same payloads at other times.

    alter_lifetime(S, f, d) = { (f(e), f(e) + d(e), e.p) | e in S }

An event without an end has no finite length: `of_length` leaves it endless. Times beyond the ends of time are clamped,
and an event entirely beyond them is dropped.

`f` must not decrease when the start grows, or a CTI of the input would imply nothing about the output; `d` must not
grow when the end shrinks, or a retraction would extend a lifetime. The caller guarantees both; the first is checked on
the given events. Not view update compliant: it depends on how a table is cut into events.
"""

from collections.abc import Callable
from itertools import pairwise

from cedr.temporal import INF, Event, History, QueryError
from cedr.temporal.time import as_duration, plus, within_time


def alter_lifetime(
    history: History,
    start: Callable[[Event], int] = lambda e: e.vs,
    duration: Callable[[Event], int] = lambda e: e.lifetime.length,
) -> History:
    altered = [(e, within_time(start(e)), as_duration(within_time(duration(e)), "altered duration")) for e in history]
    for (e1, vs1, _), (e2, vs2, _) in pairwise(altered):
        if vs1 > vs2:
            raise QueryError(
                f"alter_lifetime moves {e1} to {vs1} but the later {e2} to {vs2}; the start function must not decrease"
            )
    return History((vs, plus(vs, d), e.payload) for e, vs, d in altered if vs < INF)


def of_length(f: Callable[[int], int]) -> Callable[[Event], int]:
    """A function of the length, for `alter_lifetime`; endless events stay endless."""
    return lambda e: INF if e.ve == INF else f(e.lifetime.length)


def shift(history: History, by: int) -> History:
    moved = ((e, e.lifetime.shift(by)) for e in history)
    return History((at.start, at.end, e.payload) for e, at in moved if at is not None)
