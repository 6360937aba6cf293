"""WHERE: predicates, evaluated where the variables they name have a value (predicate injection).

A predicate is evaluated at every pattern that binds one of its variables while all others are bound inside the pattern
or on the positive side of a negation around it. So a predicate that names a negated variable decides which events can
negate the current instance, and never filters the output. A variable whose parameter does not take part in this match
(ATLEAST, ANY) does not restrict it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from cedr.reference.patterns.instance import Instance
from cedr.temporal import QueryError


class ReferenceCondition(ABC):
    @abstractmethod
    def concerns(self, own: frozenset[str], outer: frozenset[str]) -> bool:
        """Whether to evaluate it at a pattern with these variables of its own and these around it."""

    @abstractmethod
    def allows(self, instance: Instance, context: tuple[Instance, ...]) -> bool:
        """Whether this instance is allowed, given the instances around it."""


@dataclass(frozen=True)
class ReferencePredicate(ReferenceCondition):
    """`test` of the instances bound to the names, e.g. `Predicate("x z", lambda x, z: x.payload.m == z.payload.m)`."""

    names: str
    test: Callable[..., Any]

    @property
    def variables(self) -> list[str]:
        return self.names.split()

    def concerns(self, own: frozenset[str], outer: frozenset[str]) -> bool:
        return any(v in own for v in self.variables) and all(v in own | outer for v in self.variables)

    def allows(self, instance: Instance, context: tuple[Instance, ...]) -> bool:
        values = {name: value for i in (*context, instance) for name, value in i.bound.items()}
        return any(v not in values for v in self.variables) or bool(self.test(*(values[v] for v in self.variables)))


@dataclass(frozen=True)
class ReferenceCorrelationKey(ReferenceCondition):
    """All contributors, negated ones included, agree in the attribute (EQUAL), or all differ in it (UNIQUE).

    A missing value is neither equal to nor different from anything.
    """

    attribute: str
    mode: Literal["EQUAL", "UNIQUE"] = "EQUAL"

    def concerns(self, own: frozenset[str], outer: frozenset[str]) -> bool:
        return True

    def allows(self, instance: Instance, context: tuple[Instance, ...]) -> bool:
        found = [attribute(leaf, self.attribute) for i in (*context, instance) for leaf in i.leaves]
        if len(found) < 2:
            return True
        return None not in found and len(set(found)) == (1 if self.mode == "EQUAL" else len(found))


@dataclass(frozen=True)
class ReferenceAttributeEqual(ReferenceCondition):
    """`[attribute EQUAL 'value']`: every contributor, negated ones included, has this value."""

    attribute: str
    value: Any

    def concerns(self, own: frozenset[str], outer: frozenset[str]) -> bool:
        return True

    def allows(self, instance: Instance, context: tuple[Instance, ...]) -> bool:
        return all(attribute(leaf, self.attribute) == self.value for leaf in instance.leaves)


def attribute(leaf: Instance, name: str) -> Any:
    try:
        return leaf.payload[name]
    except (KeyError, TypeError, IndexError):
        raise QueryError(
            f"the event {leaf.payload} at {leaf.vs} has no attribute {name!r}, which WHERE requires"
        ) from None
