"""Chop: every lifetime cut into pieces at the points of a grid."""

from collections.abc import Iterator

from cedr.reference.windows import calendar_cell, grid_point
from cedr.temporal import INF, Event, History, Interval, QueryError
from cedr.temporal.calendar import Calendar
from cedr.temporal.time import as_duration


def chop(history: History, period: int | Calendar, offset: int = 0) -> History:
    if not isinstance(period, Calendar):
        as_duration(period, "period")

    def next_point(t: int) -> int:
        if isinstance(period, Calendar):
            return period.point(calendar_cell(t, period) + 1)
        return grid_point(t, period, offset) + period

    def pieces(e: Event) -> Iterator[Event]:
        if e.ve == INF:
            raise QueryError(
                f"chop by {period}: {e} has no end, so its pieces cannot be counted; clip or window it first"
            )
        start = e.vs
        while start < e.ve:
            end = min(next_point(start), e.ve)
            yield e.during(Interval(start, end))
            start = end

    return History(piece for e in history for piece in pieces(e))
