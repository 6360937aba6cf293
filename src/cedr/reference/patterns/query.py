"""A pattern query: a pattern, its conditions and the output of each match.

The reference trusts its patterns: `cedr.plan.patterns` states which ones are allowed and rejects the others.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cedr.reference.bitemporal import per_occurrence, versions_at
from cedr.reference.patterns.instance import PLAIN_IDS, Ids, Instance, primitives
from cedr.reference.patterns.pattern import ReferencePattern, ReferenceScope
from cedr.reference.patterns.predicates import ReferenceCondition
from cedr.temporal import History, Version
from cedr.temporal.row import payload


@dataclass(frozen=True)
class ReferencePatternQuery:
    pattern: ReferencePattern
    where: tuple[ReferenceCondition, ...] = ()
    output: Callable[[Instance], Any] = lambda match: match.payload
    ids: Ids = PLAIN_IDS

    def instances(self, inputs: Mapping[str, History]) -> list[Instance]:
        """All matches, in the order of start and id."""
        events = {kind: primitives(kind, history, self.ids) for kind, history in inputs.items()}
        scope = ReferenceScope(events, self.where, ids=self.ids)
        return sorted(self.pattern.instances(scope), key=lambda i: i.order)

    def run(self, inputs: Mapping[str, History]) -> History:
        """The history of the output, from the histories of the event types."""
        return History((m.vs, m.ve, self.output(m)) for m in self.instances(inputs))

    def run_bitemporal(self, inputs: Mapping[str, History]) -> History:
        """The same over histories of versions: a match holds for the occurrence times common to all that made it."""

        def at_one_occurrence(*histories: History) -> History:
            matches = self.instances(dict(zip(inputs, histories, strict=True)))
            return History((m.vs, m.ve, Version(m.id, m.vs, m.ve, payload(self.output(m)))) for m in matches)

        return per_occurrence(at_one_occurrence, *inputs.values(), view=versions_at)
