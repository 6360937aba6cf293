"""Windows: lifetimes chosen so that each snapshot of the result holds what a window holds.

    sliding(w)                   [vs, vs + w)           an event counts for w from its start on
    moving(w)                    [vs, min(ve, vs + w))  the same, but no longer than it lives
    hopping(size, hop, offset)   [g, g + size)          g: the last grid point at or before vs
    tumbling(size)               hopping(size, size)
    inserts                      [vs, ∞)
    deletes                      [ve, ∞)                events that never end have no delete

With a hopping window the snapshot `[g, g + hop)` is the window `[g + hop - size, g + hop)`, provided that whole hops
make up the size; `hopping` insists on that. Windows that reach beyond the ends of time are cut there.
"""

from typing import Any

from cedr.reference.alter_lifetime import alter_lifetime
from cedr.temporal import INF, Event, History, Interval, QueryError
from cedr.temporal.calendar import Calendar
from cedr.temporal.time import as_duration, within_time


def sliding(history: History, w: int) -> History:
    length = as_duration(w, "window length")
    return alter_lifetime(history, duration=lambda e: length)


def moving(history: History, w: int) -> History:
    length = as_duration(w, "window length")
    return alter_lifetime(history, duration=lambda e: min(e.lifetime.length, length))


def hopping(history: History, size: int, hop: int, offset: int = 0) -> History:
    if as_duration(size, "window size") % as_duration(hop, "hop") or INF in (size, hop):
        raise QueryError(f"hopping window of size {size} and hop {hop}: the size must be a finite multiple of the hop")

    def lifetime(e: Event) -> tuple[int, int, Any]:
        start = grid_point(e.vs, hop, offset)
        return within_time(start), within_time(start + size), e.payload

    return History(map(lifetime, history))


def tumbling(history: History, size: int, offset: int = 0) -> History:
    return hopping(history, size, size, offset)


def calendar_windows(history: History, grid: Calendar) -> History:
    """Hopping windows on a grid of days, weeks or months of a zone: from the last point at or before the start on."""

    def lifetime(e: Event) -> tuple[int, int, Any]:
        cell = calendar_cell(e.vs, grid)
        return grid.point(cell), grid.point(cell + grid.cells), e.payload

    return History(map(lifetime, history))


def calendar_cell(t: int, grid: Calendar) -> int:
    """The last cell that begins at or before t: searched by halving, as cells follow each other."""
    low, high = -(2**40), 2**40
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if grid.point(middle) <= t else (low, middle)
    return low


def inserts(history: History) -> History:
    return alter_lifetime(history, duration=lambda e: INF)


def deletes(history: History) -> History:
    return History(Event(e.ve, INF, e.payload) for e in history if e.ve != INF)


def grid_point(t: int, hop: int, offset: int = 0) -> int:
    """The last point of the grid `offset + k * hop` at or before t; it may lie before the first chronon."""
    return (t - offset) // hop * hop + offset


def window_of(snapshot: Interval, size: int, hop: int, offset: int = 0) -> Interval:
    """The window whose content a snapshot of `hopping(size, hop, offset)` shows."""
    end = grid_point(snapshot.start, hop, offset) + hop
    return Interval(within_time(end - size), within_time(end))
