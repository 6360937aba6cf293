"""SEQUENCE and ATLEAST: events in order, within a scope.

    SEQUENCE(E1..Ek, w)      e1.vs < .. < ek.vs,  ek.vs - e1.vs <= w
    ATLEAST(n, E1..Ek, w)    n events of n different parameters, in any order of the parameters, else the same
    ALL(E1..Ek, w)           ATLEAST(k, E1..Ek, w)
    ANY(E1..Ek)              ATLEAST(1, E1..Ek, 1)

The output lives `[last.vs, first.vs + w)`; when that is empty, one chronon.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations, product
from typing import ClassVar

from cedr.reference.patterns.instance import Instance, composite
from cedr.reference.patterns.pattern import Consumption, ReferencePattern, ReferenceScope, Selection
from cedr.reference.patterns.selection import select_and_consume


@dataclass(frozen=True)
class Ordered(ReferencePattern):
    """The common part of SEQUENCE and ATLEAST; `orders` are the allowed orders of parameters."""

    keyword: ClassVar = "SEQUENCE"
    parameters: tuple[ReferencePattern, ...]
    w: int
    var: str | None = None
    selection: Selection = "EACH"
    consumption: Consumption = "REUSE"

    @property
    def positive(self) -> tuple[ReferencePattern, ...]:
        return self.parameters

    @property
    def contributors(self) -> int:
        return len(self.parameters)

    def orders(self) -> Iterable[Sequence[int]]:
        return [range(len(self.parameters))]

    def candidates(self, scope: ReferenceScope) -> Iterator[Instance]:
        events = [p.instances(scope) for p in self.parameters]
        for roles in self.orders():
            for chosen in product(*(events[role] for role in roles)):
                if all(a.vs < b.vs for a, b in pairwise(chosen)) and chosen[-1].vs - chosen[0].vs <= self.w:
                    yield composite(chosen, roles, self.w, scope.ids)

    def select(self, found: list[Instance]) -> list[Instance]:
        return select_and_consume(found, self.parameters)


@dataclass(frozen=True)
class ReferenceAtLeast(Ordered):
    keyword: ClassVar = "ATLEAST"
    n: int = 1

    @property
    def contributors(self) -> int:
        return self.n

    def orders(self) -> Iterable[Sequence[int]]:
        return permutations(range(len(self.parameters)), self.n)


def SEQUENCE(*parameters: ReferencePattern, w: int, var: str | None = None) -> Ordered:  # noqa: N802 keywords of the language
    return Ordered(parameters, w, var)


def ATLEAST(n: int, *parameters: ReferencePattern, w: int, var: str | None = None) -> Ordered:  # noqa: N802
    return ReferenceAtLeast(parameters, w, var, n=n)


def ALL(*parameters: ReferencePattern, w: int, var: str | None = None) -> Ordered:  # noqa: N802
    return ATLEAST(len(parameters), *parameters, w=w, var=var)


def ANY(*parameters: ReferencePattern, var: str | None = None) -> Ordered:  # noqa: N802
    return ATLEAST(1, *parameters, w=1, var=var)
