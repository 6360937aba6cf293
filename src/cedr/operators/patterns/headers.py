"""The header of instances, derived from their columns: start, end, root time, id and contributors.

id   of an event: a hash of its type, start, payload and number among equal events; of a composite: `idgen` of its
     contributors' ids. It does not depend on arrival. What forbids nothing keeps the id of what it kept.
rt   the earliest start of anything in it
"""

import numpy as np

from cedr.columnar.times import Times, later
from cedr.kernels.ids import idgen_of, leaf_ids, summands
from cedr.operators.patterns.instances import Columns, Mask
from cedr.plan.patterns.parts import PatternPart
from cedr.plan.patterns.tree import AtLeast, AtMost, EventType, Sequence, Unless
from cedr.temporal.time import INF, MIN


class Headers:
    """Headers of instances over a list of events, of which these are starts and ids.

    Where events are versions, which have a header of their own, `ends` are given, and ids are used unchanged.
    """

    def __init__(self, vs: Times, ids: Times, ends: Times | None = None) -> None:
        self.event_vs, self.event_ids, self.event_ve = vs, ids, ends

    def present(self, part: PatternPart, columns: Columns) -> Mask:
        """Whether the part takes part in the instance."""
        if part.leaf >= 0:
            return columns[part.leaf] >= 0
        if isinstance(part.pattern, AtMost):
            return columns[part.number, "low"] >= 0
        if isinstance(part.pattern, AtLeast):
            return np.any([self.present(p, columns) for p in part.positive], axis=0)
        return self.present(part.positive[0], columns)

    def start(self, part: PatternPart, columns: Columns) -> Times:
        """Where a part takes no part, the start means nothing."""
        match part.pattern:
            case EventType():
                return self.event_vs[columns[part.leaf]]
            case AtMost():
                return columns[part.number, "vs"]
            case AtLeast():
                return np.max(self._starts(part, columns, MIN), axis=0)
            case Sequence():
                return self.start(part.positive[-1], columns)
            case Unless(n=n, w=w) if n is not None:
                kept = self.start(part.kept, columns)
                return np.maximum(later(self.contributor(part.kept, columns, n), w), kept)
        return self.start(part.kept, columns)

    def _starts(self, part: PatternPart, columns: Columns, otherwise: int) -> list[Times]:
        return [
            np.where(self.present(p, columns), self.start(p, columns), otherwise)
            for p in (*part.positive, *part.counted)
        ]

    def contributor(self, part: PatternPart, columns: Columns, n: int) -> Times:
        """The start of the n-th contributor, counted from 1."""
        match part.pattern:
            case Sequence():
                return self.start(part.positive[n - 1], columns)
            case AtLeast():
                return np.sort(self._starts(part, columns, INF), axis=0)[n - 1]
            case AtMost():
                return columns[part.number, "first"]
            case Unless():
                return self.start(part.kept, columns)
        return self.contributor(part.kept, columns, n)

    def end(self, part: PatternPart, columns: Columns, vs: Times) -> Times:
        """The end of instances that start at `vs`."""
        match part.pattern:
            case Sequence(w=w) | AtLeast(w=w):
                return np.maximum(later(self.contributor(part, columns, 1), w), later(vs, 1))
            case Unless(w=w):
                return np.maximum(later(self.start(part.kept, columns), w), later(vs, 1))
            case AtMost():
                return columns[part.number, "ve"]
            case EventType() if self.event_ve is not None:
                return self.event_ve[columns[part.leaf]]
        return self.end(part.kept, columns, vs)

    def root(self, part: PatternPart, columns: Columns) -> Times:
        match part.pattern:
            case EventType():
                return self.event_vs[columns[part.leaf]]
            case AtMost():
                return columns[part.number, "rt"]
        roots = [np.where(self.present(p, columns), self.root(p, columns), INF) for p in part.positive]
        return np.min(roots, axis=0)

    def id(self, part: PatternPart, columns: Columns) -> Times:
        match part.pattern:
            case EventType(name=name):
                ids = self.event_ids[columns[part.leaf]]
                return leaf_ids(ids, name) if self.event_ve is None else ids
            case AtMost():
                return columns[part.number, "id"]
            case Sequence() | AtLeast():
                total = np.zeros(len(next(iter(columns.values()))), dtype=np.uint64)
                for p in part.positive:
                    total += np.where(self.present(p, columns), summands(self.id(p, columns)), np.uint64(0))
                return idgen_of(total)
        return self.id(part.kept, columns)
