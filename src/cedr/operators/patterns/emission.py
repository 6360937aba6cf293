"""When a match may be emitted.

A match at v is sure once no event before `v + settled` can come: the watermark, which is the latest start seen or the
CTI, has reached that. `eager` does not wait. The end of what ATMOST finds moves until time has passed it, so its
results wait for their ends, too, and in the order of their starts: as long as one that began earlier is still open,
later ones wait. What starts before a promised CTI was emitted and stays so, even if its end moves.

A key may be further than the rest, see `cedr.operators.front`: its matches are sure by its own front as well. Times by
key are arrays by its number, of length 1 as long as all keys are equally far. Events without a key have none of these.
"""

from typing import NamedTuple

import numpy as np

from cedr.columnar.chunk import Chunk, Times
from cedr.columnar.state import PART, Stateful, columns, fields
from cedr.columnar.times import earlier, later
from cedr.operators.base import Operator
from cedr.operators.keyed import first_of_each
from cedr.operators.latency import EmissionPolicy
from cedr.operators.patterns.instances import Mask
from cedr.operators.patterns.levels import NO_KEY
from cedr.plan.latency import Latency
from cedr.plan.patterns.parts import PatternPart
from cedr.plan.patterns.tree import FAR
from cedr.temporal.time import INF, MIN

NO_TIME = np.array([MIN])


class Limits(NamedTuple):
    """Progress, and the limit for the starts of emitted matches; for all, and by key once `keyed`."""

    watermark: int = MIN
    released: int = MIN
    promised: int = MIN
    keyed: bool = False
    front: Times = NO_TIME
    own_released: Times = NO_TIME
    settled: Times = NO_TIME

    def of(self, times: Times, g: Times) -> Times:
        """Of times by key those of some keys; MIN of keys that came later, and of events without."""
        if not self.keyed:
            return times
        known = (g != NO_KEY) & (g < len(times))
        found = np.full(len(g), MIN, dtype=np.int64)
        found[known] = times[g[known]]
        return found

    def first(self, g: Times, vs: Times) -> Times:
        """The earliest of these by key, INF where there is none; with one time for all, those without a key as well."""
        counts = (g != NO_KEY) | (not self.keyed)
        return first_of_each(g[counts], vs[counts], self.front)

    def by_key(self, keyed: bool, front: Times, settled: Times) -> "Limits":
        """With what is known of keys now."""
        own = self.own_released
        if keyed and not self.keyed:
            own = np.full(len(front), own[0], dtype=np.int64)
        return self._replace(keyed=keyed, front=front, own_released=own, settled=settled)

    def renumbered(self, numbers: Times) -> "Limits":
        """The keys have new numbers, -1 where they are gone."""
        if not self.keyed:
            return self
        times = (self.front, self.own_released, self.settled)
        return Limits(*self[:4], *(t[numbers[: len(t)] >= 0] for t in times))


class MatchEmission(Stateful):
    """`shows_end`: the payload contains the end, so a result whose end moves is another result."""

    state = fields(clock=PART, limits=columns(Limits))

    def __init__(self, root: PatternPart, latency: Latency, shows_end: bool) -> None:
        self.eager = latency == "eager"
        self.settled = root.settled
        counting = counting_at_top(root)
        self.moving_ends = counting is not None
        self.end_settled = max((p.settled for p in counting.counted), default=0) if counting else 0
        """An end is final when the instance that starts there is."""
        self.behind = max(self.settled - 1, 0)
        """How far behind the input's promise the output's is."""
        if counting and shows_end:
            self.behind = min(FAR, self.behind + counting.span)
        self.clock = EmissionPolicy(latency)
        self.limits = Limits()

    def see(self, operator: Operator, port: int, chunk: Chunk) -> None:
        self.clock.see(operator, port, chunk)
        self.limits = self.limits._replace(watermark=self.clock.watermark)

    def sure(self, g: Times, vs: Times, ve: Times, limits: Limits) -> Mask:
        """Whether results are known for good, if the input is in order."""
        if self.eager:
            return np.ones(len(vs), dtype=np.bool_)
        reached = np.maximum(limits.of(limits.front, g), limits.watermark)
        sure = later(vs, self.settled) <= reached
        return sure & (later(ve, self.end_settled) <= reached) if self.moving_ends else sure

    def by_start(self, limits: Limits) -> bool:
        """Whether results of all keys become sure in the order of their starts."""
        return not (self.eager or self.moving_ends or limits.keyed)

    def sure_until(self, limits: Limits) -> int:
        """Up to which start they are sure then."""
        reached = max(int(limits.front[0]), limits.watermark)
        return INF if reached == INF else int(earlier(np.array([reached]), self.settled)[0])

    def release(self, g: Times, vs: Times, ahead: Mask) -> None:
        """`g, vs`: the results that are not sure. Keys that are `ahead` wait for results of their own only."""
        limits = self.limits
        reached = min(int(vs.min(initial=INF)), limits.watermark)
        own = np.where(ahead, np.minimum(limits.first(g, vs), limits.front), MIN)
        own = np.maximum(own, limits.of(limits.own_released, np.arange(len(own))))
        self.limits = limits._replace(released=max(limits.released, reached), own_released=own)

    def emitted(self, g: Times, vs: Times, ve: Times, limits: Limits) -> Mask:
        sure = self.sure(g, vs, ve, limits)
        if self.moving_ends and not self.eager:
            sure &= vs <= np.maximum(limits.of(limits.own_released, g), limits.released)
        return sure | (vs < np.maximum(limits.of(limits.settled, g), limits.promised))

    def possible(self, front: Times) -> Times:
        """What the output can promise at these fronts of its inputs, apart from results still to be emitted."""
        return np.where(front == INF, INF, earlier(front, self.behind))


def counting_at_top(part: PatternPart) -> PatternPart | None:
    """The ATMOST whose ends are the ends of the matches."""
    if part.counted:
        return part
    return counting_at_top(part.kept) if part.pattern.keeps_lifetimes else None
