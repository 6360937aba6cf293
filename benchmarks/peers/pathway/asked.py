"""The questions in Pathway's tables. Times are whole milliseconds, but `ve`, which can be a
microsecond after `vs`, has microseconds.

Windows give each answer once, 5 s after their end, and forget; joins forget what is too old for a partner that is late
by 5 s.
"""

from collections.abc import Callable
from typing import Any

import pathway as pw
from auctions import NEXMARK
from peers.parameters import APART, DELAY, HIGH, HOP, LOW, SCOPE, SLIDING, WINDOW

SECOND = 1_000
Table = pw.Table[Any]
TIMES = {"start", "end", "vs", "ts"}


def windows(events: Table, window: pw.temporal.Window) -> Table:
    late = pw.temporal.exactly_once_behavior(shift=DELAY * SECOND)
    return events.windowby(pw.this.ts, window=window, behavior=late, instance=pw.this.k).reduce(
        k=pw.this._pw_instance,
        start=pw.this._pw_window_start,
        end=pw.this._pw_window_end,
        n=pw.reducers.count(),
        s=pw.reducers.sum(pw.this.v),
        a=pw.reducers.avg(pw.this.v),
        m=pw.reducers.max(pw.this.v),
    )


def hopping(events: Table) -> Table:
    return windows(events, pw.temporal.sliding(hop=HOP * SECOND, duration=WINDOW * SECOND, origin=0))


def tumbling(events: Table) -> Table:
    return windows(events, pw.temporal.tumbling(duration=WINDOW * SECOND, origin=0))


def forgetting(reach: int) -> pw.temporal.CommonBehavior:
    return pw.temporal.common_behavior(cutoff=DELAY * SECOND + reach, keep_results=True)


def join(both: Table) -> Table:
    left, right = both.filter(pw.this.side == 0), both.filter(pw.this.side == 1)
    near = pw.temporal.interval(-(APART - 1), APART - 1)
    late = forgetting(APART)
    pairs = left.interval_join(right, left.ts, right.ts, near, left.k == right.k, behavior=late)
    return pairs.select(
        vs=pw.if_else(left.ts > right.ts, left.ts, right.ts),
        ve=1000 * (pw.if_else(left.ts < right.ts, left.ts, right.ts) + APART),
        k=left.k,
        v=left.v,
        v_right=right.v,
    )


def sliding(events: Table) -> Table:
    before, late = pw.temporal.interval(-(SLIDING * SECOND - 1), 0), forgetting(SLIDING * SECOND)
    other = events.copy()
    pairs = events.interval_join(other, events.ts, other.ts, before, events.k == other.k, behavior=late)
    held = pairs.select(event=events.id, k=events.k, vs=events.ts, v=other.v)
    return held.groupby(held.event, held.k, held.vs).reduce(held.k, held.vs, s=pw.reducers.sum(held.v))


def pattern(events: Table) -> Table:
    firsts = events.filter(pw.this.v < LOW)
    seconds = events.filter((pw.this.v >= LOW) & (pw.this.v < HIGH))
    high = events.filter(pw.this.v >= HIGH).select(pw.this.k, after=pw.this.ts + 1)
    seconds_joined = seconds.asof_join(
        high, seconds.ts, high.after, seconds.k == high.k, how=pw.JoinMode.LEFT, defaults={high.after: 0}
    ).select(seconds.k, seconds.ts, seconds.v, forbidden=high.after - 1)
    scope, late = pw.temporal.interval(1, SCOPE * SECOND), forgetting(SCOPE * SECOND)
    pairs = firsts.interval_join(
        seconds_joined, firsts.ts, seconds_joined.ts, scope, firsts.k == seconds_joined.k, behavior=late
    )
    found = pairs.select(
        vs=seconds_joined.ts,
        start=firsts.ts,
        k=firsts.k,
        first=firsts.v,
        second=seconds_joined.v,
        forbidden=seconds_joined.forbidden,
    ).filter(pw.this.forbidden <= pw.this.start)
    end, least = 1000 * (found.start + SCOPE * SECOND), 1000 * found.vs + 1
    return found.select(found.vs, found.k, found.first, found.second, ve=pw.if_else(end > least, end, least))


ANSWERS: dict[str, tuple[Callable[..., Table], tuple[str, ...]]] = {
    "hopping": (hopping, ("events",)),
    "tumbling": (tumbling, ("events",)),
    "join": (join, ("left", "right")),
    "sliding": (sliding, ("events",)),
    "pattern": (pattern, ("events",)),
    **NEXMARK,
}
MIXED = {join}
"""Those that get all their streams as one table, with a column `side`."""
