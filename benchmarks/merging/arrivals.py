"""When elements arrive: a deterministic simulation of inputs that stall and catch up, and of a merge that follows them.

Events happen at a constant rate, and sources send each when they learn of it. On its way an element waits for the one
before it, so that a delay holds all that follow; what has piled up then comes faster than it was sent. The merge gets,
ten milliseconds at a time, what has arrived by then. Nothing here depends on how fast this machine is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk
from cedr.operators.merge.algorithms import ALGORITHMS
from merging.inputs import SCHEMA, Disorder, Elements, Floats, agree

RATE = 5_000
"""Events a second."""
CATCHES_UP = 4
"""How many times as fast elements arrive that have piled up."""
TICK = 0.01
Counts = np.ndarray[Any, np.dtype[np.int64]]


Delays = Callable[[Elements, int], Floats]
"""What holds each element on its way, by the number of the input."""


def arrivals(elements: Elements, delays: Floats) -> Floats:
    """When each element arrives: it leaves the queue after the one before it, and is then held by its own delay.

    arrives[i] = max(sent[i], arrives[i - 1]) + takes[i], without the loop.
    """
    takes = delays + 1 / (CATCHES_UP * RATE)
    done = np.cumsum(takes)
    return done + np.maximum.accumulate(elements.sent / RATE - (done - takes))


def bursty(elements: Elements, number: int) -> Floats:
    """As in the paper: now and then, with a probability of 0.3 to 0.5 %, a delay of about 20 ms."""
    rng, n = np.random.default_rng(100 + number), len(elements)
    stalls = rng.random(n) < rng.uniform(0.003, 0.005)
    return np.where(stalls, np.maximum(rng.normal(0.020, 0.005, n), 0), 0)


def congested(stretches: Sequence[tuple[float, float]]) -> Delays:
    """In its stretch of time each element of an input is delayed by about a millisecond: a fifth comes through."""

    def delays(elements: Elements, number: int) -> Floats:
        rng, n = np.random.default_rng(200 + number), len(elements)
        since, until = stretches[number]
        first = int(np.searchsorted(elements.sent / RATE, since))
        slow = np.maximum(rng.normal(0.001, 0.0003, n - first), 0)
        slow[np.cumsum(slow + 1 / (CATCHES_UP * RATE)) > until - since] = 0
        return np.concatenate((np.zeros(first), slow))

    return delays


@dataclass(frozen=True)
class Followed:
    """The number of events that each input and the merge had emitted after each tick, and whether all were."""

    inputs: list[Counts]
    output: Counts
    agrees: float

    @property
    def steady(self) -> slice:
        """The ticks while events happen, without the first half second."""
        return slice(round(0.5 / TICK), round(self.output[-1] / RATE / TICK))


def follow(payload: pl.DataFrame, inputs: int, delays: Delays, disorder: Disorder) -> Followed:
    """Merge inputs that are delayed like this, tick by tick."""
    elements = [disorder.elements(payload, seed) for seed in range(inputs)]
    times = [arrivals(e, delays(e, number)) for number, e in enumerate(elements)]
    ticks = np.arange(1, int(max(t[-1] for t in times) / TICK) + 2) * TICK
    arrived = [list(e.cut(np.searchsorted(t, ticks).tolist())) for e, t in zip(elements, times, strict=True)]
    merge = ALGORITHMS["R3"](SCHEMA, inputs)
    output = [
        [merge.process(port, chunk) for port, chunk in enumerate(chunks)] for chunks in zip(*arrived, strict=True)
    ]
    every = [chunk for chunks in output for chunk in chunks]
    return Followed(
        [np.cumsum([events(chunk) for chunk in chunks]) for chunks in arrived],
        np.cumsum([sum(map(events, chunks)) for chunks in output]),
        agree(every, arrived[0]),
    )


def events(chunk: Chunk) -> int:
    return int(np.count_nonzero(chunk.is_insert))


def rates(emitted: Counts, over: float) -> Floats:
    """Events a second, over stretches of `over` seconds."""
    step = round(over / TICK)
    return np.diff(emitted[::step]) / (step * TICK)


def longest_silence(emitted: Counts) -> float:
    """The longest time in seconds without an event, in whole ticks."""
    changes = np.flatnonzero(np.diff(emitted, prepend=0))
    return float(np.diff(changes).max(initial=1) - 1) * TICK
