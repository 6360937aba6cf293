"""Two plans for one query, each fast where the other is slow, and a merge of both (Figure 10).

The query keeps events whose value is in a list. One plan searches the list from its start, the other from its end, so
small values are cheap for one and dear for the other. Stretches of events with small and with large values alternate.

Each plan has a core of its own, in simulated time: its clock goes on by the processor time that its chunks take, and
its output reaches the merge at the time of its clock. The merge's feedback reaches the plans before their next
chunk, not while they work on one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from time import process_time
from typing import Any

import numba
import numpy as np
import polars as pl

import cedr
from cedr.columnar.chunk import Chunk, assemble, empty
from cedr.operators.merge.algorithms import ALGORITHMS
from cedr.runtime.engine import Engine
from cedr.temporal.time import INF

SCHEMA = {"number": pl.Int64(), "x": pl.Int64()}
LISTED = 500_000
"""Values in the list: every second number from 0."""
SHARES = {39: 0.05, 19: 0.1, 9: 0.2}
"""By the ratio of costs: the share of the list that small values occupy at its start; large ones are at its end."""
MOST = 39
CHUNK = 500
STRETCH = (0.05, 0.15)
"""The least and the most of all events that are in a stretch: 10,000 to 30,000 of 200,000, as in the paper."""
Ints = np.ndarray[Any, np.dtype[np.int64]]


@numba.njit(cache=True)
def find(x: Any, listed: Any, found: Any) -> None:
    for row in range(len(x)):
        for value in listed:
            if value == x[row]:
                found[row] = True
                break


@dataclass(frozen=True)
class Search:
    """Is a value in the list? Its cost is the way from the end where the search begins. What is not listed lies next to
    a value that is, and is looked for at its double, so that it costs no more."""

    listed: Ints

    def __call__(self, x: pl.Series) -> pl.Series:
        values, found = x.to_numpy(), np.zeros(len(x), dtype=np.bool_)
        find(values // 2 * 2, self.listed, found)
        return pl.Series(found & (values % 2 == 0))

    def of(self, source: cedr.Stream) -> cedr.Stream:
        return source.where(pl.col("x").map_batches(self, return_dtype=pl.Boolean))


LIST = np.arange(LISTED) * 2
PLANS = {"from the start": Search(LIST), "from the end": Search(LIST[::-1].copy())}


def events(n: int, alternate: bool = True, dear: int = MOST) -> list[Chunk]:
    """Events in order, short ones, with a CTI after each chunk; small and large values in turn, or small ones only."""
    rng = np.random.default_rng(1)
    sizes = rng.integers(int(STRETCH[0] * n), int(STRETCH[1] * n), int(1 / STRETCH[0]))
    large = np.repeat(np.arange(len(sizes)) % 2, sizes)[:n]
    large *= alternate
    width = int(2 * LISTED * SHARES[dear])
    x = rng.integers(0, width, n) + large * (2 * LISTED - width)
    vs = np.arange(n) * 10
    frame = pl.DataFrame({"number": np.arange(n), "x": x}, schema=SCHEMA)
    return [
        assemble(vs[i:j], vs[i:j], vs[i:j] + 10, frame[i:j], int(vs[j]) if j < n else INF)
        for i, j in ((i, i + CHUNK) for i in range(0, n, CHUNK))
    ]


@dataclass
class Ran:
    """When how many events were through, and what came out."""

    seconds: list[float] = field(default_factory=lambda: [0.0])
    through: list[int] = field(default_factory=lambda: [0])
    output: list[Chunk] = field(default_factory=list)

    @property
    def total(self) -> float:
        return self.seconds[-1]


def source(name: str) -> cedr.Stream:
    return cedr.source(name, SCHEMA, insert_only=True)


def race(plans: Sequence[str], chunks: Sequence[Chunk], feedback: bool = False) -> Ran:
    """Let plans work on the same chunks, and merge their output, until the answer is complete."""
    ran, merge = Ran(), ALGORITHMS["R3"](SCHEMA, len(plans))
    runners = [Runner(PLANS[plan].of(source(plan)).engine(), plan, iter(chunks)) for plan in plans]
    for runner in runners:
        runner.start(0)
    while merge.stable < INF:
        port = min(range(len(runners)), key=lambda p: runners[p].done)
        start = process_time()
        out = merge.process(port, runners[port].emitted)
        now = runners[port].done + process_time() - start
        ran.output.append(out)
        if out.cti > ran.through[-1]:
            ran.seconds.append(now)
            ran.through.append(out.cti)
        if feedback:
            for runner in runners:
                runner.engine.skip_before(merge.feedback())
        runners[port].start(now)
    return ran


@dataclass
class Runner:
    """A running plan: its next output, and when."""

    engine: Engine
    plan: str
    chunks: Iterator[Chunk]
    done: float = float("inf")
    emitted: Chunk = field(default_factory=lambda: empty(SCHEMA))

    def start(self, now: float) -> None:
        if chunk := next(self.chunks, None):
            start = process_time()
            self.emitted = self.engine.push(self.plan, chunk)
            self.done = now + process_time() - start
        else:
            self.done = float("inf")
