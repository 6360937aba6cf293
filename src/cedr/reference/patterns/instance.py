"""Instances: events as patterns see them, primitive or composite, with their header.

id     `idgen` of the contributors' ids: different contributors, different id
vs, ve the lifetime
rt     root time: the earliest start of anything that took part
cbt    the contributors in order, empty for a primitive event
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cedr.temporal import Event, History, Version
from cedr.temporal.row import order_key
from cedr.temporal.time import plus


@dataclass(frozen=True)
class Instance:
    id: Any
    vs: int
    ve: int
    rt: int
    payload: Any
    cbt: tuple["Instance", ...] = ()
    roles: tuple[int, ...] = ()
    """The parameter that each contributor fills; selection and consumption depend on it."""
    bound: dict[str, "Instance"] = field(default_factory=dict, compare=False)
    """The variables of the query this instance gives a value to."""
    leaves: tuple["Instance", ...] = ()
    """The primitive events in it; a primitive instance is its own only leaf."""

    @property
    def order(self) -> tuple[int, Any]:
        """Instances are taken in the order of start, then id."""
        return (self.vs, order_key(self.id))

    def called(self, variable: str | None) -> "Instance":
        """The same instance, with a variable bound to it."""
        return replace(self, bound={**self.bound, variable: self}) if variable else self


def idgen(ids: Sequence[Any]) -> Any:
    return tuple(ids)


def event_id(kind: str, vs: int, payload: Any, copy: int) -> Any:
    return (kind, vs, payload, copy)


@dataclass(frozen=True)
class Ids:
    """How ids are made. They order instances that start together, so implementations that are compared must share
    them."""

    event: Callable[[str, int, Any, int], Any] = event_id
    composite: Callable[[Sequence[Any]], Any] = idgen


PLAIN_IDS = Ids()


def primitives(kind: str, history: History, ids: Ids = PLAIN_IDS) -> list[Instance]:
    """Every event of a history as an instance. The id is that of the version; else start, payload and copy number."""
    found: list[Instance] = []
    copies: dict[Any, int] = {}
    for e in history:
        if isinstance(e.payload, Version):
            id, body = e.payload.id, e.payload.payload
        else:
            copies[e.vs, e.payload] = copies.get((e.vs, e.payload), -1) + 1
            id, body = ids.event(kind, e.vs, e.payload, copies[e.vs, e.payload]), e.payload
        leaf = Instance(id, e.vs, e.ve, e.vs, body)
        found.append(replace(leaf, leaves=(leaf,)))
    return sorted(found, key=lambda i: i.order)


def composite(contributors: Sequence[Instance], roles: Sequence[int], w: int, ids: Ids = PLAIN_IDS) -> Instance:
    """The instance that SEQUENCE makes of its contributors: `[last.vs, first.vs + w)`, or one chronon if empty."""
    first, last = contributors[0], contributors[-1]
    return Instance(
        id=ids.composite([c.id for c in contributors]),
        vs=last.vs,
        ve=max(plus(first.vs, w), plus(last.vs, 1)),
        rt=min(c.rt for c in contributors),
        payload=tuple(c.payload for c in contributors),
        cbt=tuple(contributors),
        roles=tuple(roles),
        bound={name: i for c in contributors for name, i in c.bound.items()},
        leaves=tuple(leaf for c in contributors for leaf in c.leaves),
    )


def as_history(instances: Sequence[Instance]) -> History:
    return History(Event(i.vs, i.ve, i.payload) for i in instances)
