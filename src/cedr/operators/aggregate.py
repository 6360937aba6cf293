"""Aggregates per snapshot of each group. Descriptions in `aggregates`, meaning in `cedr.reference.aggregate`.

Count, sum, avg and stddev are running sums of weights. Min, max, first, last and quantile look at the live tuples;
user-defined functions get them as a frame.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, Times
from cedr.columnar.compacting import compact
from cedr.columnar.state import NUMBER, PART, PARTS, State, fields
from cedr.kernels.cells import cells
from cedr.operators.exact_sums import Parts
from cedr.operators.live import LiveColumn, LiveExtreme, LiveRows, LiveTuples
from cedr.operators.local_snapshots import WORDS, LocalSnapshots
from cedr.operators.snapshot import Rows, SnapshotOperator, Sums
from cedr.operators.values import IndexCodec, Words, codec_for, fits_one_word, sortable
from cedr.operators.weights import OverflowingSum, Weights
from cedr.plan import aggregates as agg
from cedr.plan.latency import Latency
from cedr.temporal.errors import QueryError

Schema = Mapping[str, pl.DataType]


class AggregateOperator(SnapshotOperator):
    answers_locally = True

    state = fields(
        weights=PART,
        live=PARTS,
        live_rows=PART,
        extremes=PARTS,
        codecs=PARTS,
        skip_cells=NUMBER,
    )

    def __init__(
        self,
        schema: Schema,
        by: Sequence[str],
        aggregates: Mapping[str, agg.ColumnAggregate],
        latency: Latency = "perfect",
        insert_only: bool = False,
    ) -> None:
        if clash := set(by) & set(aggregates):
            raise QueryError(f"{', '.join(sorted(clash))} names both a group column and an aggregate; rename one")
        by_schema = {name: schema[name] for name in by}
        self.results = {name: a.dtype(schema) for name, a in aggregates.items()}
        self.schema = {**by_schema, **self.results}
        self.aggregates = dict(aggregates)
        self.weights = Weights(schema, [a for a in aggregates.values() if isinstance(a, agg.SUMS)])
        self.codecs = {name: codec_for(dtype) for name, dtype in self.results.items()}
        ahead = latency == "eager"
        self.extremes: dict[str, LiveExtreme] = {}
        self.live: dict[str, LiveColumn] = {}
        for name, a in aggregates.items():
            if insert_only and isinstance(a, agg.Min | agg.Max) and fits_one_word(self.results[name]):
                self.extremes[name] = LiveExtreme(a, self.results[name], ahead)
            elif not isinstance(a, (*agg.SUMS, agg.UserDefined)):
                self.live.setdefault(a.column, LiveColumn(a.column, a.input_type(schema), ahead)).answers(a)
        defined = [a for a in aggregates.values() if isinstance(a, agg.UserDefined)]
        self.live_rows = LiveRows({c: schema[c] for a in defined for c in a.columns}) if defined else None
        self.skip_cells = 0
        width = sum(codec.width for codec in self.codecs.values())
        super().__init__(by_schema, latency, len(self.weights), width)
        self.reads_no_future = not self._all_stores()

    def take_over(self, saved: State, places: Mapping[str, tuple[str, str]]) -> None:
        """Continue from a snapshot of an operator with other aggregates of the same groups, which kept all that these
        need. `places`: by name of a minimum or maximum, the field of the snapshot and the name in it that has its
        values. What was emitted is computed again, with the values of these aggregates, and not emitted again."""
        mine = self.snapshot()
        fresh = {name: mine[name] for name in ("emitted", "codecs")}
        weights = {**saved["weights"], "sums": {what: saved["weights"]["sums"][what] for what in self.weights.sums}}
        extremes = {name: saved[places[name][0]][places[name][1]] for name in self.extremes}
        live = {column: saved["live"][column] for column in self.live}
        rows = saved["live_rows"] if self.live_rows else mine["live_rows"]
        self.restore({**saved, **fresh, "weights": weights, "extremes": extremes, "live": live, "live_rows": rows})
        self._update(None, self.front.all(), self.front.promised())

    def take(self, chunk: Chunk, g: Times) -> Rows:
        vs, old, new = chunk.vs, chunk.old, chunk.new
        self._choose_layout_of_tuples()
        for store in self._stores():
            store.take(chunk.rows, g, vs, old, new)
        part = self.local or self.future
        if part is not None and self.weights.carries_after(len(chunk)):
            self._to_arrays()
        state, ints = self.weights.take(chunk.rows, self.endpoints[3])
        if part is not None and state.shape[1] > part.width:
            self._to_arrays()
            state = self.weights.widened(self.endpoints[3])
        self.endpoints = (*self.endpoints[:3], state)
        rows = (g, vs, old, new, ints)
        if self.extremes or (self.skip_cells == 0 and bool((old == vs).all())):
            return self._as_cells(chunk, rows)
        self.skip_cells = max(self.skip_cells - 1, 0)
        return rows

    def _as_cells(self, chunk: Chunk, rows: Rows) -> Rows:
        """Take rows with the same group and lifetime together; stop trying for a while when there are hardly any."""
        g, vs, _, new, ints = rows
        columns = [chunk.rows[e.name] for e in self.extremes.values()]
        best = np.column_stack([sortable(c) for c in columns]) if columns else np.empty((len(g), 0), dtype=np.int64)
        known = np.column_stack([c.is_not_null().to_numpy() for c in columns]) if columns else best.astype(np.bool_)
        largest = np.array([e.largest for e in self.extremes.values()], dtype=np.bool_)
        cg, cvs, cnew, ci, cb, ck = cells(g, vs, new, ints, best, known, largest)
        for i, extreme in enumerate(self.extremes.values()):
            there = ck[:, i]
            extreme.take_words(cg[there], cvs[there], cnew[there], cb[there, i])
        if len(cg) > 0.7 * len(g):
            self.skip_cells = 16
        return cg, cvs, cvs, cnew, ci

    def _stores(self) -> list[LiveTuples]:
        """The stores that take whole rows."""
        return [*self.live.values(), *([self.live_rows] if self.live_rows else [])]

    def _all_stores(self) -> list[LiveTuples]:
        return [*self._stores(), *self.extremes.values()]

    def _choose_layout_of_tuples(self) -> None:
        """Live tuples are in blocks if the end points are."""
        for store in self._all_stores():
            store.use_blocks(self.local is not None)

    def answer(self, g: Times, t: Times, entries: Times, sums: Sums) -> tuple[Times | None, Words]:
        self._choose_layout_of_tuples()
        parts = []
        common: dict[str, Parts] = {}
        for name, aggregate in self.aggregates.items():
            if isinstance(aggregate, agg.SUMS) and not isinstance(aggregate, agg.Partial):
                parts.append(self._sum_words(name, aggregate, g, t, entries, sums, common))
                continue
            if isinstance(aggregate, agg.Partial):
                values = self.weights.partial(aggregate, sums)
            elif isinstance(aggregate, agg.UserDefined):
                assert self.live_rows
                values = self.live_rows.evaluate(aggregate, g, t, entries)
            else:
                store = self.extremes.get(name) or self.live[aggregate.column]
                values = store.evaluate(aggregate, g, t, entries)
            parts.append(self.codecs[name].encode(values))
        return None, np.concatenate(parts, axis=1) if len(parts) != 1 else parts[0]

    def _sum_words(
        self,
        name: str,
        aggregate: agg.ColumnAggregate,
        g: Times,
        t: Times,
        entries: Times,
        sums: Sums,
        common: dict[str, Parts],
    ) -> Words:
        try:
            return self.weights.words(aggregate, self.results[name], sums, common)
        except OverflowingSum as e:
            entry = entries[e.row]
            group = self.groups.take(g[[entry]]).to_dicts() if self.groups.schema else []
            where = "".join(f", {column}={value!r}" for row in group for column, value in row.items())
            since = int(t[entry])
            raise QueryError(
                f"{name}={aggregate} is {e} from {since} on{where}, which does not fit {e.dtype}; {e.remedy}"
            ) from None

    def payload(self, g: Times, words: Words) -> pl.DataFrame:
        columns = []
        at = 0
        for name, codec in self.codecs.items():
            columns.append(codec.decode(words[:, at : at + codec.width]).alias(name))
            at += codec.width
        if not self.groups.schema:
            return pl.DataFrame(columns)
        return self.groups.take(g).hstack(columns)

    def forget(self, before: Times) -> None:
        for store in self._all_stores():
            store.forget(before)
        at = 0
        for codec in self.codecs.values():
            if isinstance(codec, IndexCodec):
                codec.forget(self.emitted.words[:, at])
            at += codec.width

    def _forget_in_blocks(self, settled: int) -> None:
        for store in self._all_stores():
            if store.blocks is not None:
                store.blocks.settle(settled)
        super()._forget_in_blocks(settled)

    def held_rows(self) -> int:
        return sum(store.blocks.rows for store in self._all_stores() if store.blocks is not None)

    def forget_in_blocks(self, groups: Times, settled: int) -> None:
        for store in self._all_stores():
            if store.blocks is not None:
                store.blocks.forget(groups, settled)

    def compact_in_blocks(self, local: LocalSnapshots) -> None:
        for store in self._all_stores():
            store.compact_in_blocks()
        column = WORDS
        for codec in self.codecs.values():
            if isinstance(codec, IndexCodec):
                compact(codec.index, (local.emitted, column))
            column += codec.width

    def renumber(self, numbers: Times) -> None:
        for store in self._all_stores():
            store.renumber(numbers)
