"""Spark's own sliding sum: Python with state, per key the events that still count and how far the answer was emitted.

A row is emitted once the watermark has passed its end, so none is ever wrong. Each call sees all new events of a key at
once and works on arrays; the state is two of them as bytes, which costs less than lists of values. Imported by
Spark's Python workers, so it needs numpy and pandas only.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from pyspark.sql.streaming.state import GroupState

STATE = "ts binary, v binary, emitted long"
NOTHING_EMITTED = -(2**62)
Array = np.ndarray[Any, Any]
Frames = Iterator[pd.DataFrame]


def emission(window: int) -> Callable[[tuple[int], Frames, "GroupState"], Frames]:
    """A function for `applyInPandasWithState`; the window is in microseconds."""

    def emit(key: tuple[int], frames: Frames, state: "GroupState") -> Frames:
        ts, v, emitted = load(state)
        if not state.hasTimedOut:
            ts, v = with_new(ts, v, list(frames))
        watermark = state.getCurrentWatermarkMs() * 1000
        vs, ve, s = settled(ts, v, emitted, watermark, window)
        emitted = int(ve[-1]) if len(ve) else emitted
        kept = np.searchsorted(ts, emitted - window, "right")
        save(state, ts[kept:], v[kept:], emitted, following(ts[kept:], watermark, window))
        yield pd.DataFrame({"vs": vs, "ve": ve, "k": np.full(len(vs), key[0]), "s": s})

    return emit


def with_new(ts: Array, v: Array, frames: list[pd.DataFrame]) -> tuple[Array, Array]:
    """Old and new events by start."""
    starts = [f["ts"].to_numpy().astype("datetime64[us]").view(np.int64) for f in frames]
    ts, v = np.concatenate([ts, *starts]), np.concatenate([v, *(f["v"].to_numpy() for f in frames)])
    order = np.argsort(ts)
    return ts[order], v[order]


def settled(ts: Array, v: Array, emitted: int, watermark: int, window: int) -> tuple[Array, Array, Array]:
    """The rows from where the answer was emitted up to the watermark; `ts` is sorted."""
    points = np.unique(np.concatenate([[emitted], ts, ts + window]))
    points = points[np.searchsorted(points, emitted) : np.searchsorted(points, watermark, "right")]
    vs, ve = points[:-1], points[1:]
    first, last = np.searchsorted(ts, vs - window, "right"), np.searchsorted(ts, vs, "right")
    total = np.concatenate([[0.0], np.cumsum(v)])
    full = last > first
    return vs[full], ve[full], (total[last] - total[first])[full]


def load(state: "GroupState") -> tuple[Array, Array, int]:
    if not state.exists:
        return np.empty(0, np.int64), np.empty(0), NOTHING_EMITTED
    ts, v, emitted = state.get
    return np.frombuffer(ts, np.int64), np.frombuffer(v), emitted


def save(state: "GroupState", ts: Array, v: Array, emitted: int, wake: int) -> None:
    if not len(ts):
        state.remove()
        return
    state.update((ts.tobytes(), v.tobytes(), emitted))
    state.setTimeoutTimestamp(wake // 1000 + 1)


def following(ts: Array, watermark: int, window: int) -> int:
    """The next point. Without new events the key emits when the watermark has passed it."""
    waiting = ts[np.searchsorted(ts, watermark, "right") :][:1]
    return min([*(ts[:1] + window).tolist(), *waiting.tolist()], default=watermark)
