"""Elements: the messages that a stream consists of.

    Insert(vs, ve, p)            the tuple (vs, ve, p) exists
    Adjust(vs, ve, ve_new, p)    one tuple (vs, ve, p) is really (vs, ve_new, p); ve_new = vs removes it
    Cti(t)                       no later element has a sync time before t
    Punctuation(patterns, t)     no later element whose payload matches has a sync time before t
    ExternalCti(vs, ve, n)       n inserts and adjusts have their sync time in [vs, ve); may itself be late

The sync time is the first instant whose content an element can change: `vs` of an insert, the smaller end of an
adjust. A retraction, the only adjust of the CEDR paper, has `ve_new < ve`; StreamInsight and LMerge also grow.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cedr.temporal.errors import LifetimeError, TimeError
from cedr.temporal.interval import Interval, lifetime
from cedr.temporal.punctuation import Punctuation
from cedr.temporal.row import payload
from cedr.temporal.time import INF, as_time, show


def set_fields(element: object, vs: int, ve: int, **others: Any) -> None:
    """Store the checked values in a frozen element, so that every time in it is a plain int."""
    for name, value in {"vs": vs, "ve": ve, **others}.items():
        object.__setattr__(element, name, value)


@dataclass(frozen=True, slots=True)
class Insert:
    """This event exists: `payload` holds during `[vs, ve)`."""

    vs: int
    ve: int
    payload: Any

    def __post_init__(self) -> None:
        set_fields(self, *lifetime(self.vs, self.ve), payload=payload(self.payload))

    def __str__(self) -> str:
        return f"insert {self.payload} {self.lifetime}"

    @property
    def lifetime(self) -> Interval:
        return Interval(self.vs, self.ve)

    @property
    def sync(self) -> int:
        return self.vs


@dataclass(frozen=True, slots=True)
class Adjust:
    """One event `[vs, ve)` with this payload really ends at `ve_new`; `ve_new = vs` removes it."""

    vs: int
    ve: int
    ve_new: int
    payload: Any

    def __post_init__(self) -> None:
        ve_new = as_time(self.ve_new, "new end (ve_new)")
        set_fields(self, *lifetime(self.vs, self.ve), payload=payload(self.payload), ve_new=ve_new)
        if ve_new < self.vs:
            raise LifetimeError(
                f"adjust of {self.payload} {self.lifetime}: the new end {show(self.ve_new)} lies before the start; "
                f"use ve_new = vs = {show(self.vs)} to remove the tuple"
            )
        if self.ve_new == self.ve:
            raise LifetimeError(f"adjust of {self.payload} {self.lifetime}: the new end is the old one")

    def __str__(self) -> str:
        return f"adjust {self.payload} {self.lifetime} to {show(self.ve_new)}"

    @property
    def lifetime(self) -> Interval:
        return Interval(self.vs, self.ve)

    @property
    def sync(self) -> int:
        return min(self.ve, self.ve_new)

    @property
    def removes(self) -> bool:
        """Whether this is a full retraction: the tuple never existed."""
        return self.ve_new == self.vs

    @property
    def retracts(self) -> bool:
        return self.ve_new < self.ve


@dataclass(frozen=True, slots=True)
class Cti:
    """A promise: no later element has a sync time before `t`."""

    t: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "t", as_time(self.t, "time of the CTI"))

    def __str__(self) -> str:
        return f"cti {show(self.t)}"

    @property
    def sync(self) -> int:
        return self.t


@dataclass(frozen=True, slots=True)
class ExternalCti:
    """A promise: exactly `n` inserts and adjusts have their sync time in `[vs, ve)`."""

    vs: int
    ve: int
    n: int

    def __post_init__(self) -> None:
        set_fields(self, *lifetime(self.vs, self.ve), n=as_time(self.n, "count (n)"))
        if self.n < 0:
            raise TimeError(f"external cti {self.span}: the count is {self.n}; it cannot be negative")

    def __str__(self) -> str:
        return f"external cti {self.span} of {self.n}"

    @property
    def span(self) -> Interval:
        return Interval(self.vs, self.ve)


Data = Insert | Adjust
Element = Insert | Adjust | Cti | Punctuation | ExternalCti
Stream = Sequence[Element]
"""A stream is any finite sequence of elements in arrival order; the position is the CEDR (system) time."""

END = Cti(INF)
"""The CTI of infinity: the end of the stream."""


def retract(vs: int, ve: int, payload: Any) -> Adjust:
    """The adjust that removes the tuple completely."""
    return Adjust(vs, ve, vs, payload)
