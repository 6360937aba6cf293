"""The instances of a pattern over a set of events: a pure function, one step per operator, all instances at once.

SEQUENCE, ATLEAST   a chain of range joins, from the last contributor back to the first, so that matches come out in
                    the order of their starts; predicates are evaluated as soon as their variables are bound
negation            is there a threat strictly between two times? Where WHERE ties threats to the instance they would
                    forbid, the events around each instance are looked at on their own, as a group. A sequence in which
                    nothing may lie between looks no further back than the last threat before its end
ATMOST              snapshots of equally long lifetimes are runs of neighbours

What several parts find alike is computed for the first of them; the others have it under the names of their columns.
"""

import numpy as np

from cedr.columnar.chunk import Times
from cedr.columnar.sharding import Words
from cedr.columnar.times import earlier, later
from cedr.kernels.ids import idgen_of, running_sums, summands
from cedr.kernels.instances import any_between, between, last_before, least_of_ranges, offsets, sliding_snapshots
from cedr.kernels.sorting import argsort_by_group_and_time
from cedr.operators.patterns.headers import Headers
from cedr.operators.patterns.instances import Column, Instances, Scope, union
from cedr.operators.patterns.questions import Questions
from cedr.operators.patterns.selection import MatchSelection
from cedr.plan.patterns.parts import PatternPart
from cedr.plan.patterns.tree import AtLeast, AtMost, CancelWhen, EventType, Not, Predicate, Sequence, Unless
from cedr.temporal.time import MIN


class Evaluation:
    """`slots` are the numbers under which events are stored, which identify them from one evaluation to the next."""

    def __init__(self, headers: Headers, questions: Questions, selection: MatchSelection, slots: Times) -> None:
        self.headers, self.questions, self.selection, self.slots = headers, questions, selection, slots
        self.members: dict[int, Instances] = {}
        """By the number of an ATMOST, the instances it counted, for lineage."""

    def instances(self, part: PatternPart, scope: Scope) -> Instances:
        if part.same_as is not None:
            return self._result_of_equal_part(part, part.same_as, scope)
        found = self._computed(part, scope)
        if part.repeated:
            scope.found[part.number] = found
        return found

    def _result_of_equal_part(self, part: PatternPart, first: PatternPart, scope: Scope) -> Instances:
        """What the first part like this one has found, as this part's."""
        names = column_mapping(first, part)
        for p, like in zip(part.walk(), first.walk(), strict=True):
            if like.number in self.members and not scope.context:
                self.members[p.number] = self.members[like.number].renamed(names)
        return scope.found[first.number].renamed(names)

    def _computed(self, part: PatternPart, scope: Scope) -> Instances:
        match part.pattern:
            case EventType():
                return self._events(part, scope)
            case Sequence():
                return self._sequence(part, scope)
            case AtLeast():
                return self._at_least(part, scope)
            case AtMost():
                return self._at_most(part, scope)
        return self._negation(part, scope)

    def _events(self, part: PatternPart, scope: Scope) -> Instances:
        g, vs, place = scope.of_type(part.bit)
        found = self.questions.unlike_context(Instances(g, vs, {part.leaf: place}), scope)
        return self.questions.ask(part.predicates, found, scope)

    # --- SEQUENCE and ATLEAST ------------------------------------------------------------------------------------

    def _sequence(self, part: PatternPart, scope: Scope, forbidden: PatternPart | None = None) -> Instances:
        """All matches, or those without an instance of what is forbidden between their first and last contributor."""
        found = [self.instances(p, scope) for p in part.positive]
        threats = None if forbidden is None else self.instances(forbidden, scope)
        matches = self.selection.in_order(part, found[-1], part.positive[-1])
        earliest = matches.vs
        for step in reversed(range(len(found))):
            if step < len(found) - 1:
                which, other = preceding_pairs(matches, earliest, found[step], scope_length(part), scope, threats)
                matches, earliest = side_by_side(matches, which, found[step], other), found[step].vs[other]
                new = list(found[step].columns)
                matches, earliest = self.questions.unlike(matches, earliest, new)
            due = self._predicates_due(part, step)
            if due:
                holds = self.questions.holds(due, matches, scope)
                matches, earliest = matches.where(holds), earliest[holds]
        return self.selection.select(part, matches)

    def _predicates_due(self, part: PatternPart, step: int) -> list[Predicate]:
        """The predicates that can be evaluated once the parameters from `step` on are bound, and not before."""
        own = part.pattern.variables
        before, after = (
            own if s == 0 else frozenset[str]().union(*(p.pattern.variables for p in part.positive[s:]))
            for s in (step + 1, step)
        )
        return [p for p in part.predicates if (names := own & set(p.variables)) <= after and not names <= before]

    def _at_least(self, part: PatternPart, scope: Scope) -> Instances:
        found = [self.instances(p, scope) for p in part.positive]
        roles: dict[Column, int] = {c: role for role, i in enumerate(found) for c in i.columns}
        everything, role = union(found, list(roles))
        order = argsort_by_group_and_time(everything.g, everything.vs)
        everything, role = everything.take(order), role[order]
        everything, role = self.selection.any_in_order(part, everything, role)
        matches, earliest, used = everything, everything.vs, 1 << role
        for _ in range(part.pattern.contributors - 1):
            which, other = preceding_pairs(matches, earliest, everything, scope_length(part), scope)
            free = (used[which] >> role[other]) & 1 == 0
            which, other = which[free], other[free]
            used = used[which] | 1 << role[other]
            columns = {
                c: np.where(role[other] == roles[c], everything.columns[c][other], a[which])
                for c, a in matches.columns.items()
            }
            matches, earliest = Instances(matches.g[which], matches.vs[which], columns), everything.vs[other]
            holds = self.questions.holds(
                [p for p in part.predicates if part.pattern.var not in p.variables], matches, scope
            )
            holds &= self.questions.all_unlike(matches)
            matches, earliest, used = matches.where(holds), earliest[holds], used[holds]
        matches = self.questions.ask([p for p in part.predicates if part.pattern.var in p.variables], matches, scope)
        return self.selection.select(part, matches)

    # --- ATMOST --------------------------------------------------------------------------------------------------

    def _at_most(self, part: PatternPart, scope: Scope) -> Instances:
        found = [self.instances(p, scope) for p in part.counted]
        everything, role = union(found, [c for i in found for c in i.columns])
        order = argsort_by_group_and_time(everything.g, everything.vs)
        everything, role = everything.take(order), role[order]
        pattern = part.pattern
        assert isinstance(pattern, AtMost)
        # What has no key is counted by itself, even if several parameters accept one event.
        together = np.where(scope.alone[everything.g], -1 - np.arange(len(everything)), everything.g)
        vs, ve, low, high = sliding_snapshots(together, everything.vs, pattern.w, pattern.n)
        g = everything.g[low]
        ids, roots, keys = self._counted(part, everything, role)
        sums, key_sums = running_sums(summands(ids)), running_sums(keys)
        header = {
            "vs": vs,
            "ve": ve,
            "low": low,
            "high": high,
            "first": everything.vs[low],
            "rt": least_of_ranges(roots, low, high),
            "id": idgen_of(summands(vs) + sums[high] - sums[low]),
            "key": (key_sums[high] - key_sums[low]).view(np.int64),
        }
        if not scope.context:
            self.members[part.number] = everything
        columns: dict[Column, Times] = {(part.number, name): values for name, values in header.items()}
        return self.questions.ask(part.predicates, Instances(g, vs, columns), scope)

    def _counted(self, part: PatternPart, everything: Instances, role: Times) -> tuple[Times, Times, Words]:
        """Of each counted instance its id, its root time, and a word that identifies it.

        The words of a snapshot's instances are added up; two different snapshots of a group that start together have
        different sums, but for one case in 2^64.
        """
        ids, roots = np.empty_like(everything.vs), np.empty_like(everything.vs)
        keys = np.empty(len(everything), dtype=np.uint64)
        for number, p in enumerate(part.counted):
            mine = role == number
            columns = {c: everything.columns[c][mine] for c in p.columns()}
            ids[mine], roots[mine] = self.headers.id(p, columns), self.headers.root(p, columns)
            word = np.full(int(mine.sum()), p.number, dtype=np.int64)
            for column in identifying_columns(p, columns, self.slots):
                word = (summands(word) + column.view(np.uint64)).view(np.int64)
            keys[mine] = summands(word)
        return ids, roots, keys

    # --- negation ------------------------------------------------------------------------------------------------

    def _negation(self, part: PatternPart, scope: Scope) -> Instances:
        if forbids_inside(part):
            return self.questions.ask(part.predicates, self._sequence(part.kept, scope, part.forbidden), scope)
        kept = self.instances(part.kept, scope)
        after, before = self._forbidden_times(part, kept)
        if part.bound:
            around = self._scope_around(part, kept, after, before, scope)
            threats = self.instances(part.forbidden, around)
            own = np.arange(len(kept))
            forbidden = any_between(offsets(threats.g, len(kept)), threats.vs, own, after, before)
        else:
            threats = self.instances(part.forbidden, scope)
            forbidden = any_between(offsets(threats.g, scope.groups), threats.vs, kept.g, after, before)
        kept = kept.where(~forbidden | scope.alone[kept.g])  # without a key nothing is of the same key
        if isinstance(part.pattern, Unless) and part.pattern.n is not None:
            kept = Instances(kept.g, self.headers.start(part, kept.columns), kept.columns)
            kept = kept.take(argsort_by_group_and_time(kept.g, kept.vs))
        return self.questions.ask(part.predicates, kept, scope)

    def _forbidden_times(self, part: PatternPart, kept: Instances) -> tuple[Times, Times]:
        """The open interval in which no forbidden event may start."""
        match part.pattern:
            case Unless(w=w, n=n):
                start = kept.vs if n is None else self.headers.contributor(part.kept, kept.columns, n)
                return start, later(start, w)
            case CancelWhen():
                return self.headers.root(part.kept, kept.columns), kept.vs
        return self.headers.contributor(part.kept, kept.columns, 1), kept.vs

    def _scope_around(self, part: PatternPart, kept: Instances, after: Times, before: Times, scope: Scope) -> Scope:
        """For each kept instance the events that could forbid it, as a group of their own."""
        seen = scope.only(sum({1 << leaf.bit for leaf in part.forbidden.leaves()}))
        low = earlier(after, part.forbidden.back)
        high = np.where(after < before, later(before, part.forbidden.ahead), low)
        which, found = between(seen.first(), seen.vs, kept.g, low, high)
        context = {c: a[kept.g] for c, a in scope.context.items()}
        around = {**context, **kept.columns}
        return Scope(which, seen.vs[found], seen.place[found], seen.bits[found], scope.alone[kept.g], around)


def forbids_inside(part: PatternPart) -> bool:
    """Whether a negation forbids what lies between the first and the last contributor of a sequence, and all users of
    the sequence need it without what is forbidden."""
    kept = part.kept
    if part.bound or not isinstance(kept.pattern, Sequence) or kept.selects or kept.consumes:
        return False
    if kept.repeated or kept.same_as is not None:
        return False
    is_from_first = isinstance(part.pattern, CancelWhen) and all(p.leaf >= 0 for p in kept.positive)
    return isinstance(part.pattern, Not) or is_from_first


def preceding_pairs(
    matches: Instances, earliest: Times, found: Instances, span: int, scope: Scope, threats: Instances | None = None
) -> tuple[Times, Times]:
    """Pairs of a match begun from its end and an instance that may precede it, with no threat between the two.

    An event without a key is not of the same key as itself, even where UNLESS lets an instance of it start later.
    """
    since = earlier(matches.vs, span)
    if threats is not None:
        last = last_before(offsets(threats.g, scope.groups), threats.vs, matches.g, matches.vs)
        since = np.maximum(since, last)
    until = np.where(scope.alone[matches.g], MIN, earliest) if scope.alone.any() else earliest
    return between(offsets(found.g, scope.groups), found.vs, matches.g, since, until)


def side_by_side(matches: Instances, which: Times, found: Instances, other: Times) -> Instances:
    columns = {c: a[which] for c, a in matches.columns.items()}
    columns |= {c: a[other] for c, a in found.columns.items()}
    return Instances(matches.g[which], matches.vs[which], columns)


def column_mapping(first: PatternPart, part: PatternPart) -> dict[Column, Column]:
    """The columns of a part by those of another with the same shape."""
    return dict(zip(first.all_columns(), part.all_columns(), strict=True))


def scope_length(part: PatternPart) -> int:
    assert isinstance(part.pattern, Sequence | AtLeast)
    return part.pattern.w


def identifying_columns(part: PatternPart, columns: dict[Column, Times], slots: Times) -> list[Times]:
    """Columns that identify an instance in another evaluation."""
    identifying = [np.where(columns[p.leaf] >= 0, slots[columns[p.leaf]], -1) for p in part.positive_leaves()]
    for p in part.counting():
        identifying += [columns[p.number, "vs"], columns[p.number, "key"]]
    return identifying
