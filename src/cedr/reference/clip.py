"""Clip: an event ends early, at the first start of a matching event of the other stream strictly inside it."""

from collections.abc import Callable
from typing import Any

from cedr.reference.join import always
from cedr.temporal import Event, History


def clip(history: History, other: History, on: Callable[[Any, Any], Any] = always) -> History:
    def end(e: Event) -> int:
        return min((o.vs for o in other if e.vs < o.vs < e.ve and on(e.payload, o.payload)), default=e.ve)

    return History(Event(e.vs, end(e), e.payload) for e in history)
