"""Where given events fail to make a match: the innermost pattern that has none with them, and what it lacks.

The instances of every part of the pattern are known by definition. Those that contain the given events *fit*. If none
of a pattern fits although some of each of its parameters do, the reason lies in this pattern: in order and scope, in a
condition, in what was selected or consumed, or in an event that forbids it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, product

from cedr.lineage import reasons, selection
from cedr.lineage.definition import Chained, TracedEventType
from cedr.lineage.reasons import Reason
from cedr.reference.patterns.atmost import ReferenceAtMost
from cedr.reference.patterns.instance import Instance, composite
from cedr.reference.patterns.negation import ReferenceNegation
from cedr.reference.patterns.pattern import ReferencePattern, ReferenceScope
from cedr.reference.patterns.predicates import ReferenceCorrelationKey, attribute
from cedr.reference.patterns.sequence import ReferenceAtLeast
from cedr.temporal.time import INF, plus

Named = Mapping[str, frozenset[int]]
"""For each variable, the ids of the events it may be."""


@dataclass(frozen=True)
class Diagnosis:
    whole: ReferencePattern
    scope: ReferenceScope
    named: Named
    _instances: dict[int, list[Instance]] = field(default_factory=dict)

    def reason(self, pattern: ReferencePattern) -> Reason | None:
        """Why nothing of this pattern fits; None if something does."""
        if self.fitting(pattern):
            return None
        for parameter in self.needed(pattern):
            if inner := self.reason(parameter):
                return inner
        match pattern:
            case TracedEventType():
                return self.of_event(pattern)
            case Chained():
                return self.of_ordered(pattern)
            case ReferenceNegation():
                return self.of_negation(pattern)
            case ReferenceAtMost():
                return self.of_atmost(pattern)
        raise TypeError(f"no diagnosis for {pattern}")

    def instances(self, pattern: ReferencePattern) -> list[Instance]:
        if id(pattern) not in self._instances:
            self._instances[id(pattern)] = pattern.instances(self.scope)
        return self._instances[id(pattern)]

    def fitting(self, pattern: ReferencePattern) -> list[Instance]:
        """The instances of a pattern that contain an event of each variable that is named in it."""
        inside = self.named_in(pattern)
        return [i for i in self.instances(pattern) if all(self.holds(i, x) for x in inside)]

    def holds(self, instance: Instance, variable: str) -> bool:
        ids = self.named[variable]
        if variable in instance.bound:
            return instance.bound[variable].id in ids
        if variable in self.counted:
            return any(leaf.id in ids for leaf in instance.leaves)
        return False

    @cached_property
    def counted(self) -> set[str]:
        """The named variables that are only counted, so that no instance binds them."""
        return {x for p in counting(self.whole) for x in self.named_in(p)}

    def named_in(self, pattern: ReferencePattern) -> list[str]:
        own = [pattern.var] if pattern.var and pattern.var in self.named else []
        return [*own, *(x for p in (*pattern.positive, *pattern.counted) for x in self.named_in(p))]

    def needed(self, pattern: ReferencePattern) -> list[ReferencePattern]:
        """The parameters without which there can be no fitting instance, those with named events first."""
        optional = isinstance(pattern, ReferenceAtLeast | ReferenceAtMost)
        parameters = (*pattern.positive, *pattern.counted)
        required = isinstance(pattern, ReferenceAtLeast) and pattern.n == len(parameters)
        found = [p for p in parameters if not optional or required or self.named_in(p)]
        return sorted(found, key=lambda p: not self.named_in(p))

    # --- one operator each ---------------------------------------------------------------------------------------

    def of_event(self, leaf: TracedEventType) -> Reason:
        events = self.scope.inputs[leaf.kind]
        candidates = [i for i in events if i.id in self.named.get(leaf.var or "", [i.id])]
        if not candidates:
            return reasons.NothingNear(leaf, None)
        return self.falsified(leaf, [i.called(leaf.var) for i in candidates])

    def of_ordered(self, pattern: Chained) -> Reason:
        found = [self.fitting(p) for p in pattern.parameters]
        named = [role for role, p in enumerate(pattern.parameters) if self.named_in(p)]
        present = [role for role, instances in enumerate(found) if instances]
        orders = [
            roles for roles in pattern.orders() if set(named) <= set(roles) and all(role in present for role in roles)
        ]
        if not orders:
            variables = tuple(x for p in pattern.parameters for x in self.named_in(p))
            return reasons.TooFewParameters(pattern, variables, len(present))
        made = [i.called(pattern.var) for i in pattern.compose(found, self.scope.ids) if set(named) <= set(i.roles)]
        if not made:
            return best_failure([out_of_scope(pattern, [found[role] for role in roles]) for roles in orders])
        allowed = [i for i in made if self.scope.allows(pattern, i)]
        if not allowed:
            return self.falsified(pattern, made)
        possible = selection.possible(pattern, self.scope)
        fates = [(i, selection.fate(i, possible, pattern.parameters)) for i in allowed]
        for match, fate in sorted(fates, key=lambda f: isinstance(f[1], selection.ConsumedByMatch)):
            if isinstance(fate, selection.RejectedBySelection):
                return reasons.NotSelected(pattern, match, fate)
            if isinstance(fate, selection.ConsumedByMatch):
                return reasons.Consumed(pattern, match, fate)
        raise LookupError(f"{pattern} takes a match that it does not have")

    def of_negation(self, pattern: ReferenceNegation) -> Reason:
        left: list[Instance] = []
        first: Reason | None = None
        for instance in self.fitting(pattern.kept):
            threats = self.threats(pattern, instance)
            if not threats:
                left.append(pattern.output(instance).called(pattern.var))
            elif first is None:
                after, before = pattern.forbidden_times(instance)
                first = reasons.Negated(pattern, instance, threats[0], after, before)
        return self.falsified(pattern, left) if left or first is None else first

    def threats(self, pattern: ReferenceNegation, instance: Instance) -> list[Instance]:
        """What forbids an instance, in order."""
        after, before = pattern.forbidden_times(instance)
        found = pattern.forbidden.instances(self.scope.around(pattern.kept, instance))
        return sorted((i for i in found if after < i.vs < before), key=lambda i: i.order)

    def of_atmost(self, pattern: ReferenceAtMost) -> Reason:
        fitting = [i for i in pattern.candidates(self.scope) if all(self.holds(i, x) for x in self.named_in(pattern))]
        if fitting:
            return self.falsified(pattern, [i.called(pattern.var) for i in fitting])
        named = [self.fitting(p) for p in pattern.parameters if self.named_in(p)]
        together = list(product(*named)) if named else [(i,) for p in pattern.parameters for i in self.instances(p)]
        if not together:
            return self.absent(pattern.parameters[0])
        return min((self.crowd(pattern, t) for t in together), key=lambda r: isinstance(r, reasons.TooFar))

    def absent(self, pattern: ReferencePattern) -> Reason:
        """Why there is nothing of this pattern at all."""
        if found := self.reason(pattern):
            return found
        raise LookupError(f"there are instances of {pattern}, but none were found")

    def crowd(self, pattern: ReferenceAtMost, together: tuple[Instance, ...]) -> Reason:
        """Why these events are never counted together with few enough others."""
        ordered = tuple(sorted(together, key=lambda i: i.order))
        start, end = ordered[-1].vs, plus(ordered[0].vs, pattern.w)
        if start >= end:
            return reasons.TooFar(pattern, ordered, start - end + 1)
        keys = [c for c in self.scope.where if isinstance(c, ReferenceCorrelationKey)]
        whole = composite(ordered, range(len(ordered)), pattern.w, self.scope.ids)
        if len(ordered) > 1 and (apart := tuple(c for c in keys if not c.allows(whole, ()))):
            return reasons.Falsified(pattern, apart, whole)
        others = [i for p in pattern.parameters for i in self.instances(p) if self.same_key(i, ordered[0], keys)]
        times = {start, *(t for i in others for t in (i.vs, plus(i.vs, pattern.w)) if start < t < end)}
        counted = [tuple(i for i in others if i.vs <= t < plus(i.vs, pattern.w)) for t in sorted(times)]
        fewest = min(counted, key=lambda events: len(events))
        return reasons.TooMany(pattern, tuple(sorted(fewest, key=lambda i: i.order)), start, end)

    def same_key(self, one: Instance, other: Instance, keys: list[ReferenceCorrelationKey]) -> bool:
        values = [[attribute(i.leaves[0], key.attribute) for key in keys] for i in (one, other)]
        return one.id == other.id or (values[0] == values[1] and None not in values[0])

    def falsified(self, pattern: ReferencePattern, instances: list[Instance]) -> Reason:
        """The instance with the fewest conditions that are false, and these."""

        def false(instance: Instance) -> tuple[int, ...]:
            conditions = (c for c in self.scope.where if c.concerns(pattern.variables, self.scope.outer))
            return tuple(n for n, c in enumerate(conditions) if not c.allows(instance, self.scope.context))

        best = min(instances, key=lambda i: (len(false(i)), i.order))
        conditions = [c for c in self.scope.where if c.concerns(pattern.variables, self.scope.outer)]
        return reasons.Falsified(pattern, tuple(conditions[n] for n in false(best)), best)


# --- order and scope -----------------------------------------------------------------------------------------------


def out_of_scope(pattern: Chained, found: list[list[Instance]]) -> reasons.TooFar | reasons.WrongOrder:
    """Why no instances of these lists, one after the other, make a chain: the closest there is."""
    shortest: tuple[Instance, ...] = ()
    for first in found[0]:
        links = earliest([[first], *found[1:]])
        if len(links) == len(found) and (not shortest or span(links) < span(shortest)):
            shortest = links
    if shortest:
        return reasons.TooFar(pattern, shortest, span(shortest) - pattern.w)
    links = earliest(found)
    return reasons.WrongOrder(pattern, links[-1], max(found[len(links)], key=lambda i: i.order))


def earliest(found: list[list[Instance]]) -> tuple[Instance, ...]:
    """A chain that is as early as possible everywhere, as far as it goes."""
    links: list[Instance] = []
    for instances in found:
        after = [i for i in instances if not links or i.vs > links[-1].vs]
        if not after:
            break
        links.append(min(after, key=lambda i: i.order))
    return tuple(links)


def span(links: tuple[Instance, ...]) -> int:
    return links[-1].vs - links[0].vs


def best_failure(failures: Iterable[reasons.TooFar | reasons.WrongOrder]) -> Reason:
    """What is in order but too far apart is closer to a match than what is out of order."""
    return min(failures, key=lambda r: r.by if isinstance(r, reasons.TooFar) else INF)


def counting(pattern: ReferencePattern) -> Iterator[ReferenceAtMost]:
    if isinstance(pattern, ReferenceAtMost):
        yield pattern
    yield from chain.from_iterable(counting(p) for p in (*pattern.positive, *pattern.counted))
