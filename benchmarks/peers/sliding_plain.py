"""Spark's own sliding sum as most would write it: Python with state, event by event.

Per key the events that still count, in order, and how far results were emitted; a row is emitted once the watermark
has passed its end. Spark 4.3 cannot hand a list back from state (KeyError: elementType), so the events are pickled.
`sliding_state` does the same on arrays. Imported by Spark's Python workers, so it needs pandas only.
"""

import pickle
from bisect import insort
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from pyspark.sql.streaming.state import GroupState

STATE = "events binary, emitted long"
NOTHING_EMITTED = -(2**62)
Frames = Iterator[pd.DataFrame]
Row = tuple[int, int, int, float]


def emission(window: int) -> Callable[[tuple[int], Frames, "GroupState"], Frames]:
    """A function for `applyInPandasWithState`; the window is in microseconds."""

    def emit(key: tuple[int], frames: Frames, state: "GroupState") -> Frames:
        kept, emitted = state.get if state.exists else (pickle.dumps([]), NOTHING_EMITTED)
        events = pickle.loads(kept)
        if not state.hasTimedOut:
            for frame in frames:
                for start, value in zip(frame["ts"].astype("datetime64[us]").astype("int64"), frame["v"], strict=True):
                    insort(events, (start, value))
        watermark = state.getCurrentWatermarkMs() * 1000
        rows = settled(key[0], events, emitted, watermark, window)
        emitted = rows[-1][1] if rows else emitted
        events = [event for event in events if event[0] + window > emitted]
        if events:
            state.update((pickle.dumps(events), emitted))
            waiting = [start for start, _ in events if start > watermark][:1]
            state.setTimeoutTimestamp(min([events[0][0] + window, *waiting]) // 1000 + 1)
        else:
            state.remove()
        yield pd.DataFrame(rows, columns=["vs", "ve", "k", "s"])

    return emit


def settled(key: int, events: list[tuple[int, float]], emitted: int, watermark: int, window: int) -> list[Row]:
    """The rows from where the answer was emitted up to the watermark."""
    points = sorted({emitted, *(start for start, _ in events), *(start + window for start, _ in events)})
    rows: list[Row] = []
    first, last, total = 0, 0, 0.0
    for begin, end in pairwise(points):
        if end > watermark:
            break
        while last < len(events) and events[last][0] <= begin:
            total += events[last][1]
            last += 1
        while first < last and events[first][0] + window <= begin:
            total -= events[first][1]
            first += 1
        if last > first and begin >= emitted:
            rows.append((begin, end, key, total))
    return rows
