"""ATMOST(n, E1..Ek, w): the times with at least one and at most n of the events in the last w.

The snapshots of the union of all parameters under sliding(w) that hold 1 to n events. With a correlation key, each
value of the key is counted on its own, and an event without a value alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from cedr.reference.patterns.instance import Ids, Instance
from cedr.reference.patterns.pattern import ReferencePattern, ReferenceScope
from cedr.reference.patterns.predicates import ReferenceCorrelationKey, attribute
from cedr.temporal import History, Interval
from cedr.temporal.time import plus


@dataclass(frozen=True)
class ReferenceAtMost(ReferencePattern):
    keyword: ClassVar = "ATMOST"
    n: int
    parameters: tuple[ReferencePattern, ...]
    w: int
    var: str | None = None

    @property
    def counted(self) -> tuple[ReferencePattern, ...]:
        return self.parameters

    @property
    def contributors(self) -> int:
        return 1

    def candidates(self, scope: ReferenceScope) -> Iterator[Instance]:
        events = sorted((i for p in self.parameters for i in p.instances(scope)), key=lambda i: i.order)
        keys = [c.attribute for c in scope.where if isinstance(c, ReferenceCorrelationKey)]

        def group(number: int) -> Any:
            values = [attribute(events[number].leaves[0], key) for key in keys]
            return number if None in values else tuple(values)

        windows = History((e.vs, plus(e.vs, self.w), number) for number, e in enumerate(events))
        for members in windows.groups(group).values():
            for time, live in members.snapshots():
                if len(live) <= self.n:
                    yield at_snapshot(time, [events[e.payload] for e in live], scope.ids)


def at_snapshot(time: Interval, events: list[Instance], ids: Ids) -> Instance:
    contributors = sorted(events, key=lambda i: i.order)
    return Instance(
        id=ids.composite([time.start, *(c.id for c in contributors)]),
        vs=time.start,
        ve=time.end,
        rt=min(c.rt for c in contributors),
        payload=tuple(c.payload for c in contributors),
        cbt=tuple(contributors),
        leaves=tuple(leaf for c in contributors for leaf in c.leaves),
    )


def ATMOST(n: int, *parameters: ReferencePattern, w: int, var: str | None = None) -> ReferenceAtMost:  # noqa: N802 keywords of the language
    return ReferenceAtMost(n, parameters, w, var)
