"""Nodes that move lifetimes, row by row. The definitions are in `cedr.reference.windows`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cedr.plan.node import Unary
from cedr.temporal.calendar import Calendar
from cedr.temporal.duration import show_duration
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF


@dataclass(frozen=True, eq=False)
class Lifetime(Unary):
    """Base of the nodes that change lifetimes alone."""


@dataclass(frozen=True, eq=False)
class Sliding(Lifetime):
    """`[vs, vs + length)`."""

    length: int


@dataclass(frozen=True, eq=False)
class Moving(Lifetime):
    """`[vs, min(ve, vs + length))`."""

    length: int


@dataclass(frozen=True, eq=False)
class Hopping(Lifetime):
    """`[g, g + size)` from the last grid point g; tumbling when the hop is the size.

    On a calendar the grid has days, weeks or months of a zone, and size and hop are its usual lengths.
    """

    size: int
    hop: int
    offset: int = 0
    calendar: Calendar | None = None

    def __post_init__(self) -> None:
        if INF in (self.size, self.hop) or self.size % self.hop:
            raise QueryError(
                f"hopping({show_duration(self.size)}, {show_duration(self.hop)}): the size must be a finite multiple "
                "of the hop"
            )


@dataclass(frozen=True, eq=False)
class Inserts(Lifetime):
    """`[vs, ∞)`."""


@dataclass(frozen=True, eq=False)
class Deletes(Lifetime):
    """`[ve, ∞)` of events that end."""


@dataclass(frozen=True, eq=False)
class Shift(Lifetime):
    """`[vs + by, ve + by)`."""

    by: int


@dataclass(frozen=True, eq=False)
class AlterLifetime(Lifetime):
    """`[start(vs), start(vs) + duration(vs, ve))`, arrays in, arrays out; `text` is what the user wrote.

    `progress(t)` is the CTI that holds of the result when CTI t holds of the input.
    """

    start: Callable[[Any], Any]
    duration: Callable[[Any, Any], Any]
    progress: Callable[[Any], Any]
    text: str


@dataclass(frozen=True, eq=False)
class Chop(Lifetime):
    """Every lifetime cut at the points of a grid."""

    period: int
    offset: int = 0
    calendar: Calendar | None = None


@dataclass(frozen=True, eq=False)
class Slice(Lifetime):
    """Events that meet `[start, end)`, cut to it."""

    start: int
    end: int


FUSIBLE = (Sliding, Moving, Hopping, Inserts, Shift, Slice, AlterLifetime)
"""One row in, at most one row out, at times that are functions of its times."""
