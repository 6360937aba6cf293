"""The tritemporal history of the CEDR paper: valid, occurrence and CEDR time in one table.

A provider states when its events are *valid* (`vs, ve`) and may revise its statements; *occurrence* time (`os, oe`) is
the period during which a statement held. CEDR time (`cs, ce`) is when a row arrived here and when a later row replaced
it. `K` links an insert to its adjusts. Streams have one time axis, occurrence time; `id, vs, ve` are then header fields
of the payload, a `Version`. Without occurrence time both axes are one and the payload is plain.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from cedr.temporal.element import Insert, Stream
from cedr.temporal.errors import LifetimeError
from cedr.temporal.history import Event, History
from cedr.temporal.interval import Interval, lifetime
from cedr.temporal.row import payload
from cedr.temporal.stream import chain_numbers, data
from cedr.temporal.table import text_table
from cedr.temporal.time import INF, as_time, show


class Version(NamedTuple):
    """A provider's statement about event `id` during some occurrence time: `payload` is valid during `[vs, ve)`."""

    id: Any
    vs: int
    ve: int
    payload: Any

    @property
    def valid(self) -> Interval:
        return Interval(self.vs, self.ve)

    def __str__(self) -> str:
        return f"{self.id} {self.valid} {self.payload}"


class Statement(NamedTuple):
    """A provider's message: from occurrence time `os` on, event `id` is valid during `[vs, ve)`."""

    id: Any
    vs: int
    ve: int
    os: int
    payload: Any = None


def bitemporal(statements: Iterable[Statement]) -> History:
    """The conceptual table of Figure 1: each statement holds until the next one about the same event.

    The first statement about an event is its insert, the others are modifications. The order in which they are
    given does not matter; two statements about one event at one occurrence time contradict each other.
    """
    by_id: dict[Any, list[Statement]] = {}
    for statement in statements:
        by_id.setdefault(statement.id, []).append(statement)
    events: list[Event] = []
    for about_one in by_id.values():
        about_one.sort(key=lambda s: s.os)
        ends = [s.os for s in about_one[1:]] + [INF]
        for s, oe in zip(about_one, ends, strict=True):
            if s.os == oe:
                raise LifetimeError(f"event {s.id!r} has two statements at occurrence time {show(s.os)}; remove one")
            events.append(Event(s.os, oe, Version(s.id, *lifetime(s.vs, s.ve), payload(s.payload))))
    return History(events)


def known_at(history: History, occurrence: int) -> History:
    """The valid-time history according to the provider at one instant of occurrence time."""
    return History((v.vs, v.ve, v.payload) for os, oe, v in history if os <= occurrence < oe)


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One line of a history table: during CEDR time `[cs, ce)`, the lifetime of chain `k` was `[os, oe)`."""

    k: str
    os: int
    oe: int
    cs: int
    ce: int
    payload: Any = None

    def __post_init__(self) -> None:
        for name in ("os", "oe", "cs", "ce"):
            as_time(getattr(self, name), name.capitalize())
        if self.oe < self.os:
            raise LifetimeError(f"row {self.k}: Oe {show(self.oe)} lies before Os {show(self.os)}")

    @property
    def removed(self) -> bool:
        return self.os == self.oe


@dataclass(frozen=True)
class HistoryTable:
    """All rows of a stream in arrival order, replaced ones included."""

    rows: tuple[HistoryRow, ...]

    @classmethod
    def of(cls, stream: Stream, arrivals: Sequence[int] | None = None) -> "HistoryTable":
        """The table of a valid stream. `arrivals` are the CEDR times of its inserts and adjusts; else 1, 2, 3, …"""
        elements = data(stream)
        times = list(arrivals if arrivals is not None else range(1, len(elements) + 1))
        replaced: dict[int, int] = {}  # by chain, the arrival of what comes after
        rows = []
        for number, e, cs in reversed(list(zip(chain_numbers(elements), elements, times, strict=True))):
            end = e.ve if isinstance(e, Insert) else e.ve_new
            rows.append(HistoryRow(f"E{number}", e.vs, end, cs, replaced.get(number, INF), e.payload))
            replaced[number] = cs
        rows.reverse()
        return cls(tuple(sorted(rows, key=lambda row: row.cs)))

    def reduced(self) -> "HistoryTable":
        """Of each K only the row that arrived last. When ends only shrink, as in the paper, it has the earliest Oe."""
        last = {row.k: row for row in sorted(self.rows, key=lambda row: row.cs)}
        return HistoryTable(tuple(row for row in self.rows if last[row.k] is row))

    def canonical(self, *, to: int = INF, at: int | None = None) -> "HistoryTable":
        """Reduced, truncated *to* a time and, with `at`, left with the rows that reach that time."""
        end = to if at is None else at
        cut = (replace(row, oe=min(row.oe, end)) for row in self.reduced().rows if row.os < end)
        return HistoryTable(tuple(r for r in cut if not r.removed and (at is None or r.oe == at)))

    def history(self) -> History:
        """The canonical history, without K and CEDR time: what two logically equivalent streams share."""
        return History((r.os, r.oe, r.payload) for r in self.canonical().rows)

    def syncs(self) -> list[int]:
        """The Sync column: Os of an insert, the smaller end of an adjust."""
        ends: dict[str, int] = {}
        column = []
        for row in self.rows:
            column.append(min(ends[row.k], row.oe) if row.k in ends else row.os)
            ends[row.k] = row.oe
        return column

    def __str__(self) -> str:
        return self._table([])

    def annotated(self) -> str:
        """The table with its Sync column, as Figure 6 prints it."""
        return self._table(self.syncs())

    def _table(self, syncs: list[int]) -> str:
        sync_column = [[show(sync)] for sync in syncs] or [[] for _ in self.rows]
        times = [
            [*sync, show(row.os), show(row.oe), show(row.cs), show(row.ce)]
            for row, sync in zip(self.rows, sync_column, strict=True)
        ]
        header = [*(["Sync"] if syncs else []), "Os", "Oe", "Cs", "Ce", "(Payload)"]
        if self.rows and all(isinstance(row.payload, Version) for row in self.rows):
            return text_table(
                ["ID", "Vs", "Ve", *header, "K"],
                (
                    [str(v.id), show(v.vs), show(v.ve), *time, "" if v.payload is None else str(v.payload), row.k]
                    for row, time in zip(self.rows, times, strict=True)
                    for v in [row.payload]
                ),
            )
        return text_table(
            ["K", *header],
            (
                [row.k, *time, "" if row.payload is None else str(row.payload)]
                for row, time in zip(self.rows, times, strict=True)
            ),
        )


def logically_equivalent(one: HistoryTable, two: HistoryTable, *, to: int = INF, at: int | None = None) -> bool:
    """Definition 1: the canonical tables agree on everything but K's name and CEDR time."""
    return one.canonical(to=to, at=at).history() == two.canonical(to=to, at=at).history()


def bitemporal_table(history: History) -> str:
    """A history of versions as Figure 1 prints it."""
    return text_table(
        ["ID", "Vs", "Ve", "Os", "Oe", "(Payload)"],
        (
            [str(v.id), show(v.vs), show(v.ve), show(os), show(oe), "…" if v.payload is None else str(v.payload)]
            for os, oe, v in sorted(history, key=lambda e: (str(e.payload.id), e.vs))
        ),
    )


def ideal_table(history: History) -> str:
    """A history with its events numbered, as Figure 10 prints the unitemporal ideal history table."""
    numbered = ([f"E{i}", show(e.vs), show(e.ve), str(e.payload)] for i, e in enumerate(history))
    return text_table(["ID", "Vs", "Ve", "(Payload)"], numbered)
