"""Nodes that move lifetimes, row by row. The definitions are in `cedr.reference.windows`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from cedr.plan.aspects.loops import MOVES
from cedr.plan.aspects.properties import Properties
from cedr.plan.node import RowByRow, Work
from cedr.temporal.calendar import Calendar
from cedr.temporal.duration import show_duration
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF
from cedr.temporal.time import show as show_time


@dataclass(frozen=True, eq=False)
class Lifetime(RowByRow):
    """Base of the nodes that change lifetimes alone."""

    def loop_refusal(self, of_loop: list[bool]) -> str:
        return MOVES


@dataclass(frozen=True, eq=False)
class Sliding(Lifetime):
    """`[vs, vs + length)`."""

    work = Work.FUSIBLE

    length: int

    def describe(self) -> str:
        return f"Sliding {show_duration(self.length)}"

    def derive_properties(self, *inputs: Properties) -> Properties:
        """Lifetimes may grow, so rows that never met may meet now."""
        return replace(inputs[0], key=None, duplicate_free=False, finite=self.length != INF)

    @property
    def window(self) -> int:
        return self.length


@dataclass(frozen=True, eq=False)
class Moving(Lifetime):
    """`[vs, min(ve, vs + length))`."""

    work = Work.FUSIBLE

    length: int

    def describe(self) -> str:
        return f"Moving {show_duration(self.length)}"

    def derive_properties(self, *inputs: Properties) -> Properties:
        """Shorter or moved lifetimes: everything known remains true."""
        return replace(inputs[0], finite=inputs[0].finite or self.length != INF)

    @property
    def window(self) -> int:
        return self.length


@dataclass(frozen=True, eq=False)
class Hopping(Lifetime):
    """`[g, g + size)` from the last grid point g; tumbling when the hop is the size.

    On a calendar the grid has days, weeks or months of a zone, and size and hop are its usual lengths.
    """

    work = Work.FUSIBLE

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

    def describe(self) -> str:
        offset = f", offset {show_duration(self.offset)}" if self.offset else ""
        if self.calendar is not None:
            return f"{'Tumbling' if self.size == self.hop else 'Hopping'} {self.calendar}{offset}"
        if self.size == self.hop:
            return f"Tumbling {show_duration(self.size)}{offset}"
        return f"Hopping {show_duration(self.size)} every {show_duration(self.hop)}{offset}"

    def derive_properties(self, *inputs: Properties) -> Properties:
        """Lifetimes may grow, so rows that never met may meet now."""
        return replace(inputs[0], key=None, duplicate_free=False, finite=True)

    @property
    def window(self) -> int:
        return self.size


@dataclass(frozen=True, eq=False)
class Inserts(Lifetime):
    """`[vs, ∞)`."""

    work = Work.FUSIBLE

    def describe(self) -> str:
        return "Inserts"

    def derive_properties(self, *inputs: Properties) -> Properties:
        """Lifetimes may grow, so rows that never met may meet now."""
        return replace(inputs[0], key=None, duplicate_free=False, finite=False)


@dataclass(frozen=True, eq=False)
class Deletes(Lifetime):
    """`[ve, ∞)` of events that end."""

    def describe(self) -> str:
        return "Deletes"

    def derive_properties(self, *inputs: Properties) -> Properties:
        return Properties(insert_only=inputs[0].insert_only, remember=inputs[0].remember)


@dataclass(frozen=True, eq=False)
class Shift(Lifetime):
    """`[vs + by, ve + by)`."""

    work = Work.FUSIBLE

    by: int

    def describe(self) -> str:
        return f"Shift by {show_duration(self.by)}"

    def derive_properties(self, *inputs: Properties) -> Properties:
        """Shorter or moved lifetimes: everything known remains true."""
        return inputs[0]


@dataclass(frozen=True, eq=False)
class AlterLifetime(Lifetime):
    """`[start(vs), start(vs) + duration(vs, ve))`, arrays in, arrays out; `text` is what the user wrote.

    `progress(t)` is the CTI that holds of the result when CTI t holds of the input.
    """

    work = Work.FUSIBLE

    start: Callable[[Any], Any]
    duration: Callable[[Any, Any], Any]
    progress: Callable[[Any], Any]
    text: str

    def describe(self) -> str:
        return f"AlterLifetime {self.text.removeprefix('alter_lifetime')}"

    def derive_properties(self, *inputs: Properties) -> Properties:
        (p,) = inputs
        return Properties(insert_only=p.insert_only, ordered=p.perfect, remember=p.remember)


@dataclass(frozen=True, eq=False)
class Chop(Lifetime):
    """Every lifetime cut at the points of a grid."""

    period: int
    offset: int = 0
    calendar: Calendar | None = None

    def describe(self) -> str:
        return f"Chop every {self.calendar or show_duration(self.period)}"

    def derive_properties(self, *inputs: Properties) -> Properties:
        return replace(inputs[0], ordered=False, finite=True)


@dataclass(frozen=True, eq=False)
class Slice(Lifetime):
    """Events that meet `[start, end)`, cut to it."""

    work = Work.FUSIBLE

    start: int
    end: int

    def describe(self) -> str:
        return f"Slice [{show_time(self.start)}, {show_time(self.end)})"

    def derive_properties(self, *inputs: Properties) -> Properties:
        """Shorter or moved lifetimes: everything known remains true."""
        return replace(inputs[0], finite=inputs[0].finite or self.end != INF)
