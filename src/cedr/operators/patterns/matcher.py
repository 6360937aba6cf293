"""The pattern operator: the matches of a pattern, repaired when events arrive late or are removed.

Matches depend on the starts and payloads of events, never on their ends. A change at time c can touch only matches of
its key near c, so for each key that changed, matches of that stretch are computed from the events before and after the
chunk, and the difference is emitted. Nothing that was emitted is kept: it is what the events before give, as far as the
operator's latency allowed. Only the starts and ends of what is still to be emitted are stored.

Each key has its own front: by it matches become sure, events are forgotten, and promises about the key pass where the
output shows it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, Times
from cedr.columnar.promises import Promises
from cedr.columnar.state import PART, columns, counted, each, fields
from cedr.columnar.times import earlier, later
from cedr.kernels.event_list import widen
from cedr.kernels.ids import event_ids
from cedr.kernels.instances import partners
from cedr.operators.base import Operator
from cedr.operators.front import Front, by_group
from cedr.operators.keyed import first_of_each
from cedr.operators.patterns.emission import MatchEmission
from cedr.operators.patterns.evaluation import Evaluation
from cedr.operators.patterns.events import EventList
from cedr.operators.patterns.headers import Headers
from cedr.operators.patterns.instances import Instances, Mask, Scope, identifying_columns
from cedr.operators.patterns.levels import NO_KEY, EventLevels, NearEvents
from cedr.operators.patterns.prepared import PreparedPattern
from cedr.operators.patterns.rendering import Rendering
from cedr.operators.patterns.selection import ConsumedInstances, MatchSelection
from cedr.operators.patterns.waiting import Region, WaitingKind, WaitingMatches, WaitingStore
from cedr.operators.synopsis import OutputOrder
from cedr.plan.latency import Latency
from cedr.plan.patterns.outputs import Outputs
from cedr.plan.patterns.tree import Condition, Pattern
from cedr.temporal.time import INF, MIN


@dataclass
class Matches:
    """What was found in a region, with its evaluation, by which it can be rendered."""

    evaluation: Evaluation
    found: Instances
    ve: Times
    g: Times
    """The lasting number of each match's group."""

    def payload(self, rendering: Rendering, places: Times) -> pl.DataFrame:
        return rendering.payload(self.evaluation, self.found.take(places), self.ve[places])


class MatchOperator(Operator):
    state = fields(
        keys=PART,
        consumed=each(columns(ConsumedInstances)),
        waiting=WaitingKind(),
        emission=PART,
        order=PART,
        events=counted(PART),
        front=PART,
    )

    def __init__(
        self,
        schemas: Sequence[Mapping[str, pl.DataType]],
        pattern: Pattern,
        where: Sequence[Condition],
        outputs: Outputs,
        schema: Mapping[str, pl.DataType],
        latency: Latency = "perfect",
        shown: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """`shown`: the output columns that are an unchanged column of the key, `key0` and so on."""
        self.ports = len(schemas)
        super().__init__()
        self.schema = dict(schema)
        self.prepared = PreparedPattern(schemas, pattern, where, outputs)
        self.root, self.entry, self.rendering = self.prepared.root, self.prepared.entry, self.prepared.rendering
        self.shows_end = "Ve" in self.rendering.reads
        self.emission = MatchEmission(self.root, latency, self.shows_end)
        self.keys = self.entry.keys
        index = self.keys.index
        out = {name: tuple((shown or {}).get(name, ())) for name in index.schema}
        self.front = Front(self, index, self.entry.key_names(self.ports), out)
        self.events = EventList(schemas, self.prepared.needs_ids)
        self.consumed: dict[int, ConsumedInstances] = {}
        self.consumers = [p for p in self.prepared.parts if p.consumes]
        self.waiting = WaitingStore()
        self.order = OutputOrder()

    # --- one chunk -----------------------------------------------------------------------------------------------

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        self.order.watch(chunk, self.promised[port])
        come, gone = self.entry.take(port, chunk, self.events)
        limits = self.emission.limits._replace(promised=self.cti_out, settled=self.front.promised())
        self.front.advance(port, chunk)
        front = self.front.all()
        self.emission.limits = limits.by_key(self.front.keyed, front, self.front.promised())
        self.emission.see(self, port, chunk)
        region = self._region(*(np.concatenate(both) for both in ((come.g, gone.g), (come.vs, gone.vs))))
        near = self._near(region)
        old = new = self._matches(near, region)
        if len(come.g) or len(gone.g):
            new = self._matches(self.events.change(port, come, gone, near), region)
        for part in self.consumers:
            self.consumed[part.number] = new.evaluation.selection.consumed(part)
        self._release_settled(new, region)
        emitted_before = self.emission.emitted(old.g, old.found.vs, old.ve, limits)
        emitted_now = self.emission.emitted(new.g, new.found.vs, new.ve, self.emission.limits)
        self._add_waiting(new, ~emitted_now)
        cti, promises = self._promise(front, len(chunk), new.g[emitted_now])
        out = replace(self._difference(old, new, emitted_before, emitted_now, cti), promises=promises)
        self._forget(front)
        return out

    def _region(self, g: Times, vs: Times) -> Region:
        """Where matches may change or become sure: `g, vs` are the events that came or went."""
        due_g, due = self._due()
        groups = np.concatenate((g, due_g))
        low = np.concatenate((earlier(vs, self.root.ahead), due))
        high = np.concatenate((later(vs, self.root.back), due))
        if self.consumers:  # what is consumed once changes all that follows
            high = np.full_like(high, INF)
        order = np.argsort(groups, kind="stable")
        return Region(*widen(groups[order], low[order], high[order]))

    def _due(self) -> tuple[Times, Times]:
        """The groups and starts of matches that waited and are sure now."""
        limits = self.emission.limits
        if self.waiting.in_blocks and self.emission.by_start(limits):
            return self.waiting.due(self.emission.sure_until(limits))
        waiting = self.waiting.flat()
        due = self.emission.sure(*waiting, limits)
        return waiting.g[due], waiting.vs[due]

    def _near(self, region: Region) -> NearEvents:
        """The events on which the matches of a region depend."""
        low, high = earlier(region.low, self.root.back), later(region.high, self.root.ahead)
        return self.events.events.near(region.g, low, high)

    def _matches(self, near: NearEvents, region: Region) -> Matches:
        used, number = near.events, near.number
        alone = int(np.searchsorted(used.g, NO_KEY, "right"))
        # Region and events are sorted by group, so events without a key come first; each gets a group of its own.
        spread = np.concatenate((np.zeros(alone, dtype=np.int64), np.arange(len(region.g))[region.g != NO_KEY]))
        if len(region.g) and region.g[0] == NO_KEY:
            number = np.concatenate((np.arange(alone), number[alone:] + alone - 1))
        groups = Region(*(a[spread] for a in region))
        ids = event_ids(used.content, used.copy) if self.events.identified else np.zeros_like(used.vs)
        headers = Headers(used.vs, ids)
        selection = MatchSelection(headers, self.consumed, groups.g, groups.low)
        evaluation = self.prepared.evaluation(headers, selection, used.slot, used.variant, self._attribute)
        scope = Scope(number, used.vs, np.arange(len(number)), used.bits, groups.g == NO_KEY, {})
        found = evaluation.instances(self.root, scope)
        found = found.where((groups.low[found.g] <= found.vs) & (found.vs <= groups.high[found.g]))
        ve = headers.end(self.root, found.columns, found.vs)
        return Matches(evaluation, found, ve, groups.g[found.g])

    def _attribute(self, port: int, name: str) -> pl.Series:
        return self.events.payloads[port].column(name)

    # --- output --------------------------------------------------------------------------------------------------

    def _release_settled(self, new: Matches, region: Region) -> None:
        """Release what is sure, now that the matches of a region are these."""
        self.waiting.drop(region)
        g, vs, ve = WaitingMatches(new.g, new.found.vs, new.ve).plus(self.waiting.firsts())
        still_open = ~self.emission.sure(g, vs, ve, self.emission.limits)
        self.emission.release(g[still_open], vs[still_open], self.front.ahead(self.emission.limits.front))

    def _add_waiting(self, new: Matches, waiting: Mask) -> None:
        self.waiting.add(WaitingMatches(new.g, new.found.vs, new.ve).where(waiting))
        self.waiting.choose_layout(self.emission.by_start(self.emission.limits))

    def _promise(self, front: Times, work: int, emitted: Times) -> tuple[int, Promises]:
        """The output's CTI and what it promises of keys: up to what is still to be emitted."""
        cti = int(self.emission.possible(np.array([self.cti]))[0])
        waiting = self.waiting.firsts()
        if self.cti != INF:
            cti = min(cti, int(waiting.vs.min(initial=INF)))
        held = self.emission.limits.first(waiting.g, waiting.vs)
        self.front.settle(np.where(front == INF, INF, held), self.emission.possible(front))
        return cti, self.front.passed(cti, work, emitted[emitted != NO_KEY])

    def _difference(self, old: Matches, new: Matches, emitted_before: Mask, emitted_now: Mask, cti: int) -> Chunk:
        was, now = np.flatnonzero(emitted_before), np.flatnonzero(emitted_now)
        same = partners(self._words(old, was), self._words(new, now))
        stays = same >= 0
        old_ve, new_ve = old.ve[was[stays]], new.ve[now[same[stays]]]
        moved = old_ve != new_ve
        if self.shows_end:  # another end is another payload
            stays[np.flatnonzero(stays)[moved]] = False
            old_ve, new_ve, moved = old_ve[~moved], new_ve[~moved], moved[~moved]
        added = np.ones(len(now), dtype=np.bool_)
        added[same[stays]] = False
        gone, come, adjusted = was[~stays], now[added], now[same[stays][moved]]
        vs = np.concatenate((old.found.vs[gone], new.found.vs[adjusted], new.found.vs[come]))
        before = np.concatenate((old.ve[gone], old_ve[moved], new.found.vs[come]))
        after = np.concatenate((old.found.vs[gone], new_ve[moved], new.ve[come]))
        payload = pl.concat(
            [old.payload(self.rendering, gone), new.payload(self.rendering, np.concatenate((adjusted, come)))]
        )
        return self.order.chunk(vs, before, after, payload, cti)

    def _words(self, matches: Matches, places: Times) -> Times:
        """The words that identify matches."""
        found = matches.found.take(places)
        return np.stack(identifying_columns(self.root, found.columns, matches.evaluation.slots), axis=1)

    # --- state ---------------------------------------------------------------------------------------------------

    def _forget(self, front: Times) -> None:
        """Drop what no match that can change, or is still to be emitted, may need."""
        if front.max(initial=MIN) == MIN:
            return
        waiting = self.waiting.firsts()
        alone = waiting.g == NO_KEY
        by_key = self._first_needed(front, waiting.g[~alone], waiting.vs[~alone])
        without = self._first_needed(np.array([self.cti]), waiting.g[alone], waiting.vs[alone])

        def needed(g: Times, vs: Times) -> Mask:
            return vs >= np.where(g == NO_KEY, without, by_group(by_key, g))

        if self.cti != INF and not self.events.events.is_worth_forgetting(needed):
            return
        if not self.events.keep(needed, self.entry.ports):
            return
        self.consumed = {part: c.take(needed(c.g, c.vs)) for part, c in self.consumed.items()}
        index = self.entry.keys.index
        if not index.may_compact():
            return
        events, waiting = self.events.events.flat(), self.waiting.flat()
        used = [events.g, waiting.g, *(c.g for c in self.consumed.values())]
        numbers = index.compact(np.concatenate([g[g != NO_KEY] for g in used]))
        if numbers is not None:
            self.events.events = EventLevels(events._replace(g=renumbered(events.g, numbers)))
            self.waiting = WaitingStore(waiting._replace(g=renumbered(waiting.g, numbers)))
            self.consumed = {part: c._replace(g=renumbered(c.g, numbers)) for part, c in self.consumed.items()}
            self.emission.limits = self.emission.limits.renumbered(numbers)
            self.front.renumber(numbers)

    def restored(self) -> None:
        self.consumed = {part: c.in_order() for part, c in self.consumed.items()}

    def _first_needed(self, front: Times, g: Times, vs: Times) -> Times:
        """From where on events are needed by matches that can change from a front on, or wait to be emitted."""
        changing = earlier(front, self.root.ahead)
        waiting = first_of_each(g, vs, front)
        first = earlier(np.minimum(changing, waiting), self.root.back)
        return np.where((front == INF) & (waiting == INF), INF, first)


def renumbered(g: Times, numbers: Times) -> Times:
    """Groups by their new numbers, which keep the order; without a key is without a key."""
    return np.where(g == NO_KEY, NO_KEY, numbers[g])
