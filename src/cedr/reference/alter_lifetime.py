"""AlterLifetime: the same payloads at other times.

    alter_lifetime(S, f, d) = { (f(e), f(e) + d(e), e.p) | e in S }

`f` must not decrease when the start grows, or a CTI of the input would say nothing about the output; `d` must not
grow when the end shrinks, or a retraction would extend a lifetime. Both are the caller's promise; the first is
checked on the events at hand. Not view update compliant: it looks at how a table is cut into events.
"""

from collections.abc import Callable
from itertools import pairwise

from cedr.temporal import Event, History, QueryError
from cedr.temporal.time import as_duration, as_time, plus


def alter_lifetime(
    history: History,
    start: Callable[[Event], int] = lambda e: e.vs,
    duration: Callable[[Event], int] = lambda e: e.lifetime.length,
) -> History:
    altered = [(e, as_time(start(e), "altered start"), as_duration(duration(e), "altered duration")) for e in history]
    for (e1, vs1, _), (e2, vs2, _) in pairwise(altered):
        if vs1 > vs2:
            raise QueryError(
                f"alter_lifetime moves {e1} to {vs1} but the later {e2} to {vs2}; the start function must not decrease"
            )
    return History((vs, plus(vs, d), e.payload) for e, vs, d in altered)
