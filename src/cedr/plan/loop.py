"""What a loop is given: which rows it holds, how its progress is determined, and its limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

Progress = Literal["hybrid", "hwm", "probing"]
PROGRESS: tuple[str, ...] = get_args(Progress)
"""The ways to find out how far a loop has come; see `cedr.operators.iterate.ffp`."""
ITERATIONS_PER_CHUNK = 64
MAX_ITERATIONS = 10_000
LOOP = "loop"
"""The input that takes what the loop holds."""


@dataclass(frozen=True)
class LoopSelection:
    """Which of the rows that a loop derives it holds: of each group the one that comes first in an order.

    This is aggregate selection: a shortest path makes longer ones needless, so these are not followed.
    """

    by: tuple[str, ...]
    """The columns of a group."""
    order: tuple[str, ...]
    descending: tuple[bool, ...]

    def called(self, names: Mapping[str, str]) -> "LoopSelection":
        """The same of rows whose columns have other names."""
        by, order = (tuple(names[name] for name in columns) for columns in (self.by, self.order))
        return replace(self, by=by, order=order)

    def __str__(self) -> str:
        return f"the best by {in_order(self.order, self.descending)} per {', '.join(self.by) or 'snapshot'}"


def in_order(columns: Sequence[str], descending: Sequence[bool]) -> str:
    return ", ".join(f"{c} {'desc' if d else 'asc'}" for c, d in zip(columns, descending, strict=True))


@dataclass(frozen=True)
class Settings:
    """User settings of a loop."""

    progress: Progress = "hybrid"
    """How the progress of the loop is determined."""
    max_iterations: int = MAX_ITERATIONS
    """A loop that still derives rows after this number of iterations fails."""
    iterations_per_chunk: int = ITERATIONS_PER_CHUNK
    """Maximum number of iterations after each chunk of input."""
    selection: LoopSelection | None = None
    """None: each derived row is held once."""


def outside(number: int) -> str:
    """The name of an input that takes rows from outside the loop."""
    return f"input {number}"
