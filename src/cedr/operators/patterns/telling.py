"""When a match may be told.

A match at v is sure once no event before `v + settled` can come: the watermark, which is the latest start seen or the
CTI, has reached that. `eager` does not wait. The end of what ATMOST finds moves until time has passed it, so its
results wait for their ends, too, and in the order of their starts: as long as one that began earlier is still open,
later ones wait. What starts before a promised CTI was told and stays told, even if its end moves.
"""

from typing import NamedTuple

import numpy as np

from cedr.columnar.chunk import Chunk, Times
from cedr.operators.base import Latency
from cedr.operators.latency import Teller
from cedr.operators.patterns.headers import later
from cedr.operators.patterns.instances import Mask
from cedr.operators.patterns.parts import FAR, Part
from cedr.operators.patterns.tree import AtMost, CancelWhen
from cedr.temporal.time import INF, MIN


class Limits(NamedTuple):
    """How far time has come, and how far the starts of what was told may reach."""

    watermark: int = MIN
    released: int = MIN
    promised: int = MIN


class Telling:
    """`shows_end`: the payload tells the end, so that a result whose end moves is another result."""

    def __init__(self, root: Part, latency: Latency, shows_end: bool) -> None:
        self.eager = latency == "eager"
        self.settled = root.settled
        counting = counting_at_top(root)
        self.moving_ends = counting is not None
        self.end_settled = max((p.settled for p in counting.counted), default=0) if counting else 0
        """An end stays as it is when the instance that starts there does."""
        pattern = counting.pattern if counting else None
        self.behind = max(self.settled - 1, 0)
        """How far behind the input's promise the output's is."""
        if isinstance(pattern, AtMost) and shows_end:
            self.behind = min(FAR, self.behind + pattern.w)
        self.clock = Teller(latency)
        self.limits = Limits()

    def see(self, chunk: Chunk, cti: int, promised: int) -> None:
        self.clock.see(chunk, cti)
        self.limits = Limits(self.clock.watermark, self.limits.released, promised)

    def sure(self, vs: Times, ve: Times, limits: Limits) -> Mask:
        """Whether results are known for good, if the input is in order."""
        if self.eager:
            return np.ones(len(vs), dtype=np.bool_)
        sure = later(vs, self.settled) <= limits.watermark
        return sure & (later(ve, self.end_settled) <= limits.watermark) if self.moving_ends else sure

    def release(self, still_open: int) -> None:
        """`still_open`: the earliest start of a result that is not sure."""
        reached = min(still_open, self.limits.watermark)
        self.limits = self.limits._replace(released=max(self.limits.released, reached))

    def told(self, vs: Times, ve: Times, limits: Limits) -> Mask:
        sure = self.sure(vs, ve, limits)
        if self.moving_ends and not self.eager:
            sure &= vs <= limits.released
        return sure | (vs < limits.promised)

    def promise(self, cti: int, waiting: Times) -> int:
        """The output's CTI, when results with these starts are still to be told."""
        if cti in (MIN, INF):
            return cti
        return min(max(cti - self.behind, MIN), int(waiting.min(initial=INF)))


def counting_at_top(part: Part) -> Part | None:
    """The ATMOST whose ends are the ends of the matches."""
    if isinstance(part.pattern, AtMost):
        return part
    return counting_at_top(part.kept) if isinstance(part.pattern, CancelWhen) else None
