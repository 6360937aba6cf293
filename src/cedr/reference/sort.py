"""Sort: the events in an order of their payloads. The history does not change, only the order of emission.

Events that are equal in all given columns are ordered by start, end and payload. Missing values come last, whether
descending or not.
"""

from collections.abc import Sequence

from cedr.temporal import Event, History
from cedr.temporal.row import order_key


def sort(history: History, by: Sequence[str], descending: bool = False) -> list[Event]:
    events = sorted(history, key=lambda e: (e.vs, e.ve, order_key(e.payload)))
    for name in reversed(by):
        events = by_one(events, name, descending)
    return events


def by_one(events: list[Event], name: str, descending: bool) -> list[Event]:
    present = [e for e in events if e.payload[name] is not None]
    present.sort(key=lambda e: order_key(e.payload[name]), reverse=descending)
    return [*present, *(e for e in events if e.payload[name] is None)]
