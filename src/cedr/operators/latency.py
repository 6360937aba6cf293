"""When a result may be emitted.

The watermark is the latest start seen, or the CTI if that is later: with perfect input nothing before it changes. For
an `ordered` operator it is the latest sync time, as its input may have adjusts, or the chronon before the CTI, as what
starts right at a CTI may still be removed. Where the input was held back until it is settled it is the CTI alone, as
rows of one input may be ahead of another. A `perfect` operator emits results that end by the watermark, in the order of
their starts: as long as one that began earlier is still open, later ones wait, or the output would go back in time when
that one ends. `released` is the limit for the starts of emitted results. What starts before a promised CTI was emitted
and stays so, even if its end moves.

An `ordered` operator emits a result that has begun with the end known at that time. If that end turns out to be wrong,
it is changed when time has reached the earlier of both, which is the sync time of that change.

A CTI that had to wait for an open result may come after rows with a later sync time; only rows are put in order.

A group may be ahead of the rest because of promises about it, see `front`. What lies before its front is then emitted
by it alone, in the group's own order. A row that a promise about its payload covers when it arrives does not show how
far other groups are, so it does not move the watermark.
"""

from collections.abc import Callable

import numpy as np

from cedr.columnar.chunk import Chunk, Times
from cedr.columnar.state import NUMBER, Stateful, fields
from cedr.kernels import levels as lv
from cedr.operators.base import Operator
from cedr.plan.latency import Latency
from cedr.temporal.time import INF, MIN

Mask = np.ndarray

TOGETHER = np.zeros(1, dtype=np.bool_)
"""No group is ahead of the others."""


class EmissionPolicy(Stateful):
    """`growing`: a result that ends at a time may go on if a tuple starts right there, so then it is not over yet.

    Times come and go as arrays by group, or of length 1 as long as all groups are equally far.
    """

    state = fields(watermark=NUMBER, released=NUMBER)

    def __init__(self, latency: Latency, growing: bool = False) -> None:
        self.latency, self.growing = latency, growing
        self.watermark = MIN
        self.released = MIN

    def see(self, operator: Operator, port: int, chunk: Chunk) -> None:
        """Take in the progress that the operator's next chunk of an input shows."""
        settled = operator.cti - (self.latency == "ordered" and operator.cti > MIN)
        self.watermark = max(self.watermark, settled)
        if operator.waits or not len(chunk):
            return
        promised = operator.promised[port]
        counts = chunk.is_insert if self.latency == "perfect" else np.ones(len(chunk), dtype=np.bool_)
        sync = chunk.sync
        if promised:
            counts &= sync > self.watermark
            counts[counts] = promised.of(chunk.rows.filter(counts)) <= sync[counts]
        self.watermark = max(self.watermark, int(sync[counts].max(initial=MIN)))

    def limits(self, front: Times, still_open: Callable[[Times], Times], ahead: Mask = TOGETHER) -> tuple[Times, Times]:
        """By when a result must end, and by when it must start, to be emitted.

        `still_open` gives the earliest results that have begun by a time and are not over. Groups that are `ahead` of
        the others wait for results of their own only.
        """
        match self.latency:
            case "perfect":
                until = self.latest(front)
                earliest = still_open(until)
                self.released = max(self.released, min(int(earliest.min(initial=INF)), self.watermark))
                own = np.maximum(chronon_before(np.minimum(earliest, front)), self.released)
                return self.over(until), np.where(ahead, own, self.released)
            case "ordered":
                return np.full_like(front, INF), self.reached(front)
        return np.full_like(front, INF), np.full_like(front, INF)

    def last_limits(self, promised: Times) -> tuple[Times, Times, Times]:
        """By what results were chosen last, where all groups are equally far: `limits`, and `promised` itself."""
        if self.latency == "perfect":
            until = np.array([self.watermark])
            return self.over(until), np.array([self.released]), promised
        return np.array([INF]), np.array([INF]), promised

    def latest(self, front: Times) -> Times:
        """Up to where a `perfect` operator emits, by group: results that end by then."""
        return np.maximum(front, self.watermark)

    def over(self, until: Times) -> Times:
        """The latest end of results that are over."""
        return np.where(until < INF, chronon_before(until), until) if self.growing else until

    def reached(self, front: Times) -> Times:
        """Up to where emitted ends are brought up to date; a later change would be ahead of time."""
        return (
            np.maximum(chronon_before(front), self.watermark) if self.latency == "ordered" else np.full_like(front, INF)
        )

    def select(
        self, g: Times, start: Times, end: Times, front: Times, promised: Times, ahead: Mask = TOGETHER
    ) -> tuple[Mask, Times]:
        """Which of these events are emitted, and by group the earliest start of one that is not, or INF."""

        def still_open(until: Times) -> Times:
            return lv.earliest_open(g, start, end, until, self.over(until), promised)

        selected: tuple[Mask, Times] = lv.emitted(g, start, end, *self.limits(front, still_open, ahead), promised)
        return selected


def chronon_before(times: Times) -> Times:
    """The chronon before each; MIN has none."""
    return np.maximum(times, MIN + 1) - 1
