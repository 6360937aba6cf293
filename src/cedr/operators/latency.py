"""When a result may be told.

The watermark is the latest start seen, or the CTI if that is later: with perfect input nothing before it changes. For
an `ordered` operator it is the latest sync time, as its input may have adjusts. A `perfect` operator tells results that
end by the watermark, in the order of their starts: as long as one that began earlier is still open, later ones wait, or
the output would go back in time when that one ends. `released` is how far the starts told may reach. What starts before
a promised CTI was told and stays told, even if its end moves.

A CTI that had to wait for an open result may come after rows with a later sync time; only rows are put in order.
"""

import numpy as np

from cedr.columnar.chunk import Chunk, Times
from cedr.kernels.levels import earliest_open
from cedr.operators.base import Latency, State
from cedr.temporal.time import INF, MIN


class Teller:
    def __init__(self, latency: Latency) -> None:
        self.latency = latency
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
        return self.settle(earliest_open(start, end, self.watermark, promised), cti)

    def limits(self) -> tuple[int, int]:
        """By when a result must end, and by when it must start, to be told."""
        match self.latency:
            case "perfect":
                return self.watermark, self.released
            case "ordered":
                return INF, self.watermark
        return INF, INF

    def may_tell(self, start: Times, end: Times, promised: int) -> np.ndarray:
        end_by, start_by = self.limits()
        return (end <= end_by) & (start <= start_by) | (start < promised)

    def open_ended(self, end: Times) -> Times:
        """Ends as an ordered operator tells them when they may still grow: not at all, until they are past."""
        return np.where(end > self.watermark, INF, end) if self.latency == "ordered" else end

    def save(self) -> State:
        return {"watermark": self.watermark, "released": self.released}

    def load(self, state: State) -> None:
        self.watermark, self.released = state["watermark"], state["released"]
