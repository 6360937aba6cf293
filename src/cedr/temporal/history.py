"""Histories: the events of a stream after all adjusts.

A `History` is the canonical history table of the papers: an immutable bag of events `(vs, ve, payload)`. It is a
changing table: `snapshot(t)` is its content at instant t. Two histories are equal when they hold the same events
equally often, and *snapshot equivalent* when their `coalesce()` is equal: the same table at every instant, regardless
of how the lifetimes are cut into events.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from cedr.temporal.interval import Interval, lifetime
from cedr.temporal.notebook import history_html, history_rich
from cedr.temporal.row import order_key, payload
from cedr.temporal.table import text_table
from cedr.temporal.time import show


class Event(NamedTuple):
    """One tuple of a history: `payload` holds during `[vs, ve)`."""

    vs: int
    ve: int
    payload: Any

    @property
    def lifetime(self) -> Interval:
        return Interval(self.vs, self.ve)

    def during(self, lifetime: Interval) -> "Event":
        """The same payload with another lifetime."""
        return Event(lifetime.start, lifetime.end, self.payload)

    def __str__(self) -> str:
        return f"{self.payload} {self.lifetime}"


class History:
    """A bag of events. Iteration yields every copy, in the order of start, end and payload."""

    __slots__ = ("_bag", "_sorted")

    def __init__(self, events: Iterable[tuple[int, int, Any]] = ()) -> None:
        self._bag = Counter(Event(*lifetime(vs, ve), payload(p)) for vs, ve, p in events)
        self._sorted: tuple[Event, ...] | None = None

    @property
    def bag(self) -> Counter[Event]:
        """The number of copies of each event; the counter itself is a copy, as histories are immutable."""
        return Counter(self._bag)

    def __iter__(self) -> Iterator[Event]:
        if self._sorted is None:
            key: Callable[[Event], Any] = lambda e: (e.vs, e.ve, order_key(e.payload))  # noqa: E731
            self._sorted = tuple(sorted(self._bag.elements(), key=key))
        return iter(self._sorted)

    def __len__(self) -> int:
        return self._bag.total()

    def __eq__(self, other: object) -> bool:
        return self._bag == other._bag if isinstance(other, History) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset(self._bag.items()))

    def __add__(self, other: "History") -> "History":
        """Bag union."""
        return History([*self, *other])

    def __sub__(self, other: "History") -> "History":
        """The events that this history has more often than the other."""
        return History((self._bag - other._bag).elements())

    def __repr__(self) -> str:
        return f"History([{', '.join(map(repr, map(tuple, self)))}])"

    def __str__(self) -> str:
        return text_table(["Vs", "Ve", "(Payload)"], ([show(e.vs), show(e.ve), str(e.payload)] for e in self))

    def _repr_html_(self) -> str:
        return history_html(self)

    def __rich__(self) -> Any:
        return history_rich(self)

    # --- in time ---------------------------------------------------------------------------------------------

    def to(self, t: int) -> "History":
        """The history of the instants before t: ends cut to t, later starts dropped."""
        return History(e.during(cut) for e in self if (cut := e.lifetime.to(t)))

    def at(self, t: int) -> "History":
        """The history of the last instant before t: the events of `to(t)` that reach t."""
        return History(e for e in self.to(t) if e.ve == t)

    def snapshot(self, t: int) -> Counter[Any]:
        """The payloads that hold at instant t, with their number."""
        return Counter(e.payload for e in self if t in e.lifetime)

    def end_points(self) -> list[int]:
        """All starts and ends, each once, in order."""
        return sorted({e.vs for e in self._bag} | {e.ve for e in self._bag})

    def snapshots(self) -> Iterator[tuple[Interval, list[Event]]]:
        """Each interval between neighbouring end points with the events that cover it, empty ones left out."""
        for start, end in pairwise(self.end_points()):
            covering = [e for e in self if e.vs <= start and end <= e.ve]
            if covering:
                yield Interval(start, end), covering

    # --- in content ------------------------------------------------------------------------------------------

    def where(self, keep: Callable[[Any], Any]) -> "History":
        """The events whose payload satisfies `keep`."""
        return History(e for e in self if keep(e.payload))

    def groups(self, key: Callable[[Any], Any]) -> dict[Any, "History"]:
        """The events by the key of their payload, keys in a fixed order."""
        members: dict[Any, list[Event]] = {}
        for e in self:
            members.setdefault(payload(key(e.payload)), []).append(e)
        return {k: History(members[k]) for k in sorted(members, key=order_key)}

    def coalesce(self) -> "History":
        """The one history with the same snapshots and the fewest, longest events: levels of equal payloads.

        The k-th copy of a payload lives exactly where at least k copies live. For payloads that never overlap
        themselves this is the repeated merging of events that meet (Definition 10); with copies, merging alone
        would depend on its order, the levels do not.
        """
        return History(
            Event(level.start, level.end, p)
            for p, members in self.groups(lambda p: p).items()
            for level in levels(count_changes((e, 1) for e in members))
        )


def count_changes(weighted: Iterable[tuple[Event, int]]) -> dict[int, int]:
    """By how much the weighted number of live events changes at each instant."""
    changes: Counter[int] = Counter()
    for e, weight in weighted:
        changes[e.vs] += weight
        changes[e.ve] -= weight
    return changes


def levels(changes: dict[int, int]) -> Iterator[Interval]:
    """The maximal intervals in which the running sum of `changes` is at least 1, at least 2, and so on.

    A stack does it: a rise opens the next level, a fall closes the highest open one. Sums below zero count as zero.
    """
    open_levels: list[int] = []
    total = 0
    for time in sorted(changes):
        total += changes[time]
        while len(open_levels) > max(total, 0):
            yield Interval(open_levels.pop(), time)
        while len(open_levels) < total:
            open_levels.append(time)
