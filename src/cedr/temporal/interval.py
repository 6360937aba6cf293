"""Half-open intervals `[start, end)` of chronons and their algebra.

An interval is the set `{t | start <= t < end}`; it is never empty. Every operation here is the set operation of
that name, and is tested as such. Where the set operation yields nothing the result is None, where it may yield
two pieces it is a tuple.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from cedr.temporal.errors import LifetimeError
from cedr.temporal.time import INF, as_time, plus, show


@dataclass(frozen=True, order=True, slots=True)
class Interval:
    """The instants from `start` to just before `end`; never empty."""

    start: int
    end: int

    def __post_init__(self) -> None:
        start, end = lifetime(self.start, self.end)
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "end", end)

    def __str__(self) -> str:
        return f"[{show(self.start)}, {show(self.end)})"

    def __contains__(self, time: int) -> bool:
        return self.start <= time < self.end

    @property
    def length(self) -> int:
        return INF if self.end == INF else self.end - self.start

    def covers(self, other: "Interval") -> bool:
        return self.start <= other.start and other.end <= self.end

    def meets(self, other: "Interval") -> bool:
        """True when `other` starts at the very chronon at which this one ends (Definition 10)."""
        return self.end == other.start

    def overlaps(self, other: "Interval") -> bool:
        return self.start < other.end and other.start < self.end

    def before(self, other: "Interval") -> bool:
        return self.end <= other.start

    def intersection(self, other: "Interval") -> "Interval | None":
        return interval_or_none(max(self.start, other.start), min(self.end, other.end))

    def union(self, other: "Interval") -> "Interval | None":
        """Both as one interval, or None when a gap lies between them."""
        if self.overlaps(other) or self.meets(other) or other.meets(self):
            return self.hull(other)
        return None

    def hull(self, other: "Interval") -> "Interval":
        """The shortest interval that covers both, gap included."""
        return Interval(min(self.start, other.start), max(self.end, other.end))

    def difference(self, other: "Interval") -> tuple["Interval", ...]:
        left = interval_or_none(self.start, min(self.end, other.start))
        right = interval_or_none(max(self.start, other.end), self.end)
        return tuple(piece for piece in (left, right) if piece)

    def to(self, time: int) -> "Interval | None":
        """What lies before `time`."""
        return interval_or_none(self.start, min(self.end, time))

    def shift(self, by: int) -> "Interval | None":
        """The interval moved, cut at the ends of time; None if it would lie beyond them."""
        return interval_or_none(plus(self.start, by), plus(self.end, by))


def lifetime(start: object, end: object) -> tuple[int, int]:
    """Both times, checked: a `TimeError` or `LifetimeError` when they make no interval."""
    vs, ve = as_time(start, "start (vs)"), as_time(end, "end (ve)")
    if vs == INF:
        raise LifetimeError("the start (vs) is ∞; only an end (ve) can be infinite")
    if vs >= ve:
        raise LifetimeError(
            f"[{show(vs)}, {show(ve)}) is empty: the end (ve) must be greater than the start (vs); "
            f"an event of one instant is [{show(vs)}, {show(vs + 1)})"
        )
    return vs, ve


def interval_or_none(start: int, end: int) -> Interval | None:
    return Interval(start, end) if start < end else None


def merge(intervals: Iterable[Interval]) -> list[Interval]:
    """The set union of any intervals, as few intervals as possible, in order."""
    merged: list[Interval] = []
    for interval in sorted(intervals):
        joined = merged[-1].union(interval) if merged else None
        if joined:
            merged[-1] = joined
        else:
            merged.append(interval)
    return merged


def subtract(interval: Interval, holes: Iterable[Interval]) -> list[Interval]:
    """What the holes leave of `interval`, in order."""
    pieces = [interval]
    for hole in holes:
        pieces = [rest for piece in pieces for rest in piece.difference(hole)]
    return pieces
