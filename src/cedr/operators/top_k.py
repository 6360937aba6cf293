"""Top-k: of each snapshot of each group the k rows that come first in an order; ties by payload, never by arrival.

If the state is in blocks, a snapshot has one answer: the numbers of its rows as k words. What changes is then compared
again row by row.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, Times
from cedr.columnar.compacting import compact
from cedr.columnar.state import PART, fields
from cedr.kernels import tuples as tu
from cedr.kernels.difference import net_change
from cedr.operators.live import LiveTuples
from cedr.operators.live_blocks import VALUE
from cedr.operators.local_snapshots import WORDS, EndPoints, LocalSnapshots
from cedr.operators.snapshot import Net, Rows, SnapshotOperator, Sums
from cedr.operators.synopsis import Synopsis
from cedr.operators.two_layouts import Views
from cedr.operators.values import Words
from cedr.plan.latency import Latency
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF

MOST_IN_BLOCKS = 16
"""The largest k with which the state may be in blocks."""
NO_ROW = -1


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
        self.answers_locally = k <= MOST_IN_BLOCKS
        self.live = LiveTuples(schema)
        ties = sorted(schema)
        self.sort_by = [*order, *ties]
        self.descending = [*descending, *(False for _ in ties)]
        self.nulls_last = [*(True for _ in order), *(False for _ in ties)]
        self.schema = {**schema, **({rank: pl.Int64()} if rank else {})}

    def take(self, chunk: Chunk, g: Times) -> Rows:
        vs, old, new = chunk.vs, chunk.old, chunk.new
        self.live.use_blocks(self.local is not None)
        self.live.take(chunk.rows, g, vs, old, new)
        return g, vs, old, new, np.ones((len(g), 1), dtype=np.int64)

    def answer(self, g: Times, t: Times, entries: Times, sums: Sums) -> tuple[Times | None, Words]:
        self.live.use_blocks(self.local is not None)
        tg, vs, ve, number, copies = self.live.tuples_of(g[entries])
        ends, ranks = tu.by_end(tg, ve), self._ranks(number)
        which, chosen, place = tu.best_k(g, t, entries, tg, vs, ve, copies, ends, ranks, self.k)
        words = number[chosen][:, None]
        if self.local is not None:
            return None, self._packed(which, words, len(entries))
        return which, np.column_stack((words, place)) if self.rank else words

    def _ranks(self, number: Times) -> Times:
        """The place of each of these rows in the order; missing values come last, either way."""
        if self.live.blocks is None:
            return self._order(self.live.index.rows)[number]
        numbers, place = np.unique(number, return_inverse=True)
        return self._order(self.live.index.take(numbers))[place]

    def _order(self, rows: pl.DataFrame) -> Times:
        order = rows.with_row_index("_row").sort(self.sort_by, descending=self.descending, nulls_last=self.nulls_last)[
            "_row"
        ]
        ranks = np.empty(rows.height, dtype=np.int64)
        ranks[order.to_numpy()] = np.arange(rows.height)
        return ranks

    def payload(self, g: Times, words: Words) -> pl.DataFrame:
        rows = self.live.index.take(words[:, 0])
        return rows.with_columns(pl.Series(self.rank, words[:, 1])) if self.rank else rows

    # --- in blocks: one answer for each snapshot ---------------------------------------------------------------------

    def _packed(self, which: Times, words: Words, n: int) -> Words:
        """The rows of each of n snapshots as k numbers; they are in order."""
        packed = np.full((n, self.k), NO_ROW, dtype=np.int64)
        packed[which, np.arange(len(which)) - np.searchsorted(which, which)] = words[:, 0]
        return packed

    def _unpacked(self, packed: Words) -> tuple[Times, Words]:
        """The words of each row, and the snapshot it belongs to."""
        which, place = np.nonzero(packed != NO_ROW)
        words = packed[which, place][:, None]
        return which, np.column_stack((words, place + 1)) if self.rank else words

    def _update_locally(self, changes: EndPoints | None, front: Times, promised: Times) -> tuple[Net, Times]:
        (g, packed, start, before, after), held = super()._update_locally(changes, front, promised)
        answers = []
        for end in (before, after):
            there = end > start
            which, words = self._unpacked(packed[there])
            answers += [g[there][which], start[there][which], end[there][which], words]
        return net_change(*answers, np.array([INF])), held

    def _to_blocks(self) -> None:
        emitted = self.emitted
        first = np.append(True, (emitted.g[1:] != emitted.g[:-1]) | (emitted.start[1:] != emitted.start[:-1]))
        heads = np.flatnonzero(first[: len(emitted)])
        self.emitted = Synopsis(self.k)
        self.emitted.g, self.emitted.start, self.emitted.end = (
            c[heads] for c in (emitted.g, emitted.start, emitted.end)
        )
        self.emitted.words = self._packed(np.cumsum(first[: len(emitted)]) - 1, emitted.words, len(heads))
        super()._to_blocks()
        self.emitted = Synopsis(emitted.words.shape[1])

    def fill_arrays(self) -> None:
        super().fill_arrays()
        packed = self.emitted
        which, words = self._unpacked(packed.words)
        self.emitted = Synopsis(words.shape[1])
        self.emitted.g, self.emitted.start, self.emitted.end = (c[which] for c in (packed.g, packed.start, packed.end))
        self.emitted.words = words

    # --- state -------------------------------------------------------------------------------------------------------

    def block_views(self) -> Views | None:
        """Always saved as sorted arrays, row by row: only blocks have several rows in one answer."""
        return None if self.local is None else {}

    def forget(self, before: Times) -> None:
        used = self.emitted.words[:, 0]
        live = self.live
        live.drop(before)
        numbers = live.index.compact(np.concatenate((live.tuples.value, used)))
        if numbers is not None:
            live.tuples = live.tuples.renumber_values(numbers)
            self.emitted.words[:, 0] = numbers[used]

    def held_rows(self) -> int:
        return 0 if self.live.blocks is None else self.live.blocks.rows

    def forget_in_blocks(self, groups: Times, settled: int) -> None:
        if self.live.blocks is not None:
            self.live.blocks.forget(groups, settled)

    def compact_in_blocks(self, local: LocalSnapshots) -> None:
        if self.live.blocks is not None:
            words = [(local.emitted, WORDS + place) for place in range(self.k)]
            compact(self.live.index, (self.live.blocks.tuples.blocks, VALUE), *words)

    def renumber(self, numbers: Times) -> None:
        self.live.renumber(numbers)
