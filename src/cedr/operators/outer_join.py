"""Semi, anti, left and full outer joins: what a tuple does while it has a partner, or while it has none.

    semi    the left payload while it has a partner
    anti    the left payload while it has none
    left    the inner join, and the left payload alone while it has no partner
    full    left, and the right payload alone while it has no partner

The pieces of a left tuple are computed anew from all its partners. Partners that ended before a settled time are
replaced by one stretch per key, the last that was covered; with a residual predicate every pair is different, and an
ended partner is kept while a left tuple of its key that began before its end is.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import polars as pl

from cedr.columnar.chunk import TIMES, Chunk, Times, concat
from cedr.columnar.index import RowIndex
from cedr.kernels import tuples as tu
from cedr.kernels.overlap import longest, overlaps
from cedr.kernels.pieces import last_covered, pieces
from cedr.operators.base import Latency, Operator, State
from cedr.operators.join import Join, Keys, right_names
from cedr.operators.latency import Teller
from cedr.operators.synopsis import Order, Synopsis
from cedr.temporal.time import INF

Schema = Mapping[str, pl.DataType]
How = Literal["left", "full", "semi", "anti"]

NOBODY = -1
"""The payload number of a stretch that stands for partners of the past."""


class Partnered(Operator):
    """The semi join (`partnered=True`) or the anti join of port 0 with port 1.

    A residual predicate speaks of left and right columns; `flipped` says that port 0 is the right side.
    """

    ports = 2

    def __init__(
        self,
        left_schema: Schema,
        right_schema: Schema,
        left_on: Sequence[str],
        right_on: Sequence[str],
        partnered: bool,
        residual: pl.Expr | None = None,
        renamed: Mapping[str, str] | None = None,
        latency: Latency = "perfect",
        flipped: bool = False,
    ) -> None:
        super().__init__()
        self.schema, self.partnered, self.residual = dict(left_schema), partnered, residual
        self.renamed, self.flipped = dict(renamed or {}), flipped
        self.teller = Teller(latency, growing=partnered)
        self.keys = Keys((left_schema, right_schema), (left_on, right_on))
        self.payloads = [RowIndex(dict(left_schema)), RowIndex(dict(right_schema))]
        self.tuples = [tu.empty_tuples(), tu.empty_tuples()]
        self.told = Synopsis(0)
        self.order = Order()

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        self.order.watch(chunk)
        if len(chunk):
            self._take(port, chunk)
        self.teller.see(chunk, self.cti)
        owner, start, end = self._pieces()
        settled = self.teller.settle_events(start, end, self.cti, self.cti_out)
        tell = self.teller.may_tell(start, end, self.cti_out) & (end >= self.cti_out)  # earlier pieces are final
        number, copies = self.tuples[0][3][owner], self.tuples[0][4][owner]
        order = np.lexsort((end, start, number))
        order = order[tell[order]]
        order = np.repeat(order, copies[order])
        no_words = np.empty((len(order), 0), dtype=np.int64)
        told = (number[order], start[order], end[order], no_words)
        changed, _, at, before, after = self.told.tell(*told, self.teller.reached())
        out = self.order.chunk(at, before, after, self.payloads[0].take(changed), settled)
        if settled > self.cti_out:
            self._forget(settled)
        return out

    def _take(self, port: int, chunk: Chunk) -> None:
        g = self.keys.numbers(port, chunk.rows, missing=port == 0)
        vs, old, new = chunk.vs, chunk.old, chunk.new
        number = self.payloads[port].ids(chunk.rows)
        if port == 1:  # a right tuple without key is nobody's partner
            use = g >= 0
            g, vs, old, new, number = g[use], vs[use], old[use], new[use], number[use]
        self.tuples[port] = tu.merge_tuples(*self.tuples[port], *tu.tuple_changes(g, vs, old, new, number))

    def _pieces(self) -> tuple[Times, Times, Times]:
        g, vs, ve, number, _ = self.tuples[0]
        tg, tvs, tve, tnumber, _ = self.tuples[1]
        bounds = longest(tg, tvs, tve, len(self.keys.index))
        once = np.ones(len(tg), dtype=np.int64)
        row, other, start, _, end = overlaps(g, vs, vs, ve, *bounds, tvs, tve, once)
        if self.residual is not None and len(row):
            left, right = self.payloads[0].take(number[row]), self.payloads[1].take(tnumber[other])
            if self.flipped:
                left, right = right, left
            pairs = left.hstack(right.select(pl.col(old).alias(new) for old, new in self.renamed.items()))
            holds = pairs.select(self.residual.fill_null(False).alias("holds"))["holds"].to_numpy()
            row, start, end = row[holds], start[holds], end[holds]
        order = np.lexsort((start, row))
        first = np.searchsorted(row[order], np.arange(len(g) + 1))
        return pieces(vs, ve, first, start[order], end[order], self.partnered)

    def _forget(self, settled: int) -> None:
        keep = self.tuples[0][2] >= settled
        self.tuples[0] = tuple(a[keep] for a in self.tuples[0])
        self._forget_partners(settled)
        self.told.forget(settled)
        self.tuples = self.keys.compact(self.tuples)
        for port, extra in ((0, self.told.g), (1, np.empty(0, dtype=np.int64))):
            stored = self.tuples[port][3]
            numbers = self.payloads[port].compact(np.concatenate((stored[stored != NOBODY], extra)))
            if numbers is not None:
                t = self.tuples[port]
                self.tuples[port] = (*t[:3], np.where(t[3] == NOBODY, NOBODY, numbers[t[3]]), t[4])
                if port == 0:
                    self.told.g = numbers[self.told.g]

    def _forget_partners(self, settled: int) -> None:
        g, vs, ve, *_ = self.tuples[1]
        earliest = np.full(len(self.keys.index), INF, dtype=np.int64)
        np.minimum.at(earliest, self.tuples[0][0], self.tuples[0][1])
        if self.residual is not None:
            keep = (ve >= settled) | (earliest[g] < ve)
            self.tuples[1] = tuple(a[keep] for a in self.tuples[1])
            return
        covered_g, start, end = last_covered(g, vs, ve, settled)
        needed = earliest[covered_g] < end
        covered_g, start, end = covered_g[needed], start[needed], end[needed]
        nobody, once = np.full(len(start), NOBODY), np.ones(len(start), dtype=np.int64)
        alive = tuple(a[ve >= settled] for a in self.tuples[1])
        self.tuples[1] = tu.merge_tuples(*alive, covered_g, start, end, nobody, once)

    def state_size(self) -> tuple[int, int]:
        arrays = [*self.tuples[0], *self.tuples[1], self.told.g, self.told.start, self.told.end]
        return len(self.tuples[0][0]) + len(self.tuples[1][0]), sum(a.nbytes for a in arrays)

    def save(self) -> State:
        return {
            "keys": self.keys.index.snapshot(),
            "payloads": [p.snapshot() for p in self.payloads],
            "tuples": list(self.tuples),
            "order": (self.order.kept, self.order.highest),
            **self.teller.save(),
            **self.told.save(),
        }

    def load(self, state: State) -> None:
        self.keys.index.restore(state["keys"])
        for index, rows in zip(self.payloads, state["payloads"], strict=True):
            index.restore(rows)
        self.tuples = list(state["tuples"])
        self.teller.load(state)
        self.order.kept, self.order.highest = state["order"]
        self.told.load(state)


class OuterJoin(Operator):
    """The inner join beside the anti joins of one side or both."""

    ports = 2

    def __init__(
        self,
        left_schema: Schema,
        right_schema: Schema,
        left_on: Sequence[str],
        right_on: Sequence[str],
        how: How = "left",
        residual: pl.Expr | None = None,
        suffix: str = "_right",
        latency: Latency = "perfect",
    ) -> None:
        super().__init__()
        renamed = right_names(left_schema, right_schema, right_on, suffix)
        sides = (left_schema, right_schema, left_on, right_on)
        self.how = how
        self.flipped: list[bool] = []
        self.parts: list[Operator] = []
        if how in ("semi", "anti"):
            self.parts = [Partnered(*sides, how == "semi", residual, renamed, latency)]
            self.flipped = [False]
            self.schema = dict(left_schema)
            return
        inner = Join(*sides, residual, suffix)
        self.schema = inner.schema
        self.parts = [inner, Partnered(*sides, False, residual, renamed, latency)]
        self.flipped = [False, False]
        if how == "full":
            other_way = (right_schema, left_schema, right_on, left_on)
            self.parts.append(Partnered(*other_way, False, residual, renamed, latency, flipped=True))
            self.flipped.append(True)
        self.from_right = {name: pl.col(old) for old, name in renamed.items()}
        self.right_keys = dict(zip(left_on, right_on, strict=True))

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        outs = []
        for part, flipped in zip(self.parts, self.flipped, strict=True):
            out = part.process(1 - port if flipped else port, chunk)
            outs.append(out if self.how in ("semi", "anti") else Chunk(self._fit(out.rows, flipped), out.cti))
        joined = concat(outs) if len(outs) > 1 else outs[0]
        return Chunk(joined.rows, min(part.cti_out for part in self.parts))

    def _fit(self, rows: pl.DataFrame, flipped: bool) -> pl.DataFrame:
        """The columns of the output, missing where the partner is."""

        def column(name: str, dtype: pl.DataType) -> pl.Expr:
            if flipped and name in self.from_right:
                return self.from_right[name].alias(name)
            if flipped and name in self.right_keys:
                return pl.col(self.right_keys[name]).cast(dtype).alias(name)
            if not flipped and name in rows.columns:
                return pl.col(name)
            return pl.lit(None, dtype=dtype).alias(name)

        return rows.select(*TIMES, *(column(name, dtype) for name, dtype in self.schema.items()))

    def state_size(self) -> tuple[int, int]:
        sizes = [part.state_size() for part in self.parts]
        return sum(rows for rows, _ in sizes), sum(size for _, size in sizes)

    def save(self) -> State:
        return {"parts": [part.snapshot() for part in self.parts]}

    def load(self, state: State) -> None:
        for part, saved in zip(self.parts, state["parts"], strict=True):
            part.restore(saved)
