"""Selection and consumption, on all matches of an evaluation at once; see `cedr.reference.patterns.selection`.

Completing instances are taken in the order of start and id. What was consumed by matches before the part of history
that is evaluated again is remembered from one evaluation to the next.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cedr.columnar.chunk import Times
from cedr.columnar.times import earlier
from cedr.kernels.ids import event_ids, numbers_of
from cedr.kernels.instances import expanded
from cedr.kernels.selection import order_of_ties, select_and_consume, selected_chains
from cedr.operators.patterns.headers import Headers
from cedr.operators.patterns.instances import Instances, Mask
from cedr.plan.patterns.parts import PatternPart
from cedr.temporal.time import MIN

MODES = {"EACH": 0, "FIRST": 1, "LAST": 2}


class ConsumedInstances(NamedTuple):
    """Instances that are gone for an operator: group, id, start, and the start of the match that consumed them.

    Those of one evaluation are in the order of their matches, those that are kept in the order of groups.
    """

    g: Times
    id: Times
    vs: Times
    at: Times

    def take(self, which: Times | Mask) -> "ConsumedInstances":
        return ConsumedInstances(*(a[which] for a in self))

    def in_order(self) -> "ConsumedInstances":
        return self.take(np.argsort(self.g, kind="stable"))

    def of_groups(self, groups: Times) -> Times:
        """The places of what is of some groups, if these are in order."""
        low, high = (np.searchsorted(self.g, groups, side) for side in ("left", "right"))
        places: Times = expanded(low, high)[1]
        return places

    def replaced(self, gone: Times, new: "ConsumedInstances") -> "ConsumedInstances":
        """Without what is at some places, and with new ones, in order."""
        if not len(gone) and not len(new.g):
            return self
        kept = ConsumedInstances(*(np.delete(column, gone) for column in self)) if len(gone) else self
        new = new.in_order()
        at = np.searchsorted(kept.g, new.g, "right")
        return ConsumedInstances(*(np.insert(column, at, more) for column, more in zip(kept, new, strict=True)))


NOTHING = ConsumedInstances(*(np.empty(0, dtype=np.int64) for _ in range(4)))


class MatchSelection:
    """`groups` are the groups evaluated, by their lasting numbers; their matches are needed from `since` on."""

    def __init__(
        self, headers: Headers, consumed: Mapping[int, ConsumedInstances], groups: Times, since: Times
    ) -> None:
        self.headers, self.groups, self.since = headers, groups, since
        self.before = consumed
        self.after: dict[int, ConsumedInstances] = {}
        """By part, what is consumed by the matches of this evaluation."""

    def in_order(self, part: PatternPart, completing: Instances, parameter: PatternPart) -> Instances:
        """Completing instances that start together, in the order of their ids."""
        if not (part.selects or part.consumes):
            return completing
        ids = self.headers.id(parameter, completing.columns)
        order = order_of_ties(completing.g, completing.vs, ids)
        return completing if order is None else completing.take(order)

    def any_in_order(self, part: PatternPart, found: Instances, role: Times) -> tuple[Instances, Times]:
        if not (part.selects or part.consumes):
            return found, role
        ids = np.empty_like(found.vs)
        for number, p in enumerate(part.positive):
            mine = role == number
            ids[mine] = self.headers.id(p, {c: found.columns[c][mine] for c in p.columns()})
        order = order_of_ties(found.g, found.vs, ids)
        return (found, role) if order is None else (found.take(order), role[order])

    def goes_step_by_step(self, part: PatternPart) -> bool:
        """Whether a sequence selects or consumes among events. Several versions may have one id."""
        events = len(part.positive) > 1 and all(p.leaf >= 0 for p in part.positive)
        return events and (part.selects or part.consumes) and self.headers.event_ve is None

    def takes_one(self, part: PatternPart, parameter: int) -> bool:
        """Whether only one instance of a parameter is left for each completing instance and choice of the others,
        whatever was consumed: the first or the last that fits."""
        chooses = part.pattern.chooses and part.positive[parameter].pattern.selection != "EACH"
        return chooses and not part.consumes and self.goes_step_by_step(part)

    def chains(
        self,
        part: PatternPart,
        completing: Instances,
        before: Sequence[Instances],
        ranges: Sequence[tuple[Times, Times]],
    ) -> tuple[Times, Times]:
        """The selected chains: the place of the completing event of each, and those of the events before it, by step.

        `ranges` are the places [low, high) where the event of each step may be. Without this all chains are compared,
        which are many where a key is dense. All events are in order.
        """
        consumes = np.array([p.pattern.consumption == "CONSUME" for p in part.positive])
        modes = np.array([MODES[p.pattern.selection] for p in part.positive[:-1]])
        begins = np.cumsum([0, *(len(events) for events in before)])
        completes = np.ones(len(completing), dtype=np.bool_)
        numbers, last = np.zeros(begins[-1], dtype=np.int64), np.zeros(len(completing), dtype=np.int64)
        consumed = np.zeros(1, dtype=np.bool_)
        if part.consumes:
            completes = completing.vs >= self._since(part)[completing.g]
            gone = self._consumed_before(part)
            lists = [*before, completing]
            ids = [self.headers.id(p, events.columns) for p, events in zip(part.positive, lists, strict=True)]
            groups = np.concatenate((gone.g, *(self.groups[events.g] for events in lists)))
            words, size = numbers_of(event_ids(np.concatenate((gone.id, *ids)), groups))
            known, numbers, last = np.split(words, np.cumsum((len(gone.id), begins[-1])))
            consumed = np.zeros(size, dtype=np.bool_)
            consumed[known] = True
        vs = np.concatenate([events.vs for events in before])
        low, high = (np.stack([r[side] for r in ranges], axis=1) + begins[:-1] for side in (0, 1))
        which, places = selected_chains(vs, low, high, completes, modes, consumes, numbers, last, consumed)
        return which, places - begins[:-1]

    def select(self, part: PatternPart, matches: Instances) -> Instances:
        """The selected matches, in the order of group, start and completing instance."""
        if not (part.selects or part.consumes):
            return matches
        if part.consumes:
            matches = matches.where(matches.vs >= self._since(part)[matches.g])
        columns = matches.columns
        starts = np.stack([self.headers.start(p, columns) for p in part.positive], axis=1)
        ids = np.stack([self.headers.id(p, columns) for p in part.positive], axis=1)
        present = np.stack([self.headers.present(p, columns) for p in part.positive], axis=1)
        modes = np.array([MODES[p.pattern.selection] for p in part.positive])
        consumes = np.array([p.pattern.consumption == "CONSUME" for p in part.positive])
        gone = self._consumed_before(part) if part.consumes else NOTHING
        # An event may be in several groups, and what is consumed in one is not in the others. Around an instance that
        # might be forbidden the groups are others, but nothing is consumed there.
        groups = np.repeat(self.groups[matches.g] if part.consumes else matches.g, len(part.positive))
        words = event_ids(np.concatenate((gone.id, ids.ravel())), np.concatenate((gone.g, groups)))
        numbers, size = numbers_of(words)
        known = numbers[: len(gone.id)]
        of_roles = np.where(present, numbers[len(gone.id) :].reshape(ids.shape), -1)
        rows = np.arange(len(matches))
        completing = of_roles[rows, last_role(part, starts, present)]
        selected, row, role = select_and_consume(
            matches.g, matches.vs, completing, starts, ids, of_roles, modes, consumes, known, size
        )
        if part.consumes:
            new = np.flatnonzero(row >= 0)
            row, role = row[new], role[new]
            self.after[part.number] = ConsumedInstances(
                self.groups[matches.g[row]], ids[row, role], starts[row, role], matches.vs[row]
            )
        return matches.where(selected)

    def _since(self, part: PatternPart) -> Times:
        """By group, the first start from which on the instances of a part are needed."""
        return earlier(self.since, part.scope)

    def _consumed_before(self, part: PatternPart) -> ConsumedInstances:
        """What was consumed before that."""
        consumed = self.before.get(part.number, NOTHING)
        consumed = consumed.take(consumed.of_groups(np.unique(self.groups)))
        return consumed.take(~self.evaluated(part, consumed))

    def evaluated(self, part: PatternPart, consumed: ConsumedInstances) -> Mask:
        """Whether what consumed it is evaluated again."""
        order = np.argsort(self.groups, kind="stable")
        groups, since = self.groups[order], self._since(part)[order]
        if not len(groups):
            return np.zeros(len(consumed.g), dtype=np.bool_)
        place = np.minimum(np.searchsorted(groups, consumed.g), len(groups) - 1)
        return (groups[place] == consumed.g) & (consumed.at >= since[place])

    def consumed(self, part: PatternPart) -> ConsumedInstances:
        """All that is consumed after this evaluation."""
        before = self.before.get(part.number, NOTHING)
        places = before.of_groups(np.unique(self.groups))
        again = places[self.evaluated(part, before.take(places))]
        return before.replaced(again, self.after.get(part.number, NOTHING))


def last_role(part: PatternPart, starts: Times, present: Mask) -> Times:
    """The parameter of each match's last contributor."""
    if part.pattern.in_any_order:
        return np.argmax(np.where(present, starts, MIN), axis=1)
    return np.full(len(starts), starts.shape[1] - 1)
