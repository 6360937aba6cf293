"""Copies of one history that arrive as one stream, identified by a column; they come and go while it runs.

Each value of the column is an input of the merge inside (R3 or R4). Its progress is what is promised about that value,
or a CTI of the whole. A second column may hold the time from which on a copy is complete (its *join time*), the same in
all its rows and promises:

    copy  join
    a     null     copy a has the whole history
    b     40       copy b has every event that ends at 40 or later
    b     70       b was started again, and is complete from 70 on: its earlier rows no longer count
    b     INF      b is over, and will not come back as b

So whatever order things arrive in, of one name the copy with the latest join time counts. Rows of earlier ones are
useless; they are counted in `ignored`.

A copy that contradicts the others, or breaks what the algorithm needs, is an error that names it, or with
`wrong="detach"` is left alone from then on: the row that gave it away is in the late stream, the rest is `ignored`.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from cedr.columnar.chunk import TIMES, Chunk, chunk_of, concat, empty
from cedr.columnar.state import COUNTS, DICT, PART, counted, fields
from cedr.operators.base import Operator
from cedr.operators.feedback import GivesFeedback
from cedr.operators.late import Late, LateStream
from cedr.operators.merge.r3 import R3
from cedr.operators.merge.r4 import R4
from cedr.plan.merge_policy import Policy, Wrong
from cedr.temporal.element import Adjust, Insert
from cedr.temporal.errors import StreamError
from cedr.temporal.time import INF, MIN

Copy = tuple[Any, int]
"""A name and a join time."""

ALGORITHMS: Mapping[str, type[R3] | type[R4]] = {"R3": R3, "R4": R4}
JOIN = "_merge_join"


class MergeByOperator(GivesFeedback, Operator):
    state = fields(
        merge=counted(PART),
        copies=DICT,
        latest=DICT,
        put_aside=DICT,
        ignored=COUNTS,
        _late=PART,
    )

    def __init__(
        self,
        given: Mapping[str, pl.DataType],
        column: str,
        join: str | None = None,
        policy: Policy | str = "first",
        algorithm: str = "R4",
        wrong: Wrong = "raise",
    ) -> None:
        super().__init__()
        self.column, self.join, self.wrong = column, join, wrong
        self.schema = {name: kind for name, kind in given.items() if name not in (column, join)}
        self.merge = ALGORITHMS[algorithm](self.schema, 1, policy)
        self.merge.detach(0, "not attached yet")
        self.copies: dict[Copy, int] = {}
        """The inputs of the merge, by copy."""
        self.latest: dict[Any, int] = {}
        """The latest join time of each name."""
        self.put_aside: dict[Copy, str] = {}
        """Copies that were wrong, and why."""
        self.ignored: Counter[Any] = Counter()
        """How many rows of each name were of no use."""
        self._late = LateStream(self.schema)

    def take_late(self) -> pl.DataFrame:
        """The rows that showed that a copy is wrong, with the reason."""
        return self._late.take()

    def feedback(self) -> int:
        return self.merge.feedback()

    def advance(self, port: int, chunk: Chunk) -> Chunk:
        rows = self._by_copy(chunk)
        for copy in [*rows, *self._promised(chunk)]:
            self._register(copy)
        if not self.latest:
            return empty(self.schema, chunk.cti)  # nothing about any copy yet
        out = [self._take(copy, rows.pop(copy, None), front) for copy, front in self._fronts()]
        for (name, _), part in rows.items():
            self.ignored[name] += part.height
        changed = [c for c in out if len(c)]
        return Chunk((concat(changed) if changed else empty(self.schema)).rows, self.merge.stable)

    def _by_copy(self, chunk: Chunk) -> dict[Copy, pl.DataFrame]:
        if not len(chunk):
            return {}
        names = [self.column, JOIN]
        rows = chunk.rows.with_columns(self._join_times(chunk.rows))
        return {
            (name, join): part.select(*TIMES, *self.schema)
            for (name, join), part in rows.partition_by(names, as_dict=True, maintain_order=True).items()
        }

    def _join_times(self, rows: pl.DataFrame) -> pl.Series:
        if self.join is None or self.join not in rows.columns:
            return pl.Series(JOIN, np.full(rows.height, MIN))
        return rows[self.join].cast(pl.Int64).fill_null(MIN).alias(JOIN)

    def _promised(self, chunk: Chunk) -> list[Copy]:
        """The copies that promises are about."""
        found: list[Copy] = []
        for names, table in chunk.promises.points.items():
            if self.column in names and {*names} <= {self.column, self.join}:
                found += zip(table[self.column], self._join_times(table), strict=True)
        return found

    def _register(self, copy: Copy) -> None:
        """Let it take the place of an earlier copy of its name."""
        name, join = copy
        before = self.latest.get(name)
        if before is not None and join <= before:
            return
        self.latest[name] = join
        if before is not None and (name, before) in self.copies:
            self._detach((name, before), "it is over" if join == INF else "it was started again")
        if join != INF:
            self._attach(copy)

    def _attach(self, copy: Copy) -> None:
        free = next((port for port in range(self.merge.ports) if not self.merge.attached[port]), None)
        port = self.merge.add_port() if free is None else free
        self.merge.attach(port, copy[1])
        self.merge.names[port] = f"copy {copy[0]!r}"
        self.copies[copy] = port

    def _detach(self, copy: Copy, why: str) -> None:
        self.merge.detach(self.copies.pop(copy), why)

    def _fronts(self) -> list[tuple[Copy, int]]:
        """Each copy with its progress, in an order that is always the same."""
        copies = sorted(self.copies, key=lambda copy: self.copies[copy])
        keys = pl.DataFrame({self.column: [name for name, _ in copies]})
        if self.join is not None:
            joins = pl.Series(self.join, [None if join == MIN else join for _, join in copies], dtype=pl.Int64)
            keys = keys.with_columns(joins)
        return list(zip(copies, np.maximum(self.promised[0].of(keys), self.ctis[0]).tolist(), strict=True))

    def _take(self, copy: Copy, rows: pl.DataFrame | None, front: int) -> Chunk:
        port = self.copies[copy]
        if rows is None and front <= self.merge.ctis[port]:
            return empty(self.schema)
        part = Chunk(empty(self.schema).rows if rows is None else rows, front)
        try:
            return self.merge.process(port, part)
        except StreamError as e:
            if self.wrong == "raise":
                raise
            self.ignored[copy[0]] += len(part)
            self._put_aside(copy, e)
            return empty(self.schema)

    def _put_aside(self, copy: Copy, error: StreamError) -> None:
        self._detach(copy, error.promise)
        self.put_aside[copy] = str(error)
        assert isinstance(error.element, Insert | Adjust)
        row = chunk_of([error.element], self.schema).rows
        self._late.add(Late(row, np.array([error.position]), "wrong_copy", error.promise))

    def make_room(self, state: Any) -> None:
        """Copies are inputs of the merge that are added when they appear."""
        merge = state.get("merge") if isinstance(state, dict) else None
        for _ in range(self.merge.ports, merge.get("ports", 0) if isinstance(merge, dict) else 0):
            self.merge.add_port()

    def progress(self) -> pl.DataFrame:
        """How far each copy has come, and whether its progress counts."""
        rows = [
            (name, None if join == MIN else join, self.merge.ctis[port], self.merge.joined(port))
            for (name, join), port in self.copies.items()
        ]
        schema = {"copy": pl.String, "join": pl.Int64, "cti": pl.Int64, "counts": pl.Boolean}
        return pl.DataFrame(rows, schema=schema, orient="row").sort("copy")
