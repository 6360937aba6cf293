"""Negation: instances that no event of another kind forbids.

    UNLESS(E1, E2, w)         no e2 with  e1.vs < e2.vs < e1.vs + w              [e1.vs, e1.vs + w)
    UNLESS(E1, E2, n, w)      the same, counted from the n-th contributor of e1  [max(cbt[n].vs + w, e1.vs), e1.vs + w)
    NOT(E, SEQUENCE(..))      no e with  cbt[1].vs < e.vs < cbt[k].vs            as the sequence
    CANCEL-WHEN(E1, E2)       no e2 with  e1.rt < e2.vs < e1.vs                  as e1

The conditions of WHERE that name a variable of the negated side choose, for each instance of the positive side, which
events can forbid it. A lifetime that would be empty is one chronon.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from cedr.reference.patterns.instance import Instance
from cedr.reference.patterns.pattern import Consumption, ReferencePattern, ReferenceScope, Selection
from cedr.reference.patterns.sequence import Ordered
from cedr.temporal.time import plus


@dataclass(frozen=True)
class ReferenceNegation(ReferencePattern):
    kept: ReferencePattern
    forbidden: ReferencePattern
    var: str | None = None
    selection: Selection = "EACH"
    consumption: Consumption = "REUSE"

    @property
    def positive(self) -> tuple[ReferencePattern, ...]:
        return (self.kept,)

    @property
    def negated(self) -> tuple[ReferencePattern, ...]:
        return (self.forbidden,)

    @property
    def contributors(self) -> int:
        return self.kept.contributors

    def forbidden_times(self, instance: Instance) -> tuple[int, int]:
        """The open interval in which no forbidden event may start."""
        raise TypeError(f"{type(self).__name__} must define when its events are forbidden")

    def output(self, instance: Instance) -> Instance:
        return instance

    def kept_instance(self, instance: Instance) -> Instance:
        """The instance of the positive side that an output was made of."""
        return instance

    def candidates(self, scope: ReferenceScope) -> Iterator[Instance]:
        for instance in self.kept.instances(scope):
            after, before = self.forbidden_times(instance)
            threats = self.forbidden.instances(scope.around(self.kept, instance))
            if not any(after < threat.vs < before for threat in threats):
                yield self.output(instance)


@dataclass(frozen=True)
class ReferenceUnless(ReferenceNegation):
    keyword: ClassVar = "UNLESS"
    w: int = 1
    n: int | None = None

    @property
    def contributors(self) -> int:
        return 1

    def scope_start(self, instance: Instance) -> int:
        return instance.vs if self.n is None else instance.cbt[self.n - 1].vs

    def forbidden_times(self, instance: Instance) -> tuple[int, int]:
        start = self.scope_start(instance)
        return start, plus(start, self.w)

    def output(self, instance: Instance) -> Instance:
        vs = instance.vs if self.n is None else max(plus(self.scope_start(instance), self.w), instance.vs)
        ve = max(plus(instance.vs, self.w), plus(vs, 1))
        return replace(instance, vs=vs, ve=ve, cbt=(instance,), roles=(0,))

    def kept_instance(self, instance: Instance) -> Instance:
        return instance.cbt[0]


@dataclass(frozen=True)
class ReferenceNot(ReferenceNegation):
    keyword: ClassVar = "NOT"

    def forbidden_times(self, instance: Instance) -> tuple[int, int]:
        return instance.cbt[0].vs, instance.cbt[-1].vs


@dataclass(frozen=True)
class ReferenceCancelWhen(ReferenceNegation):
    keyword: ClassVar = "CANCEL-WHEN"

    def forbidden_times(self, instance: Instance) -> tuple[int, int]:
        return instance.rt, instance.vs


def UNLESS(  # noqa: N802
    e1: ReferencePattern, e2: ReferencePattern, *, w: int, n: int | None = None, var: str | None = None
) -> ReferenceUnless:
    return ReferenceUnless(e1, e2, var, w=w, n=n)


def NOT(e: ReferencePattern, sequence: Ordered, *, var: str | None = None) -> ReferenceNot:  # noqa: N802
    return ReferenceNot(sequence, e, var)


def CANCEL_WHEN(e1: ReferencePattern, e2: ReferencePattern, *, var: str | None = None) -> ReferenceCancelWhen:  # noqa: N802
    return ReferenceCancelWhen(e1, e2, var)
