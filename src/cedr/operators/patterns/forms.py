"""The operators of patterns: the instances that each of them finds, and the header of these.

SEQUENCE, ATLEAST   a chain of range joins, from the last contributor back to the first, so that matches come out in
                    the order of their starts; predicates are evaluated as soon as their variables are bound
negation            is there a threat strictly between two times? Where WHERE ties threats to the instance they would
                    forbid, the events around each instance are looked at on their own, as a group. A sequence in which
                    nothing may lie between looks no further back than the last threat before its end
ATMOST              snapshots of equally long lifetimes are runs of neighbours

Each operator of `cedr.plan.patterns.tree` has a form here, without state. `Evaluation` and `Headers` ask it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cedr.columnar.chunk import Times
from cedr.columnar.sharding import Words
from cedr.columnar.times import earlier, later
from cedr.kernels.ids import idgen_of, leaf_ids, running_sums, summands
from cedr.kernels.instances import (
    any_between,
    between,
    expanded,
    last_before,
    least_of_ranges,
    offsets,
    ranges_between,
    sliding_snapshots,
)
from cedr.kernels.sorting import argsort_by_group_and_time
from cedr.operators.patterns.first_fitting import first_fitting
from cedr.operators.patterns.instances import Column, Columns, Instances, Mask, Scope, identifying_columns, union
from cedr.plan.patterns import tree
from cedr.plan.patterns.parts import PatternPart
from cedr.plan.patterns.tree import Predicate
from cedr.temporal.time import INF, MIN

if TYPE_CHECKING:
    from cedr.operators.patterns.evaluation import Evaluation
    from cedr.operators.patterns.headers import Headers
    from cedr.operators.patterns.questions import Questions


class Form(ABC):
    @abstractmethod
    def instances(self, part: PatternPart, scope: Scope, evaluation: "Evaluation") -> Instances:
        """All instances in a scope."""

    # --- the header: see `headers` -----------------------------------------------------------------------------------

    def present(self, part: PatternPart, columns: Columns, headers: "Headers") -> Mask:
        return headers.present(part.positive[0], columns)

    @abstractmethod
    def start(self, part: PatternPart, columns: Columns, headers: "Headers") -> Times:
        pass

    def contributor(self, part: PatternPart, columns: Columns, n: int, headers: "Headers") -> Times:
        return headers.contributor(part.kept, columns, n)

    def end(self, part: PatternPart, columns: Columns, vs: Times, headers: "Headers") -> Times:
        return headers.end(part.kept, columns, vs)

    def root(self, part: PatternPart, columns: Columns, headers: "Headers") -> Times:
        roots = [np.where(headers.present(p, columns), headers.root(p, columns), INF) for p in part.positive]
        return np.min(roots, axis=0)

    def id(self, part: PatternPart, columns: Columns, headers: "Headers") -> Times:
        return headers.id(part.kept, columns)


class EventForm(Form):
    def instances(self, part: PatternPart, scope: Scope, evaluation: "Evaluation") -> Instances:
        g, vs, place = scope.of_type(part.bit)
        found = evaluation.questions.unlike_context(Instances(g, vs, {part.leaf: place}), scope)
        return evaluation.questions.ask(part.predicates, found, scope)

    def present(self, part: PatternPart, columns: Columns, headers: "Headers") -> Mask:
        return columns[part.leaf] >= 0

    def start(self, part: PatternPart, columns: Columns, headers: "Headers") -> Times:
        return headers.event_vs[columns[part.leaf]]

    def end(self, part: PatternPart, columns: Columns, vs: Times, headers: "Headers") -> Times:
        assert headers.event_ve is not None, "only versions have an end of their own"
        return headers.event_ve[columns[part.leaf]]

    def root(self, part: PatternPart, columns: Columns, headers: "Headers") -> Times:
        return headers.event_vs[columns[part.leaf]]

    def id(self, part: PatternPart, columns: Columns, headers: "Headers") -> Times:
        ids = headers.event_ids[columns[part.leaf]]
        return leaf_ids(ids, str(part.pattern)) if headers.event_ve is None else ids


# --- SEQUENCE and ATLEAST --------------------------------------------------------------------------------------------


class OrderedForm(Form):
    def end(self, part: PatternPart, columns: Columns, vs: Times, headers: "Headers") -> Times:
        return np.maximum(later(headers.contributor(part, columns, 1), scope_length(part)), later(vs, 1))

    def id(self, part: PatternPart, columns: Columns, headers: "Headers") -> Times:
        total = np.zeros(len(next(iter(columns.values()))), dtype=np.uint64)
        for p in part.positive:
            total += np.where(headers.present(p, columns), summands(headers.id(p, columns)), np.uint64(0))
        return idgen_of(total)


class SequenceForm(OrderedForm):
    def start(self, part: PatternPart, columns: Columns, headers: "Headers") -> Times:
        return headers.start(part.positive[-1], columns)

    def contributor(self, part: PatternPart, columns: Columns, n: int, headers: "Headers") -> Times:
        return headers.start(part.positive[n - 1], columns)

    def instances(
        self, part: PatternPart, scope: Scope, evaluation: "Evaluation", forbidden: PatternPart | None = None
    ) -> Instances:
        """All matches, or those without an instance of what is forbidden between their first and last contributor."""
        selection = evaluation.selection
        found = [evaluation.instances(p, scope) for p in part.positive]
        threats = None if forbidden is None else evaluation.instances(forbidden, scope)
        found[-1] = selection.in_order(part, found[-1], part.positive[-1])
        found[-1] = evaluation.questions.ask(predicates_due(part, len(found) - 1), found[-1], scope)
        compared = any(predicates_due(part, step) for step in range(len(found) - 1)) or evaluation.questions.codes
        finds = self._selected if selection.goes_step_by_step(part) and not compared else self._all
        return selection.select(part, finds(part, found, scope, threats, evaluation))

    def _selected(
        self,
        part: PatternPart,
        found: list[Instances],
        scope: Scope,
        threats: Instances | None,
        evaluation: "Evaluation",
    ) -> Instances:
        """The matches that selection and consumption leave, where no condition compares events."""
        *before, completing = found
        before = [evaluation.selection.in_order(part, i, p) for i, p in zip(before, part.positive, strict=False)]
        times = preceding_times(completing, completing.vs, scope_length(part), scope, threats)
        ranges = [ranges_between(offsets(i.g, scope.groups), i.vs, completing.g, *times) for i in before]
        which, places = evaluation.selection.chains(part, completing, before, ranges)
        matches = completing.take(which)
        for step in reversed(range(len(before))):
            matches = side_by_side(matches, slice(None), before[step], places[:, step])
        return matches

    def _all(
        self,
        part: PatternPart,
        found: list[Instances],
        scope: Scope,
        threats: Instances | None,
        evaluation: "Evaluation",
    ) -> Instances:
        """All matches, from the last step to the first."""
        questions, matches = evaluation.questions, found[-1]
        earliest = matches.vs
        for step in reversed(range(len(found) - 1)):
            between_times = preceding_times(matches, earliest, scope_length(part), scope, threats)
            due = predicates_due(part, step)
            first = offsets(found[step].g, scope.groups)
            if step == 0 and evaluation.selection.takes_one(part, step):
                events = evaluation.selection.in_order(part, found[step], part.positive[step])
                low, high = ranges_between(first, events.vs, matches.g, *between_times)
                last = part.positive[step].pattern.selection == "LAST"
                fits = fitting(matches, events, due, scope, questions)
                which, other = first_fitting(low, high, last, fits)
                return side_by_side(matches, which, events, other)
            which, other = between(first, found[step].vs, matches.g, *between_times)
            matches, earliest = side_by_side(matches, which, found[step], other), found[step].vs[other]
            matches, earliest = questions.unlike(matches, earliest, list(found[step].columns))
            if due:
                holds = questions.holds(due, matches, scope)
                matches, earliest = matches.where(holds), earliest[holds]
        return matches


class AtLeastForm(OrderedForm):
    def present(self, part: PatternPart, columns: Columns, headers: "Headers") -> Mask:
        return np.any([headers.present(p, columns) for p in part.positive], axis=0)

    def start(self, part: PatternPart, columns: Columns, headers: "Headers") -> Times:
        return np.max(headers.starts(part, columns, MIN), axis=0)

    def contributor(self, part: PatternPart, columns: Columns, n: int, headers: "Headers") -> Times:
        return np.sort(headers.starts(part, columns, INF), axis=0)[n - 1]

    def instances(self, part: PatternPart, scope: Scope, evaluation: "Evaluation") -> Instances:
        questions = evaluation.questions
        found = [evaluation.instances(p, scope) for p in part.positive]
        roles: dict[Column, int] = {c: role for role, i in enumerate(found) for c in i.columns}
        everything, role = in_order_of_time(*union(found, list(roles)))
        everything, role = evaluation.selection.any_in_order(part, everything, role)
        matches, earliest, used = everything, everything.vs, 1 << role
        of_parameters = [p for p in part.predicates if part.pattern.var not in p.variables]
        of_match = [p for p in part.predicates if part.pattern.var in p.variables]

        def extended(which: Times, other: Times) -> Instances:
            columns = {
                c: np.where(role[other] == roles[c], everything.columns[c][other], a[which])
                for c, a in matches.columns.items()
            }
            return Instances(matches.g[which], matches.vs[which], columns)

        def fits(which: Times, other: Times) -> Mask:
            more = extended(which, other)
            return questions.holds(of_parameters, more, scope) & questions.all_unlike(more)

        for left in reversed(range(part.pattern.contributors - 1)):
            between_times = preceding_times(matches, earliest, scope_length(part), scope)
            if left == 0 and not of_match and part.selects:
                which, other = earliest_contributors(
                    part, everything, role, matches, used, between_times, fits, evaluation, scope
                )
            else:
                first = offsets(everything.g, scope.groups)
                which, other = between(first, everything.vs, matches.g, *between_times)
                free = (used[which] >> role[other]) & 1 == 0
                which, other = which[free], other[free]
                holds = fits(which, other)
                which, other = which[holds], other[holds]
            used, matches, earliest = used[which] | 1 << role[other], extended(which, other), everything.vs[other]
        return evaluation.selection.select(part, questions.ask(of_match, matches, scope))


def earliest_contributors(
    part: PatternPart,
    everything: Instances,
    role: Times,
    matches: Instances,
    used: Times,
    times: tuple[Times, Times],
    fits: Callable[[Times, Times], Mask],
    evaluation: "Evaluation",
    scope: Scope,
) -> tuple[Times, Times]:
    """Pairs of a match that lacks its earliest contributor and an instance that fits there, of each parameter that is
    not in use. Of a parameter that selects, only those are needed among which is the first or last."""
    pairs = []
    for number, p in enumerate(part.positive):
        places = np.flatnonzero(role == number)
        low, high = ranges_between(
            offsets(everything.g[places], scope.groups), everything.vs[places], matches.g, *times
        )
        high = np.where((used >> number) & 1 == 0, high, low)
        mine = partial(fits_at, places, fits)
        if evaluation.selection.takes_one(part, number):
            which, other = first_fitting(low, high, p.pattern.selection == "LAST", mine)
        else:
            which, other = expanded(low, high)
            holds = mine(which, other)
            which, other = which[holds], other[holds]
        pairs.append((which, places[other]))
    which, other = (np.concatenate(both) for both in zip(*pairs, strict=True))
    order = np.lexsort((other, which))
    return which[order], other[order]


def fits_at(places: Times, fits: Callable[[Times, Times], Mask], which: Times, other: Times) -> Mask:
    return fits(which, places[other])


def fitting(
    matches: Instances, events: Instances, due: Sequence[Predicate], scope: Scope, questions: "Questions"
) -> Callable[[Times, Times], Mask]:
    """Whether predicates hold for matches with an event more, which differs from the others where it has to."""

    def fits(which: Times, other: Times) -> Mask:
        more = side_by_side(matches, which, events, other)
        return questions.holds(due, more, scope) & questions.all_unlike(more)

    return fits


def predicates_due(part: PatternPart, step: int) -> list[Predicate]:
    """The predicates that can be evaluated once the parameters from `step` on are bound, and not before."""
    own = part.pattern.variables
    before, after = (
        own if s == 0 else frozenset[str]().union(*(p.pattern.variables for p in part.positive[s:]))
        for s in (step + 1, step)
    )
    return [p for p in part.predicates if (names := own & set(p.variables)) <= after and not names <= before]


def preceding_times(
    matches: Instances, earliest: Times, span: int, scope: Scope, threats: Instances | None = None
) -> tuple[Times, Times]:
    """For matches begun from their ends, between which times an instance may precede each, with no threat between.

    An event without a key is not of the same key as itself, even where UNLESS lets an instance of it start later.
    """
    since = earlier(matches.vs, span)
    if threats is not None:
        last = last_before(offsets(threats.g, scope.groups), threats.vs, matches.g, matches.vs)
        since = np.maximum(since, last)
    return since, np.where(scope.alone[matches.g], MIN, earliest) if scope.alone.any() else earliest


def side_by_side(matches: Instances, which: Times | slice, found: Instances, other: Times) -> Instances:
    columns = {c: a[which] for c, a in matches.columns.items()}
    columns |= {c: a[other] for c, a in found.columns.items()}
    return Instances(matches.g[which], matches.vs[which], columns)


def in_order_of_time(found: Instances, role: Times) -> tuple[Instances, Times]:
    order = argsort_by_group_and_time(found.g, found.vs)
    return found.take(order), role[order]


def scope_length(part: PatternPart) -> int:
    """The scope of an operator that has one."""
    assert part.pattern.scope is not None
    return part.pattern.scope


# --- ATMOST ----------------------------------------------------------------------------------------------------------


class AtMostForm(Form):
    """Its instances have no single events, so their columns are their header."""

    def present(self, part: PatternPart, columns: Columns, headers: "Headers") -> Mask:
        return columns[part.number, "low"] >= 0

    def start(self, part: PatternPart, columns: Columns, headers: "Headers") -> Times:
        return columns[part.number, "vs"]

    def contributor(self, part: PatternPart, columns: Columns, n: int, headers: "Headers") -> Times:
        return columns[part.number, "first"]

    def end(self, part: PatternPart, columns: Columns, vs: Times, headers: "Headers") -> Times:
        return columns[part.number, "ve"]

    def root(self, part: PatternPart, columns: Columns, headers: "Headers") -> Times:
        return columns[part.number, "rt"]

    def id(self, part: PatternPart, columns: Columns, headers: "Headers") -> Times:
        return columns[part.number, "id"]

    def instances(self, part: PatternPart, scope: Scope, evaluation: "Evaluation") -> Instances:
        found = [evaluation.instances(p, scope) for p in part.counted]
        everything, role = in_order_of_time(*union(found, [c for i in found for c in i.columns]))
        pattern = part.pattern
        assert isinstance(pattern, tree.AtMost)
        # What has no key is counted by itself, even if several parameters accept one event.
        together = np.where(scope.alone[everything.g], -1 - np.arange(len(everything)), everything.g)
        vs, ve, low, high = sliding_snapshots(together, everything.vs, pattern.w, pattern.n)
        g = everything.g[low]
        ids, roots, keys = counted_headers(part, everything, role, evaluation)
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
            evaluation.members[part.number] = everything
        columns: dict[Column, Times] = {(part.number, name): values for name, values in header.items()}
        return evaluation.questions.ask(part.predicates, Instances(g, vs, columns), scope)


def counted_headers(
    part: PatternPart, everything: Instances, role: Times, evaluation: "Evaluation"
) -> tuple[Times, Times, Words]:
    """Of each counted instance its id, its root time, and a word that identifies it.

    The words of a snapshot's instances are added up; two different snapshots of a group that start together have
    different sums, but for one case in 2^64.
    """
    ids, roots = np.empty_like(everything.vs), np.empty_like(everything.vs)
    keys = np.empty(len(everything), dtype=np.uint64)
    for number, p in enumerate(part.counted):
        mine = role == number
        columns = {c: everything.columns[c][mine] for c in p.columns()}
        ids[mine], roots[mine] = evaluation.headers.id(p, columns), evaluation.headers.root(p, columns)
        word = np.full(int(mine.sum()), p.number, dtype=np.int64)
        for column in identifying_columns(p, columns, evaluation.slots):
            word = (summands(word) + column.view(np.uint64)).view(np.int64)
        keys[mine] = summands(word)
    return ids, roots, keys


# --- negation --------------------------------------------------------------------------------------------------------


class NegationForm(Form):
    """Its instances have the header of what is kept."""

    @abstractmethod
    def forbidden_times(self, part: PatternPart, kept: Instances, headers: "Headers") -> tuple[Times, Times]:
        """The open interval in which no forbidden event may start."""

    def is_inside(self, part: PatternPart) -> bool:
        """Whether that is always from the first to the last contributor of what is kept."""
        return False

    def start(self, part: PatternPart, columns: Columns, headers: "Headers") -> Times:
        return headers.start(part.kept, columns)

    def instances(self, part: PatternPart, scope: Scope, evaluation: "Evaluation") -> Instances:
        if self.is_inside(part) and is_searched_once(part):
            found = SequenceForm().instances(part.kept, scope, evaluation, part.forbidden)
            return evaluation.questions.ask(part.predicates, found, scope)
        kept = evaluation.instances(part.kept, scope)
        after, before = self.forbidden_times(part, kept, evaluation.headers)
        if part.bound:
            around = scope_around(part, kept, after, before, scope)
            threats = evaluation.instances(part.forbidden, around)
            own = np.arange(len(kept))
            forbidden = any_between(offsets(threats.g, len(kept)), threats.vs, own, after, before)
        else:
            threats = evaluation.instances(part.forbidden, scope)
            forbidden = any_between(offsets(threats.g, scope.groups), threats.vs, kept.g, after, before)
        kept = kept.where(~forbidden | scope.alone[kept.g])  # without a key nothing is of the same key
        return evaluation.questions.ask(part.predicates, self.output(part, kept, evaluation.headers), scope)

    def output(self, part: PatternPart, kept: Instances, headers: "Headers") -> Instances:
        return kept


class UnlessForm(NegationForm):
    def forbidden_times(self, part: PatternPart, kept: Instances, headers: "Headers") -> tuple[Times, Times]:
        n = from_contributor(part)
        start = kept.vs if n is None else headers.contributor(part.kept, kept.columns, n)
        return start, later(start, scope_length(part))

    def start(self, part: PatternPart, columns: Columns, headers: "Headers") -> Times:
        kept, n = headers.start(part.kept, columns), from_contributor(part)
        if n is None:
            return kept
        return np.maximum(later(headers.contributor(part.kept, columns, n), scope_length(part)), kept)

    def contributor(self, part: PatternPart, columns: Columns, n: int, headers: "Headers") -> Times:
        return headers.start(part.kept, columns)

    def end(self, part: PatternPart, columns: Columns, vs: Times, headers: "Headers") -> Times:
        return np.maximum(later(headers.start(part.kept, columns), scope_length(part)), later(vs, 1))

    def output(self, part: PatternPart, kept: Instances, headers: "Headers") -> Instances:
        if from_contributor(part) is None:
            return kept
        moved = Instances(kept.g, self.start(part, kept.columns, headers), kept.columns)
        return moved.take(argsort_by_group_and_time(moved.g, moved.vs))


class NotForm(NegationForm):
    def forbidden_times(self, part: PatternPart, kept: Instances, headers: "Headers") -> tuple[Times, Times]:
        return headers.contributor(part.kept, kept.columns, 1), kept.vs

    def is_inside(self, part: PatternPart) -> bool:
        return True


class CancelWhenForm(NegationForm):
    def forbidden_times(self, part: PatternPart, kept: Instances, headers: "Headers") -> tuple[Times, Times]:
        return headers.root(part.kept, kept.columns), kept.vs

    def is_inside(self, part: PatternPart) -> bool:
        return all(p.leaf >= 0 for p in part.kept.positive)


def from_contributor(part: PatternPart) -> int | None:
    """The contributor from which an UNLESS counts its scope."""
    assert isinstance(part.pattern, tree.Unless)
    return part.pattern.n


def is_searched_once(part: PatternPart) -> bool:
    """Whether a negation keeps a sequence, and all users of the sequence need it without what is forbidden."""
    kept = part.kept
    if part.bound or not isinstance(kept.pattern, tree.Sequence) or kept.selects or kept.consumes:
        return False
    return not kept.repeated and kept.same_as is None


def scope_around(part: PatternPart, kept: Instances, after: Times, before: Times, scope: Scope) -> Scope:
    """For each kept instance the events that could forbid it, as a group of their own."""
    seen = scope.only(sum({1 << leaf.bit for leaf in part.forbidden.leaves()}))
    low = earlier(after, part.forbidden.back)
    high = np.where(after < before, later(before, part.forbidden.ahead), low)
    which, found = between(seen.first(), seen.vs, kept.g, low, high)
    context = {c: a[kept.g] for c, a in scope.context.items()}
    around = {**context, **kept.columns}
    return Scope(which, seen.vs[found], seen.place[found], seen.bits[found], scope.alone[kept.g], around)


FORMS: dict[type[tree.Pattern], Form] = {
    tree.EventType: EventForm(),
    tree.Sequence: SequenceForm(),
    tree.AtLeast: AtLeastForm(),
    tree.AtMost: AtMostForm(),
    tree.Unless: UnlessForm(),
    tree.Not: NotForm(),
    tree.CancelWhen: CancelWhenForm(),
}


def form_of(part: PatternPart) -> Form:
    return FORMS[type(part.pattern)]
