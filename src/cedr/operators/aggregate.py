"""Aggregates per snapshot of each group. Descriptions in `aggregates`, meaning in `cedr.reference.aggregate`.

Count, sum, avg and stddev are running sums of weights. Min, max, first, last and quantile look at the live tuples;
user-defined functions get them as a frame.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, Times
from cedr.operators import aggregates as agg
from cedr.operators.base import Latency, State
from cedr.operators.live import LiveColumn, LiveRows
from cedr.operators.snapshot import SnapshotOperator
from cedr.operators.values import Words, codec_for
from cedr.operators.weights import Weights
from cedr.temporal.errors import QueryError

Schema = Mapping[str, pl.DataType]
SUMS = (agg.Count, agg.Sum, agg.Avg, agg.Stddev)


class Aggregate(SnapshotOperator):
    def __init__(
        self,
        schema: Schema,
        by: Sequence[str],
        aggregates: Mapping[str, agg.Aggregate],
        latency: Latency = "perfect",
        insert_only: bool = False,
    ) -> None:
        if clash := set(by) & set(aggregates):
            raise QueryError(f"{', '.join(sorted(clash))} names both a group column and an aggregate; rename one")
        by_schema = {name: schema[name] for name in by}
        self.results = {name: a.dtype(schema) for name, a in aggregates.items()}
        self.schema = {**by_schema, **self.results}
        self.aggregates = dict(aggregates)
        self.weights = Weights(schema, [a for a in aggregates.values() if isinstance(a, SUMS)])
        self.codecs = {name: codec_for(dtype) for name, dtype in self.results.items()}
        columns = {
            a.column: schema[a.column] for a in aggregates.values() if not isinstance(a, (*SUMS, agg.UserDefined))
        }
        self.live = {name: LiveColumn(name, dtype) for name, dtype in columns.items()}
        defined = [a for a in aggregates.values() if isinstance(a, agg.UserDefined)]
        self.live_rows = LiveRows({c: schema[c] for a in defined for c in a.columns}) if defined else None
        width = sum(codec.width for codec in self.codecs.values())
        super().__init__(by_schema, latency, self.weights.n_ints, self.weights.n_floats, width)

    def take(self, port: int, chunk: Chunk, g: Times) -> tuple[Times, Times, Times, Times, Times, np.ndarray]:
        vs, old, new = chunk.vs, chunk.old, chunk.new
        for column in self.live.values():
            column.take(chunk.rows, g, vs, old, new)
        if self.live_rows:
            self.live_rows.take(chunk.rows, g, vs, old, new)
        return g, vs, old, new, *self.weights.of(chunk.rows)

    def answer(self, starts: Times) -> tuple[Times, Words]:
        g, t = self.endpoints[:2]
        parts = []
        for name, aggregate in self.aggregates.items():
            if isinstance(aggregate, SUMS):
                parts.append(self.weights.words(aggregate, self.sums, starts))
            elif isinstance(aggregate, agg.UserDefined):
                assert self.live_rows
                values = self.live_rows.evaluate(aggregate, g, t, starts)
                parts.append(self.codecs[name].encode(values))
            else:
                values = self.live[aggregate.column].evaluate(aggregate, g, t, starts)
                parts.append(self.codecs[name].encode(values))
        words = np.concatenate(parts, axis=1) if len(parts) != 1 else parts[0]
        return np.arange(len(starts)), words

    def payload(self, g: Times, words: Words) -> pl.DataFrame:
        columns = []
        at = 0
        for name, codec in self.codecs.items():
            columns.append(codec.decode(words[:, at : at + codec.width]).alias(name))
            at += codec.width
        if not self.groups.schema:
            return pl.DataFrame(columns)
        return self.groups.take(g).hstack(columns)

    def forget(self, before: int) -> None:
        for column in self.live.values():
            column.forget(before)
        if self.live_rows:
            self.live_rows.forget(before)

    def renumber(self, numbers: Times) -> None:
        for column in self.live.values():
            column.renumber(numbers)
        if self.live_rows:
            self.live_rows.renumber(numbers)

    def save(self) -> State:
        live = {name: column.save() for name, column in self.live.items()}
        indexes = {name: codec.index.snapshot() for name, codec in self.codecs.items() if hasattr(codec, "index")}
        rows = self.live_rows.save() if self.live_rows else None
        return {**super().save(), "live": live, "live_rows": rows, "indexes": indexes}

    def load(self, state: State) -> None:
        super().load(state)
        for name, saved in state["live"].items():
            self.live[name].load(saved)
        if self.live_rows:
            self.live_rows.load(state["live_rows"])
        for name, rows in state["indexes"].items():
            self.codecs[name].index.restore(rows)  # type: ignore[attr-defined]
