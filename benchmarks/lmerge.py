"""Logical merge on one core: speed and memory of its algorithms, as in the figures of the LMerge paper.

One history of events with payloads of 1,000 bytes, told by several inputs, each in its own way: with its own disorder
and ends that are adjusted later, or, for R0 to R2, in order and without adjusts. Chunks of the inputs come in turn, a
CTI after each. Speed counts the elements of all inputs. Memory is what the algorithm holds, payloads included.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import process_time

import numpy as np
import polars as pl

from cedr.bench import Report, median, one_core, spread
from cedr.columnar.chunk import NEW, OLD, VS, Chunk, assemble, empty
from cedr.columnar.times import Times
from cedr.operators.align import Align
from cedr.operators.base import Operator
from cedr.operators.merge.algorithms import ALGORITHMS
from cedr.temporal.time import INF

SCHEMA = {"k": pl.Int64(), "text": pl.String()}
BYTES = 1_000
CHUNK = 5_000
IN_ORDER = ("R0", "R1", "R2")
SPEED_BARS = {"R0": 10.0, "R3": 1.0}
MEMORY_BAR = 1.3
"""Ten inputs may need so many times the memory of two."""


@dataclass(frozen=True)
class Told:
    """How an input tells the history: what share of events comes late, by how much at most, and what share of ends is
    wrong at first."""

    late: float = 0.2
    by: int = 2_000
    wrong: float = 0.2
    chunk: int = CHUNK

    def chunks(self, payload: pl.DataFrame, seed: int) -> list[Chunk]:
        rng, n = np.random.default_rng(seed), payload.height
        vs = np.arange(n) * 10
        end = vs + 1_000 + vs * 7 % 4_000
        arrival = vs + np.where(rng.random(n) < self.late, rng.integers(0, 10 * self.by, n), 0)
        adjusted = np.flatnonzero(rng.random(n) < self.wrong)
        first = end.copy()
        first[adjusted] += 500
        number = np.concatenate((np.arange(n), adjusted))
        old, new = np.concatenate((vs, first[adjusted])), np.concatenate((first, end[adjusted]))
        when = np.concatenate((arrival, np.maximum(arrival[adjusted], end[adjusted]) + 1))
        order = np.argsort(when, kind="stable")
        return list(self._cut(payload, vs, number[order], old[order], new[order]))

    def _cut(self, payload: pl.DataFrame, vs: Times, number: Times, old: Times, new: Times) -> Iterator[Chunk]:
        coming = np.minimum.accumulate(np.minimum(old, new)[::-1])[::-1]  # the earliest time still to come
        for i in range(0, len(number), self.chunk):
            j = i + self.chunk
            part = number[i:j]
            cti = int(coming[j]) if j < len(number) else INF
            yield assemble(vs[part], old[i:j], new[i:j], payload[part], cti)


AS_IT_COMES, ORDERED = Told(), Told(late=0, wrong=0)


def run(report: Report, quick: bool = False) -> None:
    one_core()
    n = 20_000 if quick else 100_000
    payload = payloads(n)
    inputs = (2, 3) if quick else (2, 4, 6, 8, 10)
    for algorithm in ALGORITHMS:
        over_inputs(report, algorithm, payload, (2,) if algorithm == "R3-" and quick else inputs, quick)
    over_disorder(report, payload)
    over_lag(report, payload, quick)
    over_ctis(report, payload, quick)
    enforced(report, payload, inputs[-1])


def payloads(n: int) -> pl.DataFrame:
    """Numbers, and texts of 1,000 bytes that differ."""
    rng = np.random.default_rng(1)
    letters = rng.integers(97, 123, (n, BYTES), dtype=np.uint8).view(f"S{BYTES}").ravel()
    return pl.DataFrame({"k": np.arange(n) % 400, "text": letters.astype(str)}, schema=SCHEMA)


def streams(told: Told, payload: pl.DataFrame, inputs: int) -> list[list[Chunk]]:
    return [told.chunks(payload, seed) for seed in range(inputs)]


@dataclass
class Measured:
    elements: int
    seconds: float
    most_bytes: int

    @property
    def speed(self) -> float:
        return self.elements / self.seconds / 1e6


def merged(algorithm: str, feed: Sequence[Sequence[Chunk]], cleanse: bool = False, behind: int = 0) -> Measured:
    """Merge all inputs, chunk by chunk in turn; `behind`: so many chunks every input lags behind the one before it."""
    operator = ALGORITHMS[algorithm](SCHEMA, len(feed))
    before: list[Operator | None] = [Align(SCHEMA, flavour="perfect") if cleanse else None for _ in feed]
    most, seconds = 0, 0.0
    for step in range(max(map(len, feed)) + behind * len(feed)):
        for port, chunks in enumerate(feed):
            place = step - behind * port
            if not 0 <= place < len(chunks):
                continue
            start = process_time()
            aligned, chunk = before[port], chunks[place]
            operator.process(port, aligned.process(0, chunk) if aligned else chunk)
            seconds += process_time() - start
        held = operator.state_size()[1] + sum(a.state_size()[1] for a in before if a)
        most = max(most, held)
    return Measured(sum(len(c) for chunks in feed for c in chunks), seconds, most)


def warm(algorithm: str) -> None:
    """Compile what it needs."""
    small = payloads(200)
    told = ORDERED if algorithm in IN_ORDER else AS_IT_COMES
    merged(algorithm, streams(replace(told, chunk=50), small, 2))


def answer(chunks: Iterable[Chunk]) -> pl.DataFrame:
    """The history that a stream tells; texts by their hashes."""
    rows = pl.concat([chunk.rows for chunk in chunks]).with_columns(pl.col("text").hash())
    come = rows.filter(pl.col(NEW) > pl.col(VS)).select(VS, end=NEW, k="k", text="text", n=pl.lit(1))
    gone = rows.filter(pl.col(OLD) > pl.col(VS)).select(VS, end=OLD, k="k", text="text", n=pl.lit(-1))
    counted = pl.concat([come, gone]).group_by(VS, "end", "k", "text").sum()
    return counted.filter(pl.col("n") != 0).sort(pl.all())


# --- the figures ---------------------------------------------------------------------------------------------------


def over_inputs(report: Report, algorithm: str, payload: pl.DataFrame, inputs: Sequence[int], quick: bool) -> None:
    """Figures 2 and 3: memory and speed over the number of inputs."""
    warm(algorithm)
    told = ORDERED if algorithm in IN_ORDER else AS_IT_COMES
    memory = {}
    for count in inputs:
        feed = streams(told, payload, count)
        runs = [merged(algorithm, feed) for _ in range(1 if quick or algorithm == "R3-" else 3)]
        speeds = [r.speed for r in runs]
        memory[count] = runs[0].most_bytes
        bar = None if quick else SPEED_BARS.get(algorithm)
        report.add(f"{algorithm}, {count} inputs", median(speeds), "M elements/s", bar=bar, spread=spread(speeds))
        report.add(f"{algorithm}, {count} inputs: most memory", memory[count] / 2**20, "MiB")
    feed = streams(told, payload, inputs[0])
    same = answer(outputs(algorithm, feed)).equals(answer(feed[0]))
    report.add(f"{algorithm}: answers agree", float(same), "of 1", bar=1)
    if algorithm == "R3" and len(memory) > 1:
        growth = memory[inputs[-1]] / memory[inputs[0]]
        name = f"R3: memory of {inputs[-1]} inputs over that of {inputs[0]}"
        report.add(name, growth, "x", bar=MEMORY_BAR, at_most=True)


def over_disorder(report: Report, payload: pl.DataFrame) -> None:
    """Figure 4: what is put out over the share of late events."""
    for policy in ("first", "half-frozen", "reflect"):
        for late in (0.0, 0.2, 0.5):
            feed = streams(replace(AS_IT_COMES, late=late), payload, 3)
            out = sum(len(c) for c in outputs("R3", feed, policy))
            report.add(f"R3, {policy}, {late:.0%} late: rows put out", out / payload.height, "per event")


def outputs(algorithm: str, feed: Sequence[Sequence[Chunk]], policy: str = "first") -> Iterator[Chunk]:
    operator = ALGORITHMS[algorithm](SCHEMA, len(feed), policy)
    for step in range(max(map(len, feed))):
        for port, chunks in enumerate(feed):
            yield operator.process(port, chunks[step]) if step < len(chunks) else empty(SCHEMA)


def over_lag(report: Report, payload: pl.DataFrame, quick: bool) -> None:
    """Figure 5: speed over the lag between inputs: what comes late of a slower one is of no more use."""
    feed = streams(AS_IT_COMES, payload, 3)
    for lag in (0, 1) if quick else (0, 1, 2, 4):
        report.add(f"R3, inputs {lag} chunks behind each other", merged("R3", feed, behind=lag).speed, "M elements/s")


def over_ctis(report: Report, payload: pl.DataFrame, quick: bool) -> None:
    """Figure 6: speed over how often progress is told."""
    for size in (1_000, 5_000) if quick else (500, 1_000, 5_000, 20_000):
        measured = merged("R3", streams(replace(AS_IT_COMES, chunk=size), payload, 3))
        report.add(f"R3, a CTI every {size:,} elements", measured.speed, "M elements/s")
        report.add(f"R3, a CTI every {size:,} elements: most memory", measured.most_bytes / 2**20, "MiB")


def enforced(report: Report, payload: pl.DataFrame, inputs: int) -> None:
    """Figure 7: R3 beside inputs that are put in order first, each for itself, for the simpler R2."""
    feed = streams(AS_IT_COMES, payload, inputs)
    for name, run_ in contenders(feed).items():
        measured = run_()
        report.add(f"{name}, {inputs} inputs", measured.speed, "M elements/s")
        report.add(f"{name}, {inputs} inputs: most memory", measured.most_bytes / 2**20, "MiB")


def contenders(feed: Sequence[Sequence[Chunk]]) -> dict[str, Callable[[], Measured]]:
    return {"R3": lambda: merged("R3", feed), "Cleanse and R2": lambda: merged("R2", feed, cleanse=True)}
