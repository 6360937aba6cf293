"""Spark's own side of the pattern, as most would write it: Python with state, event by event.

Per key the events the watermark has not reached, in order, and the low ones that still wait for a second event. An
event is worked in once the watermark has reached it, so no match is ever wrong. Spark 4.3 cannot hand a list back from
state (KeyError: elementType), so the events are pickled. Imported by Spark's Python workers, so it needs pandas only.
"""

import pickle
from bisect import insort
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pandas as pd

from peers.parameters import HIGH, LOW

if TYPE_CHECKING:
    from pyspark.sql.streaming.state import GroupState

ROWS = "vs long, ve long, k long, first double, second double"
STATE = "coming binary, waiting binary"
Frames = Iterator[pd.DataFrame]
Events = list[tuple[int, float]]
Row = tuple[int, int, int, float, float]


def emission(scope: int) -> Callable[[tuple[int], Frames, "GroupState"], Frames]:
    """A function for `applyInPandasWithState`; the scope is in microseconds."""

    def emit(key: tuple[int], frames: Frames, state: "GroupState") -> Frames:
        coming, waiting = map(pickle.loads, state.get) if state.exists else ([], [])
        if not state.hasTimedOut:
            for frame in frames:
                for start, value in zip(frame["ts"].astype("datetime64[us]").astype("int64"), frame["v"], strict=True):
                    insort(coming, (start, value))
        watermark = state.getCurrentWatermarkMs() * 1000
        rows: list[Row] = []
        while coming and coming[0][0] <= watermark:
            waiting = work_in(key[0], at_one_time(coming), waiting, scope, rows)
        waiting = [(start, value) for start, value in waiting if start + scope > watermark]
        if coming or waiting:
            state.update((pickle.dumps(coming), pickle.dumps(waiting)))
            wake = [*(start for start, _ in coming[:1]), *(start + scope for start, _ in waiting[:1])]
            state.setTimeoutTimestamp(min(wake) // 1000 + 1)
        elif state.exists:
            state.remove()
        if rows:
            yield pd.DataFrame(rows, columns=["vs", "ve", "k", "first", "second"])

    return emit


def at_one_time(coming: Events) -> Events:
    """The earliest events, taken out: one, or several with the same time, which never make a match together."""
    count = 1
    while count < len(coming) and coming[count][0] == coming[0][0]:
        count += 1
    taken, coming[:count] = coming[:count], []
    return taken


def work_in(key: int, events: Events, waiting: Events, scope: int, rows: list[Row]) -> Events:
    """Add the matches that end now; returns what waits afterwards."""
    now = events[0][0]
    for _, value in events:
        if LOW <= value < HIGH:
            for start, first in waiting:
                if now <= start + scope:
                    rows.append((now, max(start + scope, now + 1), key, first, value))
    if any(value >= HIGH for _, value in events):
        waiting = []
    return waiting + [event for event in events if event[1] < LOW]
