"""What the operator is given: steps as columns and programs, and the table's fixed parts."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from cedr.kernels.automata.programs import Programs

Numbers = np.ndarray[Any, np.dtype[Any]]

SOURCE, SYMBOL, TARGET = COLUMNS = ("source", "symbol", "target")
"""The columns of a transition table."""
AT, AFTER, RANK = "_run_at", "_run_after", "_run_rank"
ADDED = {AT: pl.Int64(), AFTER: pl.Int64(), RANK: pl.Int64()}
"""The columns that places add to events."""


@dataclass(frozen=True)
class CompiledSteps:
    """All steps of an automaton, by their numbers."""

    names: tuple[str, ...]
    conditions: tuple[pl.Expr, ...]
    """What must hold of the event alone."""
    columns: tuple[pl.Expr, ...]
    """What programs read."""
    programs: Programs
    registers: tuple[str, ...]
    initial: Numbers
    """The registers at the start; their type is that of all numbers."""

    @property
    def register_type(self) -> pl.DataType:
        return pl.Float64() if self.initial.dtype == np.float64 else pl.Int64()


@dataclass(frozen=True)
class Shape:
    """How an automaton runs over its events: by which key, in which order, within which window, and what it emits."""

    start: Any
    final: tuple[Any, ...] | None
    """None: every run is emitted."""
    symbol: str | None
    by: tuple[str, ...]
    order: str | None
    window: int | None
    once: bool
    """Of runs with the same output and start, whatever their state, only the longest is emitted, without its state."""
