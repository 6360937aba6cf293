"""Clip: a tuple ends early, at the first start of a matching tuple of the other input strictly inside it.

Of the other input only starts matter. A tuple whose clipped end is settled is forgotten, and so are starts before the
front of their key, and all starts of a key of which no tuple is there and none can come.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, Times, assemble
from cedr.columnar.index import RowIndex
from cedr.columnar.state import PART, columns, counted, fields
from cedr.kernels.overlap import longest
from cedr.kernels.pieces import next_starts, stored
from cedr.operators.base import Operator
from cedr.operators.front import still_matters
from cedr.operators.join import NOTHING_HELD, JoinKeys
from cedr.operators.keyed import by_payload, finished_keys
from cedr.operators.synopsis import Synopsis
from cedr.operators.tuple_store import TupleStore
from cedr.temporal.time import MIN

Schema = Mapping[str, pl.DataType]


class ClipOperator(Operator):
    ports = 2

    state = fields(
        keys=PART,
        payloads=PART,
        tuples=counted(columns(TupleStore)),
        starts=counted(columns(TupleStore)),
        emitted=PART,
        front=PART,
    )

    def __init__(self, schema: Schema, other_schema: Schema, left_on: Sequence[str], right_on: Sequence[str]) -> None:
        super().__init__()
        self.schema = dict(schema)
        self.keys = JoinKeys((schema, other_schema), (left_on, right_on))
        self.front = self.keys.front(self, needed=(0,))
        self.payloads = RowIndex(self.schema)
        self.tuples = TupleStore.empty()
        self.starts = TupleStore.empty()
        self.emitted = Synopsis(0)

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        if len(chunk):
            take = self._take_tuples if port == 0 else self._take_starts
            take(chunk, self.keys.numbers(port, chunk.rows, missing=port == 0))
        self.front.advance(port, chunk)
        g, vs, ve, number, copies = self.tuples
        first, _ = longest(self.starts.key, self.starts.vs, self.starts.ve, len(self.keys.index))
        end = np.minimum(ve, next_starts(g, vs, first, self.starts.vs))
        order = np.lexsort((end, vs, number))
        order = np.repeat(order, copies[order])
        no_words = np.empty((len(order), 0), dtype=np.int64)
        changed, _, at, before, after = self.emitted.update(number[order], vs[order], end[order], no_words)
        out = assemble(at, before, after, self.payloads.take(changed), self.cti)
        settled = self.front.settle(NOTHING_HELD)
        promises = self.front.passed(self.cti, len(chunk), g)
        if chunk.cti != MIN or len(chunk.promises):
            self._forget(end, settled)
        return replace(out, promises=promises)

    def _take_tuples(self, chunk: Chunk, g: Times) -> None:
        vs, number = chunk.vs, self.payloads.ids(chunk.rows)
        inserts = TupleStore.changes(*(a[chunk.is_insert] for a in (g, vs, chunk.old, chunk.new, number)))
        # An adjust whose tuple is neither here nor came with this chunk refers to one whose clipped end is final.
        use = chunk.is_insert.copy()
        for tg, tvs, tve, tnumber, _ in (self.tuples, inserts):
            first, _ = longest(tg, tvs, tve, len(self.keys.index))
            use |= stored(g, vs, number, first, tvs, tnumber)
        changes = TupleStore.changes(g[use], vs[use], chunk.old[use], chunk.new[use], number[use])
        self.tuples = self.tuples.merge(changes)

    def _take_starts(self, chunk: Chunk, g: Times) -> None:
        come, gone = chunk.old == chunk.vs, chunk.new == chunk.vs
        use = (come | gone) & (g >= 0) & ~finished_keys(self.front, 0, self.tuples)[g]
        zeros = np.zeros(int(use.sum()), dtype=np.int64)
        vs, group, copies = chunk.vs[use], g[use], np.where(come[use], 1, -1)
        order = np.lexsort((vs, group))
        changes = TupleStore(group[order], vs[order], vs[order] + 1, zeros, copies[order])
        self.starts = self.starts.merge(changes)

    def _forget(self, end: Times, settled: Times) -> None:
        self.emitted.forget(by_payload(settled, self.tuples, len(self.payloads)))
        self.tuples = self.tuples.where(still_matters(self.tuples.key, end, settled))
        self.starts = self.starts.where(still_matters(self.starts.key, self.starts.vs, settled))
        self.starts = self.starts.where(~finished_keys(self.front, 0, self.tuples)[self.starts.key])
        self.tuples, self.starts = self.keys.compact([self.tuples, self.starts], self.front)
        numbers = self.payloads.compact(np.concatenate((self.tuples.value, self.emitted.g)))
        if numbers is not None:
            self.tuples = self.tuples.renumber_values(numbers)
            self.emitted.g = numbers[self.emitted.g]
