"""Clip: a tuple ends early, at the first start of a matching tuple of the other input strictly inside it.

Of the other input only starts matter. A tuple whose clipped end is settled is forgotten, and so are starts before the
front of their key, and all starts of a key of which no tuple is there and none can come.

While chunks are small, tuples and starts are kept in blocks. A tuple that changes needs the next start only, and a
start changes the tuples that begin between it and the start before. What was emitted follows from both, so blocks do
not keep it, and snapshots do not have it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, Times, assemble
from cedr.columnar.compacting import compact
from cedr.columnar.index import RowIndex
from cedr.columnar.state import BLOCKS, PART, REBUILT_PART, TRANSIENT, State, columns, counted, fields
from cedr.kernels.difference import net_change
from cedr.kernels.overlap import longest
from cedr.kernels.pieces import next_in_blocks, next_starts, previous_in_blocks, stored
from cedr.operators.base import Operator
from cedr.operators.front import still_matters
from cedr.operators.join import NOTHING_HELD, JoinKeys
from cedr.operators.keyed import by_payload, finished_keys, without_tuples
from cedr.operators.lap import RowLap
from cedr.operators.locality import Locality
from cedr.operators.synopsis import Synopsis
from cedr.operators.tuple_store import END, KEY, START, VALUE, Mask, TupleBlocks, TupleStore
from cedr.operators.two_layouts import TwoLayouts, Views
from cedr.operators.values import Words
from cedr.temporal.time import INF, MIN

Schema = Mapping[str, pl.DataType]


class ClipOperator(TwoLayouts, Operator):
    ports = 2

    state = fields(
        keys=PART,
        payloads=PART,
        tuples=counted(columns(TupleStore)),
        starts=counted(columns(TupleStore)),
        emitted=REBUILT_PART,
        front=PART,
        blocks=counted(BLOCKS),
        _locality=TRANSIENT,
    )
    fields_in_blocks = ("tuples", "starts")

    def __init__(self, schema: Schema, other_schema: Schema, left_on: Sequence[str], right_on: Sequence[str]) -> None:
        super().__init__()
        self.schema = dict(schema)
        self.keys = JoinKeys((schema, other_schema), (left_on, right_on))
        self.front = self.keys.front(self, needed=(0,))
        self.payloads = RowIndex(self.schema)
        self.tuples = TupleStore.empty()
        self.starts = TupleStore.empty()
        self.emitted = Synopsis(0)
        self.blocks: ClipBlocks | None = None
        """Tuples and starts, if they are in blocks; `tuples`, `starts` and `emitted` are empty then."""
        self._locality = Locality(touched_cost=30)

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        self._choose_layout(chunk)
        if self.blocks is not None:
            return self._advance_blocks(self.blocks, port, chunk)
        if len(chunk):
            g = self.keys.numbers(port, chunk.rows, missing=port == 0)
            if port == 0:
                self.tuples = self.tuples.merge(self._tuple_changes(chunk, g, self.tuples, len(self.keys.index)))
            else:
                use = (g >= 0) & ~finished_keys(self.front, 0, self.tuples)[g]
                self.starts = self.starts.merge(start_changes(chunk, g, use))
        self.front.advance(port, chunk)
        g = self.tuples.key
        end = self._ends()
        changed, _, at, before, after = self.emitted.update(*answer(self.tuples, end))
        out = assemble(at, before, after, self.payloads.take(changed), self.cti)
        settled = self.front.settle(NOTHING_HELD)
        promises = self.front.passed(self.cti, len(chunk), g)
        if chunk.cti != MIN or len(chunk.promises):
            self._forget(end, settled)
        return replace(out, promises=promises)

    def _ends(self) -> Times:
        """The clipped end of each tuple."""
        g, vs, ve, *_ = self.tuples
        first, _ = longest(self.starts.key, self.starts.vs, self.starts.ve, len(self.keys.index))
        return np.minimum(ve, next_starts(g, vs, first, self.starts.vs))

    def _tuple_changes(self, chunk: Chunk, g: Times, known: TupleStore, keys: int) -> TupleStore:
        """The tuples that come and go; `known`: those with the same keys and starts that are stored."""
        vs, number = chunk.vs, self.payloads.ids(chunk.rows)
        inserts = TupleStore.changes(*(a[chunk.is_insert] for a in (g, vs, chunk.old, chunk.new, number)))
        # An adjust whose tuple is neither here nor came with this chunk refers to one whose clipped end is final.
        use = chunk.is_insert.copy()
        for tg, tvs, tve, tnumber, _ in (known, inserts):
            first, _ = longest(tg, tvs, tve, keys)
            use |= stored(g, vs, number, first, tvs, tnumber)
        return TupleStore.changes(g[use], vs[use], chunk.old[use], chunk.new[use], number[use])

    def _forget(self, end: Times, settled: Times) -> None:
        self.emitted.forget(by_payload(settled, self.tuples, len(self.payloads)))
        self._forget_past(end, settled, self.front.of(0) == INF)
        self._forget_rows()

    def _forget_past(self, end: Times, settled: Times, done: Mask | bool) -> None:
        """Drop what ends before a settled time, and the starts of keys that are done and have no tuple."""
        self.tuples = self.tuples.where(still_matters(self.tuples.key, end, settled))
        self.starts = self.starts.where(still_matters(self.starts.key, self.starts.vs, settled))
        finished = without_tuples(done, self.tuples, len(self.keys.index))
        self.starts = self.starts.where(~finished[self.starts.key])

    def _forget_rows(self) -> None:
        """Drop keys and payloads that are not used."""
        self.tuples, self.starts = self.keys.compact([self.tuples, self.starts], self.front)
        numbers = self.payloads.compact(np.concatenate((self.tuples.value, self.emitted.g)))
        if numbers is not None:
            self.tuples = self.tuples.renumber_values(numbers)
            self.emitted.g = numbers[self.emitted.g]

    # --- in blocks ---------------------------------------------------------------------------------------------------

    def _advance_blocks(self, blocks: "ClipBlocks", port: int, chunk: Chunk) -> Chunk:
        g = self.keys.numbers(port, chunk.rows, missing=port == 0)
        self.front.advance(port, chunk)
        if port == 0:
            keys, old = blocks.starting(g, chunk.vs)
            old_end = blocks.ends(keys, old)
            old, old_end = old.where(old_end >= blocks.settled), old_end[old_end >= blocks.settled]
            changes = self._tuple_changes(chunk, np.searchsorted(keys, g), old, len(keys))
            blocks.add_tuples(changes._replace(key=keys[changes.key]))
            new = old.merge(changes)
        else:
            changes = start_changes(chunk, g, g >= 0)
            keys, old = blocks.reached_from(changes.key, changes.vs)
            old_end = blocks.ends(keys, old)
            old, old_end = old.where(old_end >= blocks.settled), old_end[old_end >= blocks.settled]
            blocks.add_starts(changes)
            new = old
        self._locality.touch(old.rows)
        now = answer(new, blocks.ends(keys, new))
        changed, _, at, before, after = net_change(*answer(old, old_end), *now, np.array([INF]))
        out = assemble(at, before, after, self.payloads.take(changed), self.cti)
        settled = self.front.settle(NOTHING_HELD)
        if chunk.cti != MIN:
            blocks.settled, blocks.done = int(settled[0]), self.ctis[0] == INF
        promises = self.front.passed(self.cti, len(chunk))
        if blocks.forget():
            compact(self.payloads, (blocks.tuples.blocks, VALUE))
            self.keys.compact_in_blocks(self.front, (blocks.tuples.blocks, KEY), (blocks.starts.blocks, KEY))
        return replace(out, promises=promises)

    def _choose_layout(self, chunk: Chunk) -> None:
        """Arrays or blocks, before a chunk. Blocks need one front for all keys that is not the end."""
        held = self.tuples.rows + self.starts.rows if self.blocks is None else self.blocks.rows
        in_blocks = self._locality.prefers_blocks(held, len(chunk), self.blocks is not None)
        in_blocks &= not self.front.keyed and not len(chunk.promises) and self.cti < INF
        if in_blocks == (self.blocks is not None):
            return
        if self.blocks is not None:
            self.fill_arrays()
            self._rebuild_emitted()
            self.blocks = None
            self._forget_rows()
            self._locality.changed()
        else:
            self._to_blocks()

    # --- state -------------------------------------------------------------------------------------------------------

    def restored(self) -> None:
        self.blocks = None

    def restore(self, state: State) -> None:
        super().restore(state)
        if self.blocks is None:
            # An increment may have tuples that are settled, and the ends of some may have changed since.
            self._forget_past(self._ends(), self.front.promised(), self.front.of(0) == INF)
            self._rebuild_emitted()

    def _rebuild_emitted(self) -> None:
        emitted = answer(self.tuples, self._ends())
        self.emitted.g, self.emitted.start, self.emitted.end, self.emitted.words = emitted

    def block_views(self) -> Views | None:
        blocks = self.blocks
        return None if blocks is None else {"tuples": blocks.tuples.view(), "starts": blocks.starts.view()}

    def fill_arrays(self) -> None:
        """Without what may be forgotten."""
        blocks = self.blocks
        assert blocks is not None
        self.tuples, self.starts = blocks.tuples.flat(), blocks.starts.flat()
        self._forget_past(self._ends(), np.array([blocks.settled]), blocks.done)

    def clear_arrays(self) -> None:
        self.tuples, self.starts, self.emitted = TupleStore.empty(), TupleStore.empty(), Synopsis(0)

    def move_to_blocks(self) -> None:
        self._to_blocks().done = self.ctis[0] == INF

    def _to_blocks(self) -> "ClipBlocks":
        self.blocks = ClipBlocks(self.tuples, self.starts, int(self.front.promised()[0]))
        self.clear_arrays()
        self._locality.changed()
        return self.blocks


class ClipBlocks:
    """Tuples and starts in blocks. What ends before `settled` need not be stored."""

    def __init__(self, tuples: TupleStore, starts: TupleStore, settled: int) -> None:
        self.tuples, self.starts, self.settled = TupleBlocks(tuples), TupleBlocks(starts), settled
        self.done = False
        """Whether no tuple could arrive any more when that was settled."""
        self._lap, self._lap_of_starts = RowLap(4), RowLap(4)
        self._clipped = MIN
        """What was settled when this lap began: when it is over, no tuple that is left is clipped before."""

    def add_tuples(self, changes: TupleStore) -> None:
        self.tuples.add(changes)
        self._lap.add(changes.rows)

    def add_starts(self, changes: TupleStore) -> None:
        self.starts.add(changes)
        self._lap.add(changes.rows)

    def forget(self) -> bool:
        """Look at some tuples and drop those that are settled, then at starts in the same way: a start is needed as
        long as a tuple is there that it clips. Returns whether a lap is over."""
        lap, starts = self._lap, self._lap_of_starts
        if not starts.under_way:
            if not lap.under_way:
                self._clipped = self.settled
            if self.settled == MIN or not lap.begins(self.rows):
                return False
            self._forget_tuples()
            if lap.under_way:
                return False
            starts.under_way = True
            starts.key[:] = MIN
        self.starts.blocks.remove(starts.ended(self.starts.blocks, lap.step(), START, self._clipped - 1))
        return not starts.under_way

    def _forget_tuples(self) -> None:
        rows = self._lap.next_rows(self.tuples.blocks, self._lap.step())
        end = next_in_blocks(rows[:, KEY].copy(), rows[:, START].copy(), *self.starts.blocks.arrays)
        self.tuples.blocks.remove(rows[np.minimum(rows[:, END], end) < self._clipped])

    @property
    def rows(self) -> int:
        return self.tuples.rows + self.starts.rows

    @property
    def nbytes(self) -> int:
        return self.tuples.nbytes + self.starts.nbytes

    def starting(self, g: Times, vs: Times) -> tuple[Times, TupleStore]:
        """The tuples with these keys and starts; keys are numbered by their place in the first result."""
        places = np.unique(np.column_stack((g, vs)), axis=0)
        return self._between(places[:, 0], places[:, 1], places[:, 1] + 1)

    def reached_from(self, g: Times, vs: Times) -> tuple[Times, TupleStore]:
        """The tuples that a change of these starts, sorted, may clip elsewhere: each once."""
        low = previous_in_blocks(g, vs, *self.starts.blocks.arrays)
        again = np.flatnonzero(g[1:] == g[:-1]) + 1
        low[again] = np.maximum(low[again], vs[again - 1])
        return self._between(g, low, vs)

    def _between(self, g: Times, low: Times, high: Times) -> tuple[Times, TupleStore]:
        keys = np.unique(g)
        _, rows = self.tuples.blocks.between([g, low], [g, high])
        columns = rows.T.copy()
        return keys, TupleStore(np.searchsorted(keys, columns[0]), *columns[1:])

    def ends(self, keys: Times, tuples: TupleStore) -> Times:
        """The clipped end of each tuple."""
        return np.minimum(tuples.ve, next_in_blocks(keys[tuples.key], tuples.vs, *self.starts.blocks.arrays))


def answer(tuples: TupleStore, end: Times) -> tuple[Times, Times, Times, Words]:
    """The result, as a `Synopsis` has it."""
    _, vs, _, number, copies = tuples
    order = np.lexsort((end, vs, number))
    order = np.repeat(order, copies[order])
    return number[order], vs[order], end[order], np.empty((len(order), 0), dtype=np.int64)


def start_changes(chunk: Chunk, g: Times, use: Mask) -> TupleStore:
    """The starts that come and go, of some rows."""
    come, gone = chunk.old == chunk.vs, chunk.new == chunk.vs
    use = use & (come | gone)
    zeros = np.zeros(int(use.sum()), dtype=np.int64)
    vs, group, copies = chunk.vs[use], g[use], np.where(come[use], 1, -1)
    order = np.lexsort((vs, group))
    return TupleStore(group[order], vs[order], vs[order] + 1, zeros, copies[order])
