"""An event type: all events of this type."""

from dataclasses import dataclass

from cedr.reference.patterns.instance import Instance
from cedr.reference.patterns.pattern import Consumption, ReferencePattern, ReferenceScope, Selection
from cedr.temporal import QueryError


@dataclass(frozen=True)
class ReferenceEventType(ReferencePattern):
    kind: str
    var: str | None = None
    selection: Selection = "EACH"
    consumption: Consumption = "REUSE"

    def __str__(self) -> str:
        return self.kind

    @property
    def contributors(self) -> int:
        return 0

    def candidates(self, scope: ReferenceScope) -> list[Instance]:
        if self.kind not in scope.inputs:
            raise QueryError(f"unknown event type {self.kind!r}; there are: {', '.join(sorted(scope.inputs))}")
        return scope.inputs[self.kind]
