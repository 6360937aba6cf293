"""The Previous Output Synopsis: what was emitted and can still change.

Operators that answer per snapshot recompute their answer from their state, leave out what their latency does not allow
yet, and pass it to `update`, which returns the net change against what was emitted before.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, Times, assemble
from cedr.columnar.increments import BlockColumns, Span
from cedr.columnar.promises import NONE, PromiseIndex, Promises
from cedr.columnar.state import ARRAY, FLAG, FORMAT, NUMBER, Stateful, array, fields
from cedr.kernels.difference import ending_from, net_change
from cedr.operators.values import Words
from cedr.temporal.time import INF, MIN


class Synopsis(Stateful):
    """Emitted events: group, start, end, and output values as words; sorted by group and start."""

    state = fields(g=ARRAY, start=ARRAY, end=ARRAY, words=array(ndim=2, in_place=True))

    def __init__(self, width: int) -> None:
        nothing = np.empty(0, dtype=np.int64)
        self.g, self.start, self.end = nothing, nothing, nothing
        self.words: Words = np.empty((0, width), dtype=np.int64)

    def __len__(self) -> int:
        return len(self.g)

    def update(
        self, g: Times, start: Times, end: Times, words: Words, reached: Times | int = INF
    ) -> tuple[Times, Words, Times, Times, Times]:
        """Replace the answer; returns group, words, start, end before and end after of each change.

        An emitted end stays until time has `reached` it, by group or for all, or the end that it should be.
        """
        limits = np.atleast_1d(reached)
        change = net_change(self.g, self.start, self.end, self.words, g, start, end, words, limits)
        self.g, self.start, self.end, self.words = g, start, end, words
        return change

    def forget(self, before: Times | int) -> None:
        """Drop what can no longer change: events that end before a settled time, by group or for all."""
        limits = np.atleast_1d(before)
        self.g, self.start, self.end, self.words = ending_from(self.g, self.start, self.end, self.words, limits)


def synopsis_columns(columns: tuple[Span, ...], **more: Any) -> BlockColumns:
    """A synopsis in blocks; `columns`: those with group, start, end and words."""
    return BlockColumns(columns, ("g", "start", "end", "words"), {FORMAT: Synopsis._format}, **more)


class OutputOrder(Stateful):
    """Has the input been ordered so far? Then the output must be, too, which costs a sort; else it is not needed.

    Once there are promises about parts of the input, each part has an order of its own, and so has the output.
    """

    state = fields(highest=NUMBER, kept=FLAG)

    def __init__(self) -> None:
        self.highest = MIN
        self.kept = True

    def watch(self, chunk: Chunk, promised: PromiseIndex | None = None) -> None:
        if self.kept and len(chunk) and not promised:
            sync = chunk.sync
            self.kept = int(sync[0]) >= self.highest and bool((sync[1:] >= sync[:-1]).all())
            self.highest = int(sync[-1])
        if self.kept:
            self.highest = max(self.highest, chunk.cti)

    def chunk(
        self, vs: Times, old: Times, new: Times, payload: pl.DataFrame, cti: int, promises: Promises = NONE
    ) -> Chunk:
        """The output rows as a chunk, in sync order if the input was ordered."""
        if self.kept and len(vs) > 1:
            order = np.argsort(np.minimum(old, new), kind="stable")
            vs, old, new, payload = vs[order], old[order], new[order], payload[order]
        return replace(assemble(vs, old, new, payload, cti), promises=promises)
