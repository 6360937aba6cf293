"""The current transition table, as rows and as the arrays that runs use."""

from collections.abc import Iterable

import numpy as np
import polars as pl

from cedr.columnar.chunk import Chunk, Times
from cedr.columnar.index import RowIndex
from cedr.columnar.state import DERIVED, PART, Stateful, columns, fields
from cedr.kernels.automata.runs import Table
from cedr.operators.tuple_store import TupleStore
from cedr.plan.automata.compiled import SOURCE, SYMBOL, TARGET, CompiledSteps, Shape
from cedr.temporal.time import INF, MIN


class Transitions(Stateful):
    """States and symbols have numbers that last; those of rows, which have times, too."""

    state = fields(states=PART, symbols=PART, rows=PART, tuples=columns(TupleStore), table=DERIVED)

    def __init__(
        self, states: pl.DataType, symbols: pl.DataType, rows: pl.DataFrame | None, shape: Shape, steps: CompiledSteps
    ) -> None:
        self.states, self.symbols = RowIndex({"state": states}), RowIndex({SYMBOL: symbols})
        self.rows = RowIndex({SOURCE: states, SYMBOL: symbols, TARGET: states})
        self.by_symbol, self.steps = shape.symbol is not None, steps
        self.start = int(self._states([shape.start])[0])
        self.final = None if shape.final is None else self._states(shape.final)
        self.tuples = TupleStore.empty()
        if rows is not None:
            number = self.rows.ids(rows)
            always = np.full(len(number), MIN), np.full(len(number), INF)
            self.tuples = TupleStore.changes(np.zeros_like(number), always[0], always[0], always[1], number)
        self.table = self._table()

    def _states(self, labels: Iterable[object]) -> Times:
        kind = self.states.schema["state"]
        return self.states.ids(pl.DataFrame({"state": pl.Series(list(labels), dtype=kind)}))

    def take(self, chunk: Chunk) -> None:
        """Work in changes of the table."""
        number = self.rows.ids(chunk.rows)
        changes = TupleStore.changes(np.zeros_like(number), chunk.vs, chunk.old, chunk.new, number)
        self.tuples = self.tuples.merge(changes)
        self.renew()

    def forget(self, before: int) -> None:
        """Drop rows that ended before a settled time."""
        keep = self.tuples.ve >= before
        if not keep.all() and before != INF:
            self.tuples = self.tuples.take(keep)
            self.renew()

    def restored(self) -> None:
        self.renew()

    def renew(self) -> None:
        """The rows have changed, or the numbers of symbols."""
        self.table = self._table()

    def _table(self) -> Table:
        _, vs, ve, number, copies = self.tuples
        rows = self.rows.take(number)
        step = self._steps(rows[SYMBOL])
        can = np.ones(len(step), dtype=np.bool_) if self.by_symbol else step >= 0
        rows, step = rows.filter(pl.Series(can, dtype=pl.Boolean)), step[can]
        source, target = (self.states.ids(rows.select(pl.col(name).alias("state"))) for name in (SOURCE, TARGET))
        symbol = self.symbols.ids(rows.select(SYMBOL)) if self.by_symbol else np.full(len(step), -1)
        order = np.argsort(source, kind="stable")
        emits = np.full(len(self.states), self.final is None)
        emits[self.final if self.final is not None else []] = True
        first = np.searchsorted(source[order], np.arange(len(self.states) + 1))
        columns = (target, symbol, step, vs[can], ve[can], copies[can])
        target, symbol, step, vs, ve, copies = (np.ascontiguousarray(a[order]) for a in columns)
        return Table(first, target, symbol, step, vs, ve, copies, emits, self.start)

    def _steps(self, symbols: pl.Series) -> Times:
        """The number of the step each symbol names, -1 where it names none."""
        if not self.steps.names:
            return np.full(len(symbols), -1, dtype=np.int64)
        numbers = dict(zip(self.steps.names, range(len(self.steps.names)), strict=True))
        return symbols.replace_strict(numbers, default=-1, return_dtype=pl.Int64).to_numpy()

    def labels(self, states: Times) -> pl.Series:
        return self.states.rows["state"].gather(states)
