"""Clip: a tuple ends early, at the first start of a matching tuple of the other input strictly inside it.

Of the other input only starts matter. A tuple whose clipped end is settled is forgotten, and so are starts before the
CTI.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, assemble
from cedr.columnar.index import RowIndex
from cedr.kernels import tuples as tu
from cedr.kernels.overlap import longest
from cedr.kernels.pieces import next_starts, stored
from cedr.operators.base import Operator, State
from cedr.operators.join import Keys
from cedr.operators.synopsis import Synopsis

Schema = Mapping[str, pl.DataType]


class Clip(Operator):
    ports = 2

    def __init__(self, schema: Schema, other_schema: Schema, left_on: Sequence[str], right_on: Sequence[str]) -> None:
        super().__init__()
        self.schema = dict(schema)
        self.keys = Keys((schema, other_schema), (left_on, right_on))
        self.payloads = RowIndex(self.schema)
        self.tuples = tu.empty_tuples()
        self.starts = tu.empty_tuples()
        self.told = Synopsis(0)

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        if len(chunk):
            take = self._take_tuples if port == 0 else self._take_starts
            take(chunk, self.keys.numbers(port, chunk.rows, missing=port == 0))
        g, vs, ve, number, copies = self.tuples
        first, _ = longest(self.starts[0], self.starts[1], self.starts[2], len(self.keys.index))
        end = np.minimum(ve, next_starts(g, vs, first, self.starts[1]))
        order = np.lexsort((end, vs, number))
        order = np.repeat(order, copies[order])
        no_words = np.empty((len(order), 0), dtype=np.int64)
        changed, _, at, before, after = self.told.tell(number[order], vs[order], end[order], no_words)
        out = assemble(at, before, after, self.payloads.take(changed), self.cti)
        self._forget(end)
        return out

    def _take_tuples(self, chunk: Chunk, g: np.ndarray) -> None:
        vs, number = chunk.vs, self.payloads.ids(chunk.rows)
        tg, tvs, tve, tnumber, _ = self.tuples
        # Only adjusts can speak of a start below the CTI. If its tuple is not there, it was clipped for good.
        first, _ = longest(tg, tvs, tve, len(self.keys.index))
        use = (vs >= self.cti_out) | stored(g, vs, number, first, tvs, tnumber)
        changes = tu.tuple_changes(g[use], vs[use], chunk.old[use], chunk.new[use], number[use])
        self.tuples = tu.merge_tuples(*self.tuples, *changes)

    def _take_starts(self, chunk: Chunk, g: np.ndarray) -> None:
        come, gone = chunk.old == chunk.vs, chunk.new == chunk.vs
        use = (come | gone) & (g >= 0)
        zeros = np.zeros(int(use.sum()), dtype=np.int64)
        vs, group, copies = chunk.vs[use], g[use], np.where(come[use], 1, -1)
        order = np.lexsort((vs, group))
        changes = (group[order], vs[order], vs[order] + 1, zeros, copies[order])
        self.starts = tu.merge_tuples(*self.starts, *changes)

    def _forget(self, end: np.ndarray) -> None:
        if self.cti <= self.cti_out:
            return
        self.tuples = tuple(a[end >= self.cti] for a in self.tuples)
        self.starts = tuple(a[self.starts[1] >= self.cti] for a in self.starts)
        self.told.forget(self.cti)
        self.tuples, self.starts = self.keys.compact([self.tuples, self.starts])
        numbers = self.payloads.compact(np.concatenate((self.tuples[3], self.told.g)))
        if numbers is not None:
            self.tuples = (*self.tuples[:3], numbers[self.tuples[3]], self.tuples[4])
            self.told.g = numbers[self.told.g]

    def state_size(self) -> tuple[int, int]:
        arrays = (*self.tuples, *self.starts, self.told.g, self.told.start, self.told.end)
        return len(self.tuples[0]) + len(self.starts[0]), sum(a.nbytes for a in arrays)

    def save(self) -> State:
        indexes = (self.keys.index.snapshot(), self.payloads.snapshot())
        return {"indexes": indexes, "tuples": self.tuples, "starts": self.starts, **self.told.save()}

    def load(self, state: State) -> None:
        self.keys.index.restore(state["indexes"][0])
        self.payloads.restore(state["indexes"][1])
        self.tuples, self.starts = state["tuples"], state["starts"]
        self.told.load(state)
