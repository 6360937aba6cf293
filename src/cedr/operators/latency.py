"""When a result may be told.

The watermark is the latest start seen, or the CTI if that is later: with perfect input nothing before it changes. For
an `ordered` operator it is the latest sync time, as its input may have adjusts. A `perfect` operator tells results that
end by the watermark, in the order of their starts: as long as one that began earlier is still open, later ones wait, or
the output would go back in time when that one ends. `released` is how far the starts told may reach. What starts before
a promised CTI was told and stays told, even if its end moves.

An `ordered` operator tells a result that has begun with the end known at that time. If that end turns out to be wrong,
it is changed when time has reached the earlier of both, which is the sync time of that change.

A CTI that had to wait for an open result may come after rows with a later sync time; only rows are put in order.
"""

import numpy as np

from cedr.columnar.chunk import Chunk, Times
from cedr.kernels.levels import earliest_open
from cedr.operators.base import Latency, State
from cedr.temporal.time import INF, MIN


class Teller:
    """`growing`: a result that ends at a time may go on if a tuple starts right there, so then it is not over yet."""

    def __init__(self, latency: Latency, growing: bool = False) -> None:
        self.latency, self.growing = latency, growing
        self.watermark = MIN
        self.released = MIN

    def see(self, chunk: Chunk, cti: int) -> None:
        self.watermark = max(self.watermark, cti)
        if len(chunk):
            told = chunk.vs[chunk.is_insert] if self.latency == "perfect" else chunk.sync
            self.watermark = max(self.watermark, int(told.max(initial=MIN)))

    def settle(self, still_open: int, cti: int) -> int:
        """How much of the input's promise the output can give, when `still_open` is the earliest result not told."""
        if self.latency != "perfect":
            return cti
        self.released = max(self.released, min(still_open, self.watermark))
        return min(cti, still_open)

    def settle_events(self, start: Times, end: Times, cti: int, promised: int) -> int:
        return self.settle(earliest_open(start, end, self.watermark, self.over(), promised), cti)

    def over(self) -> int:
        """The latest end of results that are over."""
        return self.watermark - 1 if self.growing and MIN < self.watermark < INF else self.watermark

    def reached(self) -> int:
        """Up to where the ends of what was told are brought up to date; a change further on would be ahead of time."""
        return self.watermark if self.latency == "ordered" else INF

    def limits(self) -> tuple[int, int]:
        """By when a result must end, and by when it must start, to be told."""
        match self.latency:
            case "perfect":
                return self.over(), self.released
            case "ordered":
                return INF, self.watermark
        return INF, INF

    def may_tell(self, start: Times, end: Times, promised: int) -> np.ndarray:
        end_by, start_by = self.limits()
        return (end <= end_by) & (start <= start_by) | (start < promised)

    def save(self) -> State:
        return {"watermark": self.watermark, "released": self.released}

    def load(self, state: State) -> None:
        self.watermark, self.released = state["watermark"], state["released"]
