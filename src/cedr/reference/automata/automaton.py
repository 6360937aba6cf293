"""The runs of an automaton, found one by one.

*Place.* The events of a key form a sequence. The place of an event is its start or, where the user names a column of
sequence numbers, that number. An event *follows* another if it has the next place: by starts the next start at which
the key has an event, by number the number plus one. No event is skipped. Events at one place are alternatives: a run
takes one of them.

*Run.* A run takes events e1 .. en, each of which follows the one before, and rows t1 .. tn of the transition table
(source, symbol, target), so that

    t1.source is the start state, each t.source is the target of the row before,
    ei has the symbol of ti, if symbols are values of a column (missing equals missing),
    and the condition of the step of that name, if there is one, is true for ei and the registers so far;
    then that step sets the registers, all at once, from their values before.

Its lifetime is the time during which all of e1 .. en and t1 .. tn are alive, and must not be empty. So by number, the
runs at every instant are those of the events and of the table at that instant; by starts, an event keeps its place
between its neighbours after it has ended. With a window w each event counts for `[vs, vs + w)`, whatever its own end,
so that all events of a run are within w.

*Result.* One tuple for each run that ends in a final state: the key, the places of the first and the last event, the
state, the registers. Without final states the result contains every run, also partial ones, and for each event the run
of length 0 that begins there: its end is `begin - 1`, its lifetime the event's. Equal rows are several tuples.

Missing values are those of SQL: a condition that is neither true nor false is not true, so the step is not taken, and
a register that is set from a missing value is missing from then on. An event whose key or number is missing is ignored.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cedr.temporal import INF, Event, History, Row
from cedr.temporal.time import plus

Registers = Mapping[str, float | None]
MISSING = frozenset[Any]({None})


def always(payload: Any, registers: Registers) -> bool:
    return True


def nothing(payload: Any, registers: Registers) -> Registers:
    return {}


@dataclass(frozen=True)
class ReferenceStep:
    """The condition for a step, and the registers it sets."""

    when: Callable[[Any, Registers], bool | None] = always
    set: Callable[[Any, Registers], Registers] = nothing


@dataclass(frozen=True)
class Run:
    first: Event
    last: Event
    """The event taken last; before the first one, the event at which the run begins."""
    length: int
    state: Any
    registers: Row
    vs: int
    ve: int


Follows = Callable[[Event], list[Event]]


def automaton(
    events: History,
    transitions: History | Iterable[tuple[Any, Any, Any]],
    *,
    start: Any,
    final: Iterable[Any] | None = None,
    symbol: str | None = None,
    steps: Mapping[str, ReferenceStep] | None = None,
    registers: Registers | None = None,
    by: Sequence[str] = (),
    order: str | None = None,
    window: int | None = None,
) -> History:
    table = transitions if isinstance(transitions, History) else fixed(transitions)
    ends = None if final is None else set(final)

    def grown(run: Run, e: Event) -> Iterator[Run]:
        for t in table:
            if t.payload.source == run.state:
                yield from taken(run, e, t, symbol, steps or {})

    def tuples() -> Iterator[tuple[int, int, Row]]:
        for key, group, follows in keys_of(events, by, order, window):
            for e in group:
                runs = [Run(e, e, 0, start, Row(registers or {}), e.vs, e.ve)]
                while runs:
                    yield from (as_tuple(run, key, order) for run in runs if ends is None or run.state in ends)
                    runs = [new for run in runs for f in candidates(run, follows) for new in grown(run, f)]

    return History(tuples())


def fixed(transitions: Iterable[tuple[Any, Any, Any]]) -> History:
    """A table that never changes."""
    return History((-INF, INF, Row(source=s, symbol=a, target=t)) for s, a, t in transitions)


def keys_of(
    events: History, by: Sequence[str], order: str | None, window: int | None
) -> Iterator[tuple[Row, list[Event], Follows]]:
    """For each key its events, with the lifetimes that count, and a function to the events that follow one."""
    there = [e for e in events if MISSING.isdisjoint(e.payload[n] for n in (*by, *([order] if order else [])))]
    counted = [e if window is None else Event(e.vs, plus(e.vs, window), e.payload) for e in there]
    for key, group in History(counted).groups(lambda p: tuple(p[name] for name in by)).items():
        yield Row(dict(zip(by, key, strict=True))), list(group), following(list(group), order)


def following(group: list[Event], order: str | None) -> Follows:
    places: dict[int, list[Event]] = {}
    for e in group:
        places.setdefault(place(e, order), []).append(e)
    after = dict(pairwise(sorted(places)))
    if order is not None:
        return lambda e: places.get(e.payload[order] + 1, [])
    return lambda e: places.get(after.get(e.vs, INF), [])


def place(e: Event, order: str | None) -> int:
    return e.vs if order is None else int(e.payload[order])


def candidates(run: Run, follows: Follows) -> list[Event]:
    return follows(run.last) if run.length else [run.first]


def taken(run: Run, e: Event, t: Event, symbol: str | None, steps: Mapping[str, ReferenceStep]) -> Iterator[Run]:
    """The run after e took the row t of the table, if that is allowed."""
    name = t.payload.symbol
    if symbol is not None and e.payload[symbol] != name:
        return
    if name not in steps and symbol is None:
        return
    vs, ve = max(run.vs, e.vs, t.vs), min(run.ve, e.ve, t.ve)
    step = steps.get(name, ReferenceStep())
    if vs < ve and step.when(e.payload, run.registers):
        registers = Row({**run.registers, **step.set(e.payload, run.registers)})
        yield Run(run.first, e, run.length + 1, t.payload.target, registers, vs, ve)


def as_tuple(run: Run, key: Row, order: str | None) -> tuple[int, int, Row]:
    begin = place(run.first, order)
    end = place(run.last, order) if run.length else begin - 1
    return run.vs, run.ve, Row({**key, "begin": begin, "end": end, "state": run.state, **run.registers})
