"""Semi, anti, left and full outer joins: what a tuple does while it has a partner, or while it has none.

    semi    the left payload while it has a partner
    anti    the left payload while it has none
    left    the inner join, and the left payload alone while it has no partner
    full    left, and the right payload alone while it has no partner

The pieces of a left tuple are recomputed from all its partners. Partners that ended before a settled time are
replaced by one stretch per key, the last that was covered; with a residual predicate every pair is different, and an
ended partner is kept while a left tuple of its key that began before its end is. A key is settled by its own front;
once a key has no left tuple and none can arrive, its partners are not needed.

While chunks are small, the state is kept in blocks, and only keys are recomputed that a chunk or its progress touches
(`semi_anti_blocks`).

What both sides promise about key columns the output promises, once these pieces are emitted; of keys without
tuples what the left promises is enough.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import polars as pl

from cedr.columnar.chunk import TIMES, Chunk, Times
from cedr.columnar.compacting import compact
from cedr.columnar.index import RowIndex
from cedr.columnar.promises import PromiseIndex, Promises
from cedr.columnar.state import BLOCKS, PART, PARTS, TRANSIENT, columns, counted, each, fields
from cedr.kernels import levels as lv
from cedr.kernels.difference import net_change
from cedr.kernels.overlap import longest, overlaps
from cedr.kernels.pieces import last_covered, pieces
from cedr.operators.base import Operator
from cedr.operators.front import by_group, earliest, still_matters
from cedr.operators.join import JoinKeys, JoinOperator, right_names
from cedr.operators.keyed import by_payload, finished_keys, without_tuples
from cedr.operators.latency import EmissionPolicy
from cedr.operators.locality import Locality
from cedr.operators.promise_intersection import PromiseIntersection
from cedr.operators.semi_anti_blocks import KeyState, Pieces, SemiAntiBlocks
from cedr.operators.synopsis import OutputOrder, Synopsis
from cedr.operators.tuple_store import Mask, TupleStore
from cedr.operators.two_layouts import TwoLayouts, Views
from cedr.plan.latency import Latency
from cedr.temporal.time import INF, MIN

Schema = Mapping[str, pl.DataType]
How = Literal["left", "full", "semi", "anti"]

PAST = -1
"""The payload number of a stretch that replaces partners of the past."""


class SemiAntiJoinOperator(TwoLayouts, Operator):
    """The semi join (`partnered=True`) or the anti join of port 0 with port 1.

    A residual predicate reads left and right columns; `flipped`: port 0 is the right side.
    """

    ports = 2

    state = fields(
        keys=PART,
        payloads=PARTS,
        tuples=counted(each(columns(TupleStore))),
        order=PART,
        emission=PART,
        emitted=PART,
        front=PART,
        blocks=counted(BLOCKS),
        _locality=TRANSIENT,
    )
    fields_in_blocks = ("tuples", "emitted")

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
        self.emission = EmissionPolicy(latency, growing=partnered)
        self.keys = JoinKeys((left_schema, right_schema), (left_on, right_on))
        self.front = self.keys.front(self, needed=(0, 1) if partnered else (0,))
        self.payloads = [RowIndex(dict(left_schema)), RowIndex(dict(right_schema))]
        self.tuples = [TupleStore.empty(), TupleStore.empty()]
        self.emitted = Synopsis(0)
        self.order = OutputOrder()
        self.blocks: SemiAntiBlocks | None = None
        """Tuples and emitted pieces, if they are in blocks; `tuples` and `emitted` are empty then."""
        self._locality = Locality(touched_cost=20)

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        self._choose_layout(chunk)
        self.order.watch(chunk, self.promised[port])
        if self.blocks is not None:
            return self._advance_blocks(self.blocks, port, chunk)
        if len(chunk):
            self._take(port, chunk)
        self.front.advance(port, chunk)
        self.emission.see(self, port, chunk)
        front, promised = self.front.all(), self.front.promised()
        left, right = self.tuples
        owner, start, end = self._pieces(left, right, len(self.keys.index))
        g, number, copies = left.key[owner], left.value[owner], left.copies[owner]
        emits, held = self.emission.select(g, start, end, front, promised, self.front.ahead(front))
        emits &= end >= by_group(promised, g)  # earlier pieces are final
        order = np.lexsort((end, start, number))
        order = order[emits[order]]
        order = np.repeat(order, copies[order])
        no_words = np.empty((len(order), 0), dtype=np.int64)
        emitted = (number[order], start[order], end[order], no_words)
        changed, _, at, before, after = self.emitted.update(*emitted, self._by_payload(self.emission.reached(front)))
        cti, settled = min(self.cti, earliest(held)), self.front.settle(held, front)
        promises = self.front.passed(cti, len(chunk), g[order])
        out = self.order.chunk(at, before, after, self.payloads[0].take(changed), cti, promises)
        if (settled > promised).any() or chunk.cti != MIN or len(chunk.promises):
            self._forget(settled)
        return out

    def _take(self, port: int, chunk: Chunk) -> None:
        g = self.keys.numbers(port, chunk.rows, missing=port == 0)
        vs, old, new = chunk.vs, chunk.old, chunk.new
        number = self.payloads[port].ids(chunk.rows)
        if port == 1:  # a right tuple without key has no partners
            use = (g >= 0) & ~finished_keys(self.front, 0, self.tuples[0])[g]
            g, vs, old, new, number = g[use], vs[use], old[use], new[use], number[use]
        self.tuples[port] = self.tuples[port].merge(TupleStore.changes(g, vs, old, new, number))

    def _by_payload(self, times: Times) -> Times:
        return by_payload(times, self.tuples[0], len(self.payloads[0]))

    def _pieces(self, left_tuples: TupleStore, right_tuples: TupleStore, keys: int) -> tuple[Times, Times, Times]:
        """Which left tuple, start and end of all pieces."""
        g, vs, ve, number, _ = left_tuples
        tg, tvs, tve, tnumber, _ = right_tuples
        bounds = longest(tg, tvs, tve, keys)
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

    def _forget(self, settled: Times) -> None:
        self._forget_past(settled, self.front.of(0) == INF)
        self._forget_rows()

    def _forget_past(self, settled: Times, done: Mask | bool) -> None:
        """Drop what ends before a settled time, and the partners of keys that are done and have no left tuple."""
        self.emitted.forget(self._by_payload(settled))
        left, right = self.tuples
        left = left.where(still_matters(left.key, left.ve, settled))
        self.tuples = [left, self._partners(left, right, settled, without_tuples(done, left, len(self.keys.index)))]

    def _forget_rows(self) -> None:
        """Drop keys and payloads that are not used."""
        self.tuples = self.keys.compact(self.tuples, self.front)
        for port, extra in ((0, self.emitted.g), (1, np.empty(0, dtype=np.int64))):
            stored = self.tuples[port].value
            numbers = self.payloads[port].compact(np.concatenate((stored[stored != PAST], extra)))
            if numbers is not None:
                self.tuples[port] = self.tuples[port].renumber_values(numbers)
                if port == 0:
                    self.emitted.g = numbers[self.emitted.g]

    def _partners(self, left: TupleStore, right: TupleStore, settled: Times, finished: Mask) -> TupleStore:
        """The right tuples that are needed, with stretches in place of those that are not."""
        right = right.where(~finished[right.key])
        g, vs, ve, *_ = right
        earliest = np.full(len(finished), INF, dtype=np.int64)
        np.minimum.at(earliest, left.key, left.vs)
        alive = still_matters(g, ve, settled)
        if self.residual is not None:
            return right.where(alive | (earliest[g] < ve))
        covered_g, start, end = last_covered(g, vs, ve, settled)
        needed = earliest[covered_g] < end
        covered_g, start, end = covered_g[needed], start[needed], end[needed]
        past, once = np.full(len(start), PAST), np.ones(len(start), dtype=np.int64)
        return right.where(alive).merge(TupleStore(covered_g, start, end, past, once))

    # --- in blocks ---------------------------------------------------------------------------------------------------

    def _advance_blocks(self, blocks: SemiAntiBlocks, port: int, chunk: Chunk) -> Chunk:
        g = self.keys.numbers(port, chunk.rows, missing=port == 0)
        touched = np.unique(g[g >= 0])
        first_time = blocks.unread is not None
        if blocks.unread is not None:
            touched, blocks.unread = np.union1d(touched, blocks.unread), None
        self.front.advance(port, chunk)
        self.emission.see(self, port, chunk)
        front, promised = self.front.all(), self.front.promised()
        state = self._read(blocks, touched)
        state = self._take_into(blocks, state, port, chunk, g)
        found = self._pieces_of(state)

        def still_open(until: Times) -> Times:
            over = self.emission.over(until)
            mine: Times = lv.earliest_open(found.key, found.start, found.end, until, over, promised)
            return np.minimum(mine, blocks.earliest_open(until, over, promised))

        limits, reached = self.emission.limits(front, still_open), self.emission.reached(front)
        due = np.setdiff1d(blocks.due(*limits, promised, reached), touched)
        emitted = state.in_all(state.emitted)
        if len(due):
            more = self._read(blocks, due)
            found, emitted = found.plus(self._pieces_of(more)), both(emitted, more.in_all(more.emitted))
        if not first_time:
            self._locality.touch(len(found.key))
        emits, held = lv.emitted(found.key, found.start, found.end, *limits, promised)
        held = np.minimum(held, blocks.first_waiting())
        blocks.wait(found.key[~emits], found.start[~emits], found.end[~emits])
        emits &= found.end >= promised  # earlier pieces are final
        changed, at, before, after = self._update(blocks, found, emits, emitted, reached)
        cti, settled = min(self.cti, earliest(held)), self.front.settle(held, front)
        promises = self.front.passed(cti, len(chunk))
        out = self.order.chunk(at, before, after, self.payloads[0].take(changed), cti, promises)
        if (settled > promised).any() or chunk.cti != MIN:
            blocks.settled, blocks.left_done = int(settled[0]), self.ctis[0] == INF
        self._forget_in_blocks(blocks)
        return out

    def _forget_in_blocks(self, blocks: SemiAntiBlocks) -> None:
        """Read some keys, which forgets what is settled of them; after a lap also keys and payloads without use."""
        if blocks.settled == MIN or not blocks.lap.begins(blocks.rows):
            return
        state = self._read(blocks, blocks.lap.groups(blocks.rows, len(self.keys.index)))
        blocks.wait_again(state)
        if not blocks.lap.under_way:
            for payloads, places in zip(self.payloads, blocks.payload_places, strict=True):
                compact(payloads, *places)
            self.keys.compact_in_blocks(self.front, *blocks.key_places)

    def _read(self, blocks: SemiAntiBlocks, keys: Times) -> KeyState:
        """What is stored of keys, without what may be forgotten. None of their pieces waits until that is decided."""
        stored = blocks.read(keys)
        blocks.wait_no_more(stored)
        settled = np.array([blocks.settled])
        left = stored.left.where(still_matters(stored.left.key, stored.left.ve, settled))
        right, emitted = stored.right, stored.emitted.where(stored.emitted.ve >= blocks.settled)
        finished = without_tuples(blocks.left_done, left, len(keys))
        if (right.ve < blocks.settled).any() or finished.any():
            right = self._partners(left, right, settled, finished)
        state = stored._replace(left=left, right=right, emitted=emitted)
        blocks.write(stored, state)
        return state

    def _take_into(self, blocks: SemiAntiBlocks, state: KeyState, port: int, chunk: Chunk, g: Times) -> KeyState:
        """The state of the keys of a chunk with its rows."""
        if not len(chunk):
            return state
        number = self.payloads[port].ids(chunk.rows)
        rows = (np.searchsorted(state.keys, g), chunk.vs, chunk.old, chunk.new, number)
        if port == 0:
            changes = TupleStore.changes(*rows)
            blocks.add(blocks.left, state.in_all(changes))
            return state._replace(left=state.left.merge(changes))
        use = g >= 0
        use[use] = ~without_tuples(self.ctis[0] == INF, state.left, len(state.keys))[rows[0][use]]
        changes = TupleStore.changes(*(column[use] for column in rows))
        blocks.add(blocks.right, state.in_all(changes))
        return state._replace(right=state.right.merge(changes))

    def _pieces_of(self, state: KeyState) -> Pieces:
        left = state.left
        owner, start, end = self._pieces(left, state.right, len(state.keys))
        return Pieces(state.keys[left.key[owner]], left.value[owner], left.copies[owner], start, end)

    def _update(
        self, blocks: SemiAntiBlocks, found: Pieces, emits: Mask, emitted: TupleStore, reached: Times
    ) -> tuple[Times, Times, Times, Times]:
        """Emit pieces in place of those that were emitted: payload number, start, end before and after of changes."""
        order = np.lexsort((found.end, found.start, found.number))
        order = order[emits[order]]
        order = np.repeat(order, found.copies[order])
        no_words = np.empty((0, 0), dtype=np.int64)
        now, end = (found.number[order], found.start[order]), found.end[order]
        shown = end.copy()
        changed, _, at, before, after = net_change(*as_synopsis(emitted), no_words, *now, shown, no_words, reached)
        late = shown != end
        blocks.outdated(found.key[order][late], np.minimum(shown, end)[late])
        numbers, places = np.unique(np.concatenate((found.number, emitted.value)), return_index=True)
        key = np.concatenate((found.key, emitted.key))[places]
        key = key[np.searchsorted(numbers, changed)]
        blocks.emitted.add(TupleStore.changes(key, at, before, after, changed))
        return changed, at, before, after

    def _choose_layout(self, chunk: Chunk) -> None:
        """Arrays or blocks, before a chunk. Blocks need one front for all keys that is not the end."""
        held = sum(tuples.rows for tuples in self.tuples) if self.blocks is None else self.blocks.rows
        in_blocks = self._locality.prefers_blocks(held, len(chunk), self.blocks is not None)
        in_blocks &= not self.front.keyed and not len(chunk.promises) and self.cti < INF
        if in_blocks == (self.blocks is not None):
            return
        if self.blocks is not None:
            self.fill_arrays()
            self.blocks = None
            self._forget_rows()
            self._locality.changed()
        else:
            self._to_blocks()

    def _emitted_by_key(self) -> TupleStore:
        """What was emitted, as tuples of the keys of the payloads."""
        g, start, end = self.emitted.g, self.emitted.start, self.emitted.end
        key = np.zeros_like(g)
        if self.keys.index.schema:
            key = self.keys.numbers(0, self.payloads[0].rows, missing=True)[g]
        return TupleStore.changes(key, start, start, end, g)

    # --- state -------------------------------------------------------------------------------------------------------

    def restored(self) -> None:
        self.blocks = None

    def block_views(self) -> Views | None:
        return None if self.blocks is None else self.blocks.views()

    def fill_arrays(self) -> None:
        """Without what may be forgotten."""
        blocks = self.blocks
        assert blocks is not None
        emitted = as_synopsis(blocks.emitted.flat())
        self.emitted.g, self.emitted.start, self.emitted.end = emitted
        self.emitted.words = np.empty((len(emitted[0]), 0), dtype=np.int64)
        self.tuples = [blocks.left.flat(), blocks.right.flat()]
        self._forget_past(np.array([blocks.settled]), blocks.left_done)

    def clear_arrays(self) -> None:
        self.tuples, self.emitted = [TupleStore.empty(), TupleStore.empty()], Synopsis(0)

    def move_to_blocks(self) -> None:
        self._to_blocks().left_done = self.ctis[0] == INF

    def _to_blocks(self) -> SemiAntiBlocks:
        left, right = self.tuples
        self.blocks = SemiAntiBlocks(left, right, self._emitted_by_key(), int(self.front.promised()[0]))
        self.clear_arrays()
        self._locality.changed()
        return self.blocks


def as_synopsis(emitted: TupleStore) -> tuple[Times, Times, Times]:
    """Payload number, start and end of emitted pieces, sorted, copies repeated."""
    order = np.lexsort((emitted.ve, emitted.vs, emitted.value))
    order = np.repeat(order, emitted.copies[order])
    return emitted.value[order], emitted.vs[order], emitted.ve[order]


def both(one: TupleStore, two: TupleStore) -> TupleStore:
    return TupleStore(*(np.concatenate(columns) for columns in zip(one, two, strict=True)))


class OuterJoinOperator(Operator):
    """The inner join together with the anti joins of one side or both.

    The inner join is never behind an anti join, which gets the same promises, so what these promise counts alone.
    """

    ports = 2

    state = fields(parts=counted(PARTS), anti_promises=PARTS, common=PART)

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
        self.anti_promises = [PromiseIndex() for _ in range(2 if how == "full" else 1)]
        self.common = PromiseIntersection(self.anti_promises)
        """What the anti joins have promised."""
        if how in ("semi", "anti"):
            self.parts = [SemiAntiJoinOperator(*sides, how == "semi", residual, renamed, latency)]
            self.flipped = [False]
            self.schema = dict(left_schema)
            return
        inner = JoinOperator(*sides, residual, suffix)
        self.schema = inner.schema
        self.parts = [inner, SemiAntiJoinOperator(*sides, False, residual, renamed, latency)]
        self.flipped = [False, False]
        if how == "full":
            other_way = (right_schema, left_schema, right_on, left_on)
            self.parts.append(SemiAntiJoinOperator(*other_way, False, residual, renamed, latency, flipped=True))
            self.flipped.append(True)
        self.from_right = {name: pl.col(old) for old, name in renamed.items()}
        self.right_keys = dict(zip(left_on, right_on, strict=True))
        self.left_keys = {right: [n for n, r in self.right_keys.items() if r == right] for right in right_on}

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        outs = [
            part.process(1 - port if flipped else port, chunk)
            for part, flipped in zip(self.parts, self.flipped, strict=True)
        ]
        promises = self._promises(outs[-len(self.anti_promises) :], len(chunk))
        if self.how in ("semi", "anti"):
            return replace(outs[0], promises=promises)
        rows = [self._fit(out.rows, flipped) for out, flipped in zip(outs, self.flipped, strict=True)]
        return Chunk(pl.concat(rows), min(part.cti_out for part in self.parts), promises=promises)

    def _promises(self, outs: list[Chunk], work: int) -> Promises:
        """What the anti joins promise in common, about keys by their names in the output."""
        if len(outs) == 1:
            return outs[0].promises
        ctis = [part.cti_out for part in self.parts[-len(outs) :]]
        new = [outs[0].promises, outs[1].promises.renamed(self.left_keys)]
        for index, promises, cti in zip(self.anti_promises, new, ctis, strict=True):
            index.add(promises, cti)
        return self.common.passed(new, ctis, work)

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
