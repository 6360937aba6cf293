"""Reasons checked by themselves: each is a statement about events that the oracle can confirm or refute."""

from cedr.lineage import reasons
from cedr.lineage.definition import conditions
from cedr.reference import patterns as ref
from cedr.reference.patterns.instance import primitives
from cedr.reference.patterns.pattern import ReferenceScope
from cedr.temporal.time import plus


class Oracle:
    """A query of the oracle over finished histories, by event type."""

    def __init__(self, query: ref.ReferencePatternQuery, histories):
        events = {kind: primitives(kind, history, query.ids) for kind, history in histories.items()}
        self.pattern = query.pattern
        self.scope = ReferenceScope(events, query.where, ids=query.ids)
        self.patterns = [p for p, _ in query.pattern.walk()]
        self.counted = {name for p in self.patterns for inner in p.counted for name in names(inner)}
        self.matches = query.pattern.instances(self.scope)

    def twin(self, pattern, root):
        """The oracle's own pattern at the same place."""
        return self.patterns[next(n for n, (p, _) in enumerate(root.walk()) if p == pattern)]

    def containing(self, pattern, named):
        """The instances of a pattern that have an event of each variable named in it."""
        inside = [x for x in named if x in names(pattern)]
        return [i for i in pattern.instances(self.scope) if all(self.has(i, x, named[x]) for x in inside)]

    def has(self, instance, variable, ids):
        """Whether a variable is one of these events; one that is only counted has no value of its own."""
        if variable in instance.bound:
            return instance.bound[variable].id in ids
        return variable in self.counted and any(leaf.id in ids for leaf in instance.leaves)


def names(pattern):
    return {pattern.var}.union(*(names(p) for p in (*pattern.positive, *pattern.counted)))


def same(one, other):
    return (one.id, one.vs, one.roles) == (other.id, other.vs, other.roles)


def near(instance, given, oracle, nearby):
    """Whether all events of an instance can have to do with one of the given keys and times, or are given."""
    types = {i.id: leaf for leaf in nearby.leaves for i in oracle.scope.inputs[str(leaf)]}
    return any(
        all(
            i.id == own or (nearby.key(types[i.id], i) == key is not None and abs(i.vs - vs) <= nearby.reach)
            for i in instance.leaves
        )
        for own, key, vs in given
    )


def holds(reason, oracle, nearby, named):
    """Whether a reason is true of the events with these ids, by variable, and there is indeed nothing with them."""
    own = oracle.twin(reason.pattern, nearby.pattern) if hasattr(reason, "pattern") else None
    given = [
        (i.id, nearby.key(leaf, i), i.vs)
        for leaf in nearby.leaves
        for i in oracle.scope.inputs[str(leaf)]
        if i.id in named.get(leaf.var, ())
    ]
    if own and any(near(i, given, oracle, nearby) for i in oracle.containing(own, named)):
        return False
    match reason:
        case reasons.NoSuchEvent(leaf, wanted):
            return not any(
                i.vs == wanted.get("vs", i.vs) and all(i.payload[a] == v for a, v in wanted.items() if a != "vs")
                for i in oracle.scope.inputs[str(leaf)]
            )
        case reasons.NothingNear(leaf):
            return not any(near(i, given, oracle, nearby) for i in oracle.scope.inputs[str(leaf)])
        case reasons.WrongOrder(_, earlier, later):
            return later.vs <= earlier.vs
        case reasons.TooFar(_, (first, *_, last), by):
            counted = isinstance(own, type(ref.ATMOST(1, ref.ReferenceEventType("A"), w=1)))
            return by > 0 and last.vs - first.vs == own.w + by - counted
        case reasons.Falsified(_, false, instance):
            where = conditions(nearby.node)
            asked = [oracle.scope.where[where.index(c)] for c in false]
            return bool(asked) and not any(c.allows(instance, ()) for c in asked)
        case reasons.Negated(_, instance, threat, after, before):
            threats = own.forbidden.instances(oracle.scope.around(own.kept, instance))
            return (
                any(same(i, instance) for i in own.kept.instances(oracle.scope))
                and any(same(i, threat) for i in threats)
                and own.forbidden_times(instance) == (after, before)
                and after < threat.vs < before
            )
        case reasons.TooMany(_, events, start, end):
            live = [t for t in range(start, end) if all(i.vs <= t < plus(i.vs, own.w) for i in events)]
            found = [i for p in own.parameters for i in p.instances(oracle.scope)]
            return bool(live) and len(events) > own.n and all(any(same(i, e) for i in found) for e in events)
        case reasons.TooFewParameters(_, named, present):
            return len(named) > own.n or present < own.n
        case reasons.NotSelected(_, match, fate):
            rivals = allowed(own, oracle.scope)
            first, last = fate.own.order, fate.decision.chosen.order
            return (
                any(same(i, match) for i in rivals)
                and any(same(i, fate.preferred) for i in rivals)
                and fate.preferred.cbt[-1].order == match.cbt[-1].order
                and (first > last if fate.decision.parameter.selection == "FIRST" else first < last)
            )
        case reasons.Consumed(_, match, fate):
            return (
                any(same(i, match) for i in allowed(own, oracle.scope))
                and any(same(i, fate.by) for i in own.instances(oracle.scope))
                and fate.by.cbt[-1].order < match.cbt[-1].order
                and fate.contributor in match.cbt
                and fate.contributor in fate.by.cbt
            )
    return False


def allowed(pattern, scope):
    candidates = (i.called(pattern.var) for i in pattern.candidates(scope))
    return [i for i in candidates if scope.allows(pattern, i)]
