"""The result of a query, in every form a user may need.

elements, changelog   the output in order; each result of `updates` contains only the output of its step
history, table        the answer after all output so far
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from cedr.columnar.chunk import NEW, OLD, TIMES, VS, Chunk
from cedr.columnar.tally import VE, Tally
from cedr.operators.late import Late, LateStream
from cedr.runtime.why_waiting import WhyWaiting
from cedr.sinks.readable import changes, readable, table_of
from cedr.sources.late_rows import counted, warn_of_late
from cedr.sources.user_times import TimeType
from cedr.temporal.element import Element
from cedr.temporal.errors import QueryError
from cedr.temporal.history import Event, History
from cedr.temporal.row import Row
from cedr.temporal.time import MIN

EMPTY = pl.DataFrame()


class Result:
    """The answer of a query in this process."""

    def __init__(
        self,
        schema: dict[str, pl.DataType],
        chunks: Sequence[Chunk],
        tally: Tally,
        time_type: TimeType,
        late: pl.DataFrame = EMPTY,
        metrics: pl.DataFrame = EMPTY,
        waiting: Callable[[], WhyWaiting] | None = None,
    ) -> None:
        self.schema = schema
        self.chunks = list(chunks)
        self._tally, self._time_type, self._late, self._metrics = tally, time_type, late, metrics
        self._waiting = waiting

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        table: str = self.table()._repr_html_()
        late = self.late().height
        return table + (f"<p>{late:,} late rows: <code>late()</code></p>" if late else "")

    def elements(self) -> list[Element]:
        """The physical stream: inserts, adjusts, punctuations and CTIs in the order of their emission."""
        return [e for chunk in self.chunks for e in chunk.elements()]

    def history(self) -> History:
        """The canonical history, with `Row` payloads."""
        names = list(self.schema)
        rows = self._tally.table().select(VS, VE, *names).iter_rows()
        return History(Event(vs, ve, Row(dict(zip(names, values, strict=True)))) for vs, ve, *values in rows)

    def table(self) -> pl.DataFrame:
        """The canonical history: `vs`, `ve` and the payload, sorted. A missing `ve` is infinite."""
        return table_of(self._tally, self._time_type)

    def to_arrow(self) -> pa.Table:
        return self.table().to_arrow()

    def to_pandas(self) -> Any:
        return self.table().to_pandas()

    def changelog(self) -> pl.DataFrame:
        """Every change in order: `change` (insert, adjust, remove), the times, the payload. Progress is in `elements`.

        `ve` is the end of the tuple before the change, for an insert its first end; `ve_new` is missing for inserts.
        """
        rows = pl.concat([chunk.rows for chunk in self.chunks]) if self.chunks else self._no_rows()
        return changes(rows, MIN, self._time_type, self.schema)

    def late(self) -> pl.DataFrame:
        """Late rows with the reason: too late, unknown, or without a lifetime."""
        found = self._late_frames()
        return self._readable(pl.concat(found, how="diagonal_relaxed") if found else LateStream(self.schema).take())

    def warn_of_late(self, stacklevel: int = 1) -> None:
        """A `LateWarning`, if there are late rows."""
        counts: Counter[str] = Counter()
        for frame in self._late_frames():
            counts.update(counted(frame))
        warn_of_late(counts, stacklevel + 1)

    def _late_frames(self) -> list[pl.DataFrame]:
        return [frame for frame in (self._late, unknown_tuples(self._tally)) if frame.height]

    def _readable(self, rows: pl.DataFrame) -> pl.DataFrame:
        return readable(rows, self._time_type, self.schema)

    def metrics(self) -> pl.DataFrame:
        """One row per operator: its input, output and state."""
        return self._metrics

    def why_waiting(self) -> WhyWaiting:
        """What holds the query back, at the current state of the run; best called on the last result of `updates`."""
        if self._waiting is None:
            raise QueryError("this result is a part of the answer of a query on Spark; call why_waiting() of the query")
        return self._waiting()

    def _no_rows(self) -> pl.DataFrame:
        return pl.DataFrame(schema={**dict.fromkeys(TIMES, pl.Int64), **self.schema})


def unknown_tuples(tally: Tally) -> pl.DataFrame:
    """Adjusts of tuples that were never inserted, as late rows. In a query with state, Finalize finds them."""
    late = LateStream(tally.schema)
    if (rows := tally.unknown()).height:
        named = rows.with_columns(pl.col(VE).alias(OLD), pl.lit(None, pl.Int64).alias(NEW)).select(*late.schema)
        promise = "to adjust; it was never inserted, or was removed"
        late.add(Late(named, np.zeros(rows.height, dtype=np.int64), "unknown_tuple", promise))
    return late.take()
