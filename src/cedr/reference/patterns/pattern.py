"""What all pattern operators share: parameters, variables, and the scope they are evaluated in."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from cedr.reference.patterns.instance import PLAIN_IDS, Ids, Instance
from cedr.reference.patterns.predicates import ReferenceCondition

Selection = Literal["EACH", "FIRST", "LAST"]
Consumption = Literal["REUSE", "CONSUME"]


@dataclass(frozen=True)
class ReferenceScope:
    """What a pattern can see: the input, the conditions, and the instances on the positive side around it."""

    inputs: Mapping[str, list[Instance]]
    where: tuple[ReferenceCondition, ...] = ()
    context: tuple[Instance, ...] = ()
    outer: frozenset[str] = frozenset()
    ids: Ids = PLAIN_IDS

    def allows(self, pattern: "ReferencePattern", instance: Instance) -> bool:
        relevant = (c for c in self.where if c.concerns(pattern.variables, self.outer))
        return all(c.allows(instance, self.context) for c in relevant)

    def around(self, positive: "ReferencePattern", instance: Instance) -> "ReferenceScope":
        """The scope of an event that might negate `instance`."""
        return replace(self, context=(*self.context, instance), outer=self.outer | positive.variables)


class ReferencePattern(ABC):
    """An event expression. `instances` is its meaning."""

    keyword: ClassVar = ""
    var: str | None = None
    selection: Selection = "EACH"
    consumption: Consumption = "REUSE"

    def __str__(self) -> str:
        return self.keyword

    @abstractmethod
    def candidates(self, scope: ReferenceScope) -> Iterable[Instance]:
        """All instances by the operator's definition, without the conditions on its own variables."""

    @property
    def positive(self) -> tuple["ReferencePattern", ...]:
        """The parameters whose variables have one value in each instance."""
        return ()

    @property
    def negated(self) -> tuple["ReferencePattern", ...]:
        """The parameters that must not occur."""
        return ()

    @property
    def counted(self) -> tuple["ReferencePattern", ...]:
        """The parameters that are only counted, so that their variables have no single value outside."""
        return ()

    @property
    @abstractmethod
    def contributors(self) -> int:
        """The number of contributors that every instance has at least."""

    def select(self, found: list[Instance]) -> list[Instance]:
        return found

    def instances(self, scope: ReferenceScope) -> list[Instance]:
        named = (candidate.called(self.var) for candidate in self.candidates(scope))
        return self.select([i for i in named if scope.allows(self, i)])

    @property
    def variables(self) -> frozenset[str]:
        own = frozenset([self.var] if self.var else [])
        return own.union(*(p.variables for p in self.positive))

    def walk(self, outer: frozenset[str] = frozenset()) -> Iterator[tuple["ReferencePattern", frozenset[str]]]:
        """Every pattern in it, with the variables of the positive sides around it."""
        yield self, outer
        for p in (*self.positive, *self.counted):
            yield from p.walk(outer)
        around = outer.union(*(p.variables for p in self.positive))
        for p in self.negated:
            yield from p.walk(around)
