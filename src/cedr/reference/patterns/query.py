"""A pattern query: a pattern, its conditions and the output of each match. Checked before it runs."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cedr.reference.bitemporal import per_occurrence, versions_at
from cedr.reference.patterns.atmost import ReferenceAtMost
from cedr.reference.patterns.instance import PLAIN_IDS, Ids, Instance, primitives
from cedr.reference.patterns.negation import ReferenceNot, ReferenceUnless
from cedr.reference.patterns.pattern import ReferencePattern, ReferenceScope
from cedr.reference.patterns.predicates import ReferenceCondition, ReferenceCorrelationKey, ReferencePredicate
from cedr.reference.patterns.sequence import Ordered, ReferenceAtLeast
from cedr.temporal import History, QueryError, Version
from cedr.temporal.row import payload
from cedr.temporal.time import as_duration


@dataclass(frozen=True)
class ReferencePatternQuery:
    pattern: ReferencePattern
    where: tuple[ReferenceCondition, ...] = ()
    output: Callable[[Instance], Any] = lambda match: match.payload
    ids: Ids = PLAIN_IDS

    def __post_init__(self) -> None:
        for pattern, _ in self.pattern.walk():
            check_shape(pattern)
        check_variables(self.pattern, self.where)

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


def check_shape(pattern: ReferencePattern) -> None:
    """Reject patterns that can never match."""
    match pattern:
        case Ordered() | ReferenceAtMost():
            as_duration(pattern.w, f"scope of {pattern}")
            if not pattern.parameters:
                raise QueryError(f"{pattern} has no parameters; name at least one event type")
        case ReferenceUnless():
            as_duration(pattern.w, "scope of UNLESS")
            if pattern.n is not None and not 1 <= pattern.n <= pattern.kept.contributors:
                raise QueryError(
                    f"UNLESS counts its scope from contributor {pattern.n}, but its first parameter "
                    f"{pattern.kept} has only {pattern.kept.contributors}"
                )
        case ReferenceNot() if not isinstance(pattern.kept, Ordered):
            raise QueryError(f"NOT takes a sequence as its scope, not {pattern.kept}; use CANCEL_WHEN or UNLESS")
    if isinstance(pattern, ReferenceAtLeast) and not 1 <= pattern.n <= len(pattern.parameters):
        raise QueryError(
            f"ATLEAST({pattern.n}, …): n must be from 1 to the number of parameters, {len(pattern.parameters)}"
        )
    if isinstance(pattern, ReferenceAtMost) and pattern.n < 1:
        raise QueryError(f"ATMOST({pattern.n}, …): n must be at least 1, as a time without events gives no output")
    for parameter in (*pattern.negated, *pattern.counted):
        if (parameter.selection, parameter.consumption) != ("EACH", "REUSE"):
            raise QueryError(
                f"{parameter} is not part of the output of {pattern}, so it cannot be "
                f"{parameter.selection} {parameter.consumption}; use selection and consumption in SEQUENCE and ATLEAST"
            )


def check_variables(pattern: ReferencePattern, where: tuple[ReferenceCondition, ...]) -> None:
    """Reject variables that are used twice, and conditions that can never be evaluated."""
    scopes = [(p.variables, outer) for p, outer in pattern.walk()]
    uses = Counter(p.var for p, _ in pattern.walk() if p.var)
    for variable, times in uses.items():
        if times > 1:
            raise QueryError(f"variable {variable!r} is given to {times} parameters; each needs its own")
    for condition in where:
        if isinstance(condition, ReferencePredicate):
            if unknown := [v for v in condition.variables if v not in uses]:
                raise QueryError(f"WHERE names {unknown[0]!r}; the variables are: {', '.join(sorted(uses)) or 'none'}")
            if not any(condition.concerns(own, outer) for own, outer in scopes):
                raise QueryError(
                    f"WHERE compares {' and '.join(condition.variables)}, which never have a value together: "
                    "a negated or counted variable has a value only inside its own parameter"
                )
        counts = any(isinstance(p, ReferenceAtMost) for p, _ in pattern.walk())
        if counts and isinstance(condition, ReferenceCorrelationKey) and condition.mode == "UNIQUE":
            raise QueryError("CorrelationKey(…, UNIQUE) has no meaning for ATMOST, which only counts; use EQUAL")
