"""Temporal slicing, `Q @ [o1, o2) # [v1, v2)`: the tuples that overlap the slice, cut to it.

`@` slices occurrence time, `#` valid time. In a history without occurrence time both are its one axis; in a history of
versions, `@` is the axis of the history and `#` the one inside the versions.
"""

from cedr.temporal import Event, History, Interval, Version


def slice_occurrence(history: History, slice: Interval) -> History:
    return History(e.during(cut) for e in history if (cut := e.lifetime.intersection(slice)))


def slice_valid(history: History, slice: Interval) -> History:
    def cut(e: Event) -> Event | None:
        if not isinstance(e.payload, Version):
            inside = e.lifetime.intersection(slice)
            return e.during(inside) if inside else None
        inside = e.payload.valid.intersection(slice)
        return e._replace(payload=e.payload._replace(vs=inside.start, ve=inside.end)) if inside else None

    return History(piece for e in history if (piece := cut(e)))
