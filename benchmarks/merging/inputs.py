"""One history of events with payloads of 1,000 bytes, and several inputs of it.

Each input has its own disorder, and ends that are adjusted later; for R0 to R2, neither.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.chunk import NEW, OLD, VS, Chunk, assemble
from cedr.columnar.times import Times
from cedr.temporal.time import INF

Floats = np.ndarray[Any, np.dtype[np.float64]]
SCHEMA = {"k": pl.Int64(), "text": pl.String()}
BYTES = 1_000
CHUNK = 5_000


@dataclass(frozen=True)
class Disorder:
    """The disorder of an input: the share of late events, their maximum delay, and the share of ends that are wrong at
    first."""

    late: float = 0.2
    by: int = 2_000
    wrong: float = 0.2
    chunk: int = CHUNK

    def elements(self, payload: pl.DataFrame, seed: int) -> "Elements":
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
        return Elements(payload, vs[number[order]], number[order], old[order], new[order], when[order] / 10)

    def chunks(self, payload: pl.DataFrame, seed: int) -> list[Chunk]:
        elements = self.elements(payload, seed)
        return list(elements.cut(range(self.chunk, len(elements) + self.chunk, self.chunk)))


@dataclass(frozen=True)
class Elements:
    """The inserts and adjusts of an input in arrival order.

    `number` is the row of the payload; `sent` is when an element is sent, counted in events.
    """

    payload: pl.DataFrame
    vs: Times
    number: Times
    old: Times
    new: Times
    sent: Floats

    def __len__(self) -> int:
        return len(self.vs)

    def cut(self, places: Iterable[int]) -> Iterator[Chunk]:
        """Chunks that end before these places, each with the CTI that holds then."""
        coming = np.minimum.accumulate(np.minimum(self.old, self.new)[::-1])[::-1]  # the earliest time still to come
        i = 0
        for j in places:
            part = self.number[i:j]
            cti = int(coming[j]) if j < len(self) else INF
            yield assemble(self.vs[i:j], self.old[i:j], self.new[i:j], self.payload[part], cti)
            i = j


AS_IT_COMES, ORDERED = Disorder(), Disorder(late=0, wrong=0)


def payloads(n: int) -> pl.DataFrame:
    """Numbers, and texts of 1,000 bytes that differ."""
    rng = np.random.default_rng(1)
    letters = rng.integers(97, 123, (n, BYTES), dtype=np.uint8).view(f"S{BYTES}").ravel()
    return pl.DataFrame({"k": np.arange(n) % 400, "text": letters.astype(str)}, schema=SCHEMA)


def streams(disorder: Disorder, payload: pl.DataFrame, inputs: int) -> list[list[Chunk]]:
    return [disorder.chunks(payload, seed) for seed in range(inputs)]


def answer(chunks: Iterable[Chunk]) -> pl.DataFrame:
    """The history of a stream; texts by their hashes."""
    rows = pl.concat([chunk.rows for chunk in chunks])
    texts = [name for name, kind in rows.schema.items() if kind == pl.String]
    rows = rows.with_columns(pl.col(texts).hash())
    payload = [name for name in rows.columns if name not in (VS, OLD, NEW)]
    come = rows.filter(pl.col(NEW) > pl.col(VS)).select(VS, *payload, end=NEW, n=pl.lit(1))
    gone = rows.filter(pl.col(OLD) > pl.col(VS)).select(VS, *payload, end=OLD, n=pl.lit(-1))
    counted = pl.concat([come, gone]).group_by(VS, "end", *payload).sum()
    return counted.filter(pl.col("n") != 0).sort(pl.all())


def agree(one: Sequence[Chunk], other: Sequence[Chunk]) -> float:
    return float(answer(one).equals(answer(other)))
