"""Several histories, cut at all their end points together: in between, none of them changes."""

from collections.abc import Iterator
from itertools import pairwise

from cedr.temporal import History, Interval


def common_snapshots(*histories: History) -> Iterator[tuple[Interval, list[History]]]:
    points = sorted({t for h in histories for t in h.end_points()})
    for time in (Interval(*both) for both in pairwise(points)):
        yield time, [History(e.during(time) for e in h if time.start in e.lifetime) for h in histories]
