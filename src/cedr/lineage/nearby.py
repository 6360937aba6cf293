"""The events that can matter for some given ones: those of their keys, as far away as the pattern looks.

A match that starts at v depends on events from `v - back` to `v + ahead` only (`plan.patterns.parts`), and on
those of its key. Where something is consumed it depends on everything before as well.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.chunk import VS
from cedr.columnar.tally import VE
from cedr.kernels.ids import idgen_of, leaf_ids, summands
from cedr.lineage.definition import TracedEventType, conditions, defined
from cedr.lineage.observed import EVENT, Observed
from cedr.plan.nodes.match import Match
from cedr.plan.patterns import tree
from cedr.plan.patterns.parts import parts_of
from cedr.reference.patterns.instance import Ids, Instance
from cedr.reference.patterns.pattern import ReferencePattern, ReferenceScope
from cedr.temporal.row import Row
from cedr.temporal.time import INF, MIN

Key = tuple[Any, ...]


def composite_id(ids: Iterable[Any]) -> int:
    """The operator's id of what is made of these."""
    total = summands(np.array(list(ids), dtype=np.int64)).sum(dtype=np.uint64, keepdims=True)
    return int(idgen_of(total)[0])


IDS = Ids(composite=composite_id)


@dataclass(frozen=True)
class Nearby:
    """A pattern by its definition, with the events of an observed query."""

    observed: Observed

    @property
    def node(self) -> Match:
        return self.observed.node

    @cached_property
    def pattern(self) -> ReferencePattern:
        return defined(self.node.pattern)

    @cached_property
    def leaves(self) -> list[TracedEventType]:
        """The event types in the order of the plan's."""
        found = [p for p, _ in self.pattern.walk() if isinstance(p, TracedEventType)]
        return sorted(found, key=lambda leaf: int(leaf.kind))

    @cached_property
    def reach(self) -> int:
        """How far an event may lie from one it has to do with; twice, so that what is near the edge is right too."""
        whole = parts_of(self.node.pattern, ())
        return 2 * (whole.back + whole.ahead)

    @cached_property
    def remembers(self) -> bool:
        return any(p.consumption == "CONSUME" for p in self.node.pattern.walk())

    def instances(self, leaf: TracedEventType, chosen: pl.Expr) -> list[Instance]:
        """The events of a type for which something holds, in order."""
        table = accepted(self.observed.events[leaf.source.port], leaf.source).filter(chosen)
        ids = leaf_ids(table[EVENT].to_numpy(), leaf.source.name)  # type: ignore[no-untyped-call]
        names = [name for name in table.columns if name not in (VS, VE, EVENT)]
        rows = table.select(VS, VE, *names).iter_rows()
        found = [
            primitive(int(id), vs, ve, Row(dict(zip(names, values, strict=True))))
            for id, (vs, ve, *values) in zip(ids, rows, strict=True)
        ]
        return sorted(found, key=lambda i: i.order)

    def scope(self, given: Iterable[tuple[TracedEventType, Instance]]) -> ReferenceScope:
        """All that can matter for the given events."""
        events = list(given)
        times = [i.vs for _, i in events]
        first = MIN if self.remembers else max(MIN, min(times) - self.reach)
        last = min(INF, max(times) + self.reach)
        keys = {self.key(leaf, i) for leaf, i in events}
        named = {(leaf.kind, i.id) for leaf, i in events}
        inputs = {
            leaf.kind: [
                i
                for i in self.instances(leaf, pl.col(VS).is_between(first, last))
                if self.key(leaf, i) in keys or (leaf.kind, i.id) in named
            ]
            for leaf in self.leaves
        }
        return ReferenceScope(inputs, conditions(self.node), ids=IDS)

    def key(self, leaf: TracedEventType, instance: Instance) -> Key | None:
        """The values by which events meet; None if one is missing, as such an event meets no other."""
        values = tuple(instance.payload[a] for a in self.node.key.attributes[int(leaf.kind)])
        return None if None in values else values


def primitive(id: int, vs: int, ve: int, payload: Row) -> Instance:
    leaf = Instance(id, vs, ve, vs, payload)
    return Instance(id, vs, ve, vs, payload, leaves=(leaf,))


def accepted(rows: pl.DataFrame, leaf: tree.EventType) -> pl.DataFrame:
    return rows if leaf.where is None else rows.filter(leaf.where)
