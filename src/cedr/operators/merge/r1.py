"""R1: no adjusts, starts never fall, and events with equal starts come in the same order from every input.

The number of events at the highest start is counted for each input; an input that has sent more than all others so far
sends something new. A hash of each of these events shows whether the order really is the same.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.chunk import NEW, Chunk, Times
from cedr.columnar.state import LIST, array, fields
from cedr.operators.merge.base import InOrder
from cedr.plan.merge_policy import Policy
from cedr.temporal.time import show

Hashes = np.ndarray[Any, np.dtype[np.uint64]]


class R1(InOrder):
    algorithm = "R1"

    state = fields(counts=LIST, hashes=array("u"))

    def __init__(self, schema: Mapping[str, pl.DataType], ports: int = 2, policy: Policy | str = "first") -> None:
        super().__init__(schema, ports, policy)
        self.counts = [0] * ports
        """The number of events at the highest start that each input has sent (SameVsCount)."""
        self.hashes: Hashes = np.empty(0, dtype=np.uint64)
        """Of the events emitted at the highest start, in order."""

    def take_in_order(self, port: int, chunk: Chunk, vs: Times) -> None:
        ties = int(np.searchsorted(vs, self.highest, side="right")) if vs[0] == self.highest else 0
        new = ties
        if ties:
            here = self._hashes(chunk.rows[:ties])
            new = self._same_order(port, chunk, here)
            self.counts[port] += ties
            self.hashes = np.concatenate((self.hashes, here[new:]))
        if ties < len(vs):
            self.highest = int(vs[-1])
            first = int(np.searchsorted(vs, self.highest, side="left"))
            self.counts = [0] * self.ports
            self.counts[port] = len(vs) - first
            self.hashes = self._hashes(chunk.rows[first:])
        self.emit(Chunk(chunk.rows[new:]) if new else chunk)

    def _same_order(self, port: int, chunk: Chunk, here: Hashes) -> int:
        """How many of these events at the highest start were emitted before; they must be the same ones."""
        before = self.hashes[self.counts[port] : self.counts[port] + len(here)]
        differs = before != here[: len(before)]
        if differs.any():
            row = int(np.argmax(differs))
            rule = f"R1 needs the same order of equal starts in all inputs, and at {show(self.highest)} number "
            rule += f"{self.counts[port] + row + 1} was another event; R2 takes any order of equal starts"
            raise self.broken(port, chunk, row, rule)
        return len(before)

    def _hashes(self, rows: pl.DataFrame) -> Hashes:
        return rows.select(NEW, *self.schema).hash_rows().to_numpy()

    def forget(self, port: int) -> None:
        super().forget(port)
        self.counts[port] = 0
