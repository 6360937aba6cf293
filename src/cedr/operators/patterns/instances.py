"""Instances in columns: what a pattern finds in a set of events.

Each instance has a group, a start, and one column per event type with the place of its event, or -1 where the
parameter takes no part. An ATMOST has no single events; its columns are its own header. All else is derived from these
when it is needed. Instances are sorted by group and start.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cedr.columnar.chunk import Times
from cedr.kernels.instances import offsets
from cedr.plan.patterns.parts import PatternPart

Column = int | tuple[int, str]
"""The number of an event type, or a part's number with a field of the header."""

Columns = dict[Column, Times]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass
class Instances:
    g: Times
    vs: Times
    columns: Columns

    def __len__(self) -> int:
        return len(self.g)

    def take(self, places: Times | Mask) -> "Instances":
        return Instances(self.g[places], self.vs[places], {c: a[places] for c, a in self.columns.items()})

    def renamed(self, names: dict[Column, Column]) -> "Instances":
        return Instances(self.g, self.vs, {names[c]: a for c, a in self.columns.items()})

    def where(self, holds: Mask) -> "Instances":
        return self if holds.all() else self.take(holds)


@dataclass
class Scope:
    """What a pattern can see: events by group, and around each group the instance it might forbid.

    `place` is the position of each event in the evaluation's list of events; an event may be in several groups.
    """

    g: Times
    vs: Times
    place: Times
    bits: Times
    """Which event types accept it."""
    alone: Mask
    """By group, whether it is a single event without a key."""
    context: Columns
    """By group, the columns of the instances around."""
    found: dict[int, "Instances"] = field(default_factory=dict)
    """By the number of a part that is repeated, what it finds here."""

    @property
    def groups(self) -> int:
        return len(self.alone)

    def of_type(self, bit: int) -> tuple[Times, Times, Times]:
        found = np.flatnonzero(self.bits & (1 << bit) != 0)
        return self.g[found], self.vs[found], self.place[found]

    def only(self, mask: int) -> "Scope":
        """The events that some of these types accept."""
        found = np.flatnonzero(self.bits & mask != 0)
        return Scope(self.g[found], self.vs[found], self.place[found], self.bits[found], self.alone, self.context)

    def first(self) -> Times:
        return offsets(self.g, self.groups)


def union(found: list[Instances], columns: list[Column]) -> tuple[Instances, Times]:
    """All instances of several parameters with all columns, missing ones -1; and the parameter of each. Not sorted."""
    g = np.concatenate([i.g for i in found])
    vs = np.concatenate([i.vs for i in found])
    role = np.repeat(np.arange(len(found)), [len(i) for i in found])
    all_columns = {
        c: np.concatenate([i.columns[c] if c in i.columns else np.full(len(i), -1) for i in found]) for c in columns
    }
    return Instances(g, vs, all_columns), role


def identifying_columns(part: PatternPart, columns: Columns, slots: Times) -> list[Times]:
    """Columns that identify an instance in another evaluation."""
    identifying = [np.where(columns[p.leaf] >= 0, slots[columns[p.leaf]], -1) for p in part.positive_leaves()]
    for p in part.counting():
        identifying += [columns[p.number, "vs"], columns[p.number, "key"]]
    return identifying
