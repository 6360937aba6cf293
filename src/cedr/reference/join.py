"""Join: pairs of events during the time both live.

    inner   (p1, p2) during the intersection of both lifetimes, where the predicate holds
    left    inner, and (p1, None) while p1 has no partner
    full    left, and (None, p2) while p2 has no partner
    semi    p1 while it has a partner
    anti    p1 while it has none

An event of one side without partner keeps one piece per gap between its partners.
"""

from collections.abc import Callable
from typing import Any, Literal

from cedr.reference.project import project
from cedr.temporal import Event, History, Interval
from cedr.temporal.interval import merge, subtract

How = Literal["inner", "left", "full", "semi", "anti"]
Theta = Callable[[Any, Any], Any]


def always(p1: Any, p2: Any) -> bool:
    return True


def pair(p1: Any, p2: Any) -> Any:
    return (p1, p2)


def join(
    left: History, right: History, on: Theta = always, how: How = "inner", combine: Callable[[Any, Any], Any] = pair
) -> History:
    match how:
        case "inner":
            return inner_join(left, right, on, combine)
        case "left":
            alone = project(anti_join(left, right, on), lambda p: combine(p, None))
            return inner_join(left, right, on, combine) + alone
        case "full":
            alone = project(anti_join(right, left, lambda p2, p1: on(p1, p2)), lambda p: combine(None, p))
            return join(left, right, on, "left", combine) + alone
        case "semi":
            return semi_join(left, right, on)
        case "anti":
            return anti_join(left, right, on)


def inner_join(left: History, right: History, on: Theta = always, combine: Callable[[Any, Any], Any] = pair) -> History:
    return History(
        (common.start, common.end, combine(e1.payload, e2.payload))
        for e1 in left
        for e2 in right
        if on(e1.payload, e2.payload) and (common := e1.lifetime.intersection(e2.lifetime))
    )


def semi_join(left: History, right: History, on: Theta = always) -> History:
    return History(e.during(time) for e in left for time in partnered(e, right, on))


def anti_join(left: History, right: History, on: Theta = always) -> History:
    return History(e.during(time) for e in left for time in subtract(e.lifetime, partnered(e, right, on)))


def partnered(event: Event, others: History, on: Theta) -> list[Interval]:
    """When the event has a partner."""
    partners = (o.lifetime.intersection(event.lifetime) for o in others if on(event.payload, o.payload))
    return merge(time for time in partners if time)
