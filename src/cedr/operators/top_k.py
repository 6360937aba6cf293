"""Top-k: of each snapshot of each group the k rows that come first in an order; ties by payload, never by arrival."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, Times
from cedr.columnar.state import PART, fields
from cedr.kernels import tuples as tu
from cedr.operators.front import still_matters
from cedr.operators.live import LiveTuples
from cedr.operators.snapshot import Rows, SnapshotOperator, Sums
from cedr.operators.values import Words
from cedr.plan.latency import Latency
from cedr.temporal.errors import QueryError


class TopKOperator(SnapshotOperator):
    state = fields(live=PART)

    def __init__(
        self,
        schema: Mapping[str, pl.DataType],
        k: int,
        order: Sequence[str],
        descending: Sequence[bool],
        by: Sequence[str] = (),
        rank: str | None = None,
        latency: Latency = "perfect",
    ) -> None:
        if k < 1:
            raise QueryError(f"top_k with k={k}: k must be at least 1")
        super().__init__({name: schema[name] for name in by}, latency, 1, 2 if rank else 1)
        self.k, self.rank = k, rank
        self.live = LiveTuples(schema)
        ties = sorted(schema)
        self.sort_by = [*order, *ties]
        self.descending = [*descending, *(False for _ in ties)]
        self.nulls_last = [*(True for _ in order), *(False for _ in ties)]
        self.schema = {**schema, **({rank: pl.Int64()} if rank else {})}

    def take(self, chunk: Chunk, g: Times) -> Rows:
        vs, old, new = chunk.vs, chunk.old, chunk.new
        self.live.take(chunk.rows, g, vs, old, new)
        return g, vs, old, new, np.ones((len(g), 1), dtype=np.int64)

    def answer(self, g: Times, t: Times, entries: Times, sums: Sums) -> tuple[Times | None, Words]:
        tg, vs, ve, number, copies = self.live.tuples
        ends, ranks = tu.by_end(tg, ve), self._ranks()[number]
        which, chosen, place = tu.best_k(g, t, entries, tg, vs, ve, copies, ends, ranks, self.k)
        words = number[chosen][:, None]
        return which, np.column_stack((words, place)) if self.rank else words

    def _ranks(self) -> Times:
        """The place of each distinct row in the order; missing values come last, either way."""
        rows = self.live.index.rows
        order = rows.with_row_index("_row").sort(self.sort_by, descending=self.descending, nulls_last=self.nulls_last)[
            "_row"
        ]
        ranks = np.empty(rows.height, dtype=np.int64)
        ranks[order.to_numpy()] = np.arange(rows.height)
        return ranks

    def payload(self, g: Times, words: Words) -> pl.DataFrame:
        rows = self.live.index.take(words[:, 0])
        return rows.with_columns(pl.Series(self.rank, words[:, 1])) if self.rank else rows

    def forget(self, before: Times) -> None:
        used = self.emitted.words[:, 0]
        live = self.live
        live.tuples = live.tuples.where(still_matters(live.tuples.key, live.tuples.ve, before))
        numbers = live.index.compact(np.concatenate((live.tuples.value, used)))
        if numbers is not None:
            live.tuples = live.tuples.renumber_values(numbers)
            self.emitted.words[:, 0] = numbers[used]

    def renumber(self, numbers: Times) -> None:
        self.live.renumber(numbers)
