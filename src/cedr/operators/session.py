"""Session windows: tuples of a group whose starts follow each other by less than a timeout live together.

Only starts matter. As long as a session can get a member whose lifetime begins at the session's first start, the output
cannot promise more about its group than that start; a session that no start can reach any more is forgotten.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, Times, assemble
from cedr.columnar.index import RowIndex
from cedr.columnar.state import PART, columns, counted, fields
from cedr.columnar.times import later
from cedr.kernels.sessions import sessions
from cedr.operators.base import Operator
from cedr.operators.front import Front, by_group, earliest
from cedr.operators.keyed import by_payload, first_of_each
from cedr.operators.synopsis import Synopsis
from cedr.operators.tuple_store import Mask, TupleStore
from cedr.temporal.time import INF, as_duration


class SessionOperator(Operator):
    state = fields(groups=PART, payloads=PART, members=counted(columns(TupleStore)), emitted=PART, front=PART)

    def __init__(self, schema: Mapping[str, pl.DataType], timeout: int, by: Sequence[str] = ()) -> None:
        super().__init__()
        self.schema, self.timeout = dict(schema), as_duration(timeout, "session timeout")
        self.groups = RowIndex({name: schema[name] for name in by})
        self.front = Front(self, self.groups)
        self.payloads = RowIndex(self.schema)
        self.members = TupleStore.empty()
        self.emitted = Synopsis(0)

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        self._merge(chunk)
        self.front.advance(port, chunk)
        g, vs, _, number, copies = self.members
        first, last = sessions(g, vs, self.timeout)
        end = later(last, self.timeout)
        order = np.lexsort((end, first, number))
        order = np.repeat(order, copies[order])
        no_words = np.empty((len(order), 0), dtype=np.int64)
        changed, _, at, before, after = self.emitted.update(number[order], first[order], end[order], no_words)
        front = self.front.all()
        can_change = end > by_group(front, g)
        held = first_of_each(g[can_change], first[can_change], front)
        cti = min(self.cti, earliest(held))
        self.front.settle(held, front)
        out = assemble(at, before, after, self.payloads.take(changed), cti)
        out = replace(out, promises=self.front.passed(cti, len(chunk), g))
        self._forget(can_change, front)
        return out

    def _merge(self, chunk: Chunk) -> None:
        come, gone = chunk.old == chunk.vs, chunk.new == chunk.vs
        starts = come | gone
        rows = chunk.rows if starts.all() else chunk.rows.filter(pl.Series(starts))
        g, number = self.groups.ids(rows), self.payloads.ids(rows)
        vs, copies = chunk.vs[starts], np.where(come[starts], 1, -1)
        order = np.lexsort((number, vs, g))
        ends = np.zeros(len(order), dtype=np.int64)
        changes = TupleStore(g[order], vs[order], ends, number[order], copies[order])
        self.members = self.members.merge(changes)

    def _forget(self, can_change: Mask, front: Times) -> None:
        after = np.where(front < INF, np.minimum(front, INF - 1) + 1, INF)
        self.emitted.forget(by_payload(after, self.members, len(self.payloads)))
        self.members = self.members.where(can_change)
        numbers = self.payloads.compact(np.concatenate((self.members.value, self.emitted.g)))
        if numbers is not None:
            self.members = self.members.renumber_values(numbers)
            self.emitted.g = numbers[self.emitted.g]
        numbers = self.groups.compact(self.members.key)
        if numbers is not None:
            self.members = self.members.renumber_keys(numbers)
            self.front.renumber(numbers)
