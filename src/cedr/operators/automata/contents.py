"""Properties of events: which steps they can take, their symbols, and the numbers that programs read.

Events with the same values in the columns that are read have the same content, and all of this is computed once.
"""

from collections.abc import Mapping

import numpy as np
import polars as pl

from cedr.columnar.chunk import Times
from cedr.columnar.index import RowIndex
from cedr.columnar.state import DERIVED, PART, Stateful, fields
from cedr.kernels.automata.runs import Contents
from cedr.plan.automata.compiled import SYMBOL, CompiledSteps


class ContentIndex(Stateful):
    """`symbols` numbers the symbols, in the table and here."""

    state = fields(index=PART, contents=DERIVED, _room=DERIVED)

    def __init__(
        self, schema: Mapping[str, pl.DataType], symbol: str | None, steps: CompiledSteps, symbols: RowIndex
    ) -> None:
        self.index = RowIndex(dict(schema))
        self.symbol, self.steps, self.symbols = symbol, steps, symbols
        self._hold(self._contents_of(pl.DataFrame(schema=dict(schema))))

    def _hold(self, contents: Contents) -> None:
        self.contents = self._room = contents
        """The contents are the first rows of arrays that have room for more."""

    def ids(self, rows: pl.DataFrame) -> Times:
        """The number of the content of each row."""
        numbers = self.index.ids(rows)
        computed = len(self.contents.symbol)
        if computed < len(self.index):
            fresh = self._contents_of(self.index.rows[computed:] if self.index.schema else rows[:1].select())
            self._add(fresh, computed)
        return numbers

    def _add(self, fresh: Contents, begin: int) -> None:
        end = begin + len(fresh.symbol)
        if end > len(self._room.symbol):
            more = max(end, 2 * begin) - begin
            self._room = Contents(*(np.resize(column, (begin + more, *column.shape[1:])) for column in self.contents))
        for column, new in zip(self._room, fresh, strict=True):
            column[begin:end] = new
        self.contents = Contents(*(column[:end] for column in self._room))

    def _contents_of(self, rows: pl.DataFrame) -> Contents:
        n = rows.height if self.index.schema else len(self.index)
        rows = (
            rows.rechunk()
        )  # of a frame in pieces, polars gives `lit(1).fill_null(0)` one row per piece instead of one
        accepts = np.zeros(n, dtype=np.int64)
        for number, condition in enumerate(self.steps.conditions):
            accepts |= self._column(rows, condition, pl.Int64(), n) << number
        kind = self.steps.register_type
        columns = np.empty((n, len(self.steps.columns)), dtype=self.steps.initial.dtype)
        absent = np.empty((n, len(self.steps.columns)), dtype=np.bool_)
        for number, e in enumerate(self.steps.columns):
            columns[:, number] = self._column(rows, e, kind, n)
            absent[:, number] = self._column(rows, e.is_null(), pl.Int64(), n)
        if self.symbol is None:
            return Contents(np.full(n, -1, dtype=np.int64), accepts, columns, absent)
        symbol = self.symbols.ids(rows.select(pl.col(self.symbol).alias(SYMBOL)))
        return Contents(symbol, accepts, columns, absent)

    def _column(self, rows: pl.DataFrame, e: pl.Expr, kind: pl.DataType, n: int) -> Times:
        found = rows.select(e.cast(kind).fill_null(0).alias("x"))["x"].to_numpy()
        return np.broadcast_to(found, n)

    def restored(self) -> None:
        self._hold(self._contents_of(self.index.rows))

    def compact(self, used: Times) -> Times | None:
        """Forget contents that are no longer in use, and their symbols; returns the new number of each content."""
        numbers = self.index.compact(used)
        if numbers is not None:
            self._hold(Contents(*(np.ascontiguousarray(a[numbers >= 0]) for a in self.contents)))
            symbols = None if self.symbol is None else self.symbols.compact(self.contents.symbol)
            if symbols is not None:
                self._hold(self.contents._replace(symbol=symbols[self.contents.symbol]))
        return numbers
