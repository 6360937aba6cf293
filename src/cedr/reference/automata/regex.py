"""The stretches of events that a regular expression matches, found without an automaton.

An expression is a tree: the name of a step, `("then", ..)`, `("or", ..)` or `("repeat", e, least, most)`, where most
may be None. Its matches are defined from the inside out: a name matches one event that follows and takes the step, and
leads from one *position* to others. A position is the event taken last, the registers and the lifetime so far.

A stretch is one row: of the matches with the same key, places of the first and last event, registers and start of the
lifetime, only the one that lasts longest counts, regardless of the events at these places and of the part of the
expression that took them. Otherwise two equal events would be one match until one of them ends, and from then on two
matches since their start.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cedr.reference.automata.automaton import Follows, ReferenceStep, Registers, keys_of, place
from cedr.temporal import Event, History, Row

Tree = Any


class Position(NamedTuple):
    last: Event | None
    registers: Row
    vs: int
    ve: int


def regex(
    tree: Tree,
    events: History,
    *,
    steps: Mapping[str, ReferenceStep],
    registers: Registers | None = None,
    by: Sequence[str] = (),
    order: str | None = None,
    window: int | None = None,
) -> History:
    def tuples() -> Iterator[tuple[int, int, Row]]:
        for key, group, follows in keys_of(events, by, order, window):
            for e in group:
                begin = Position(None, Row(registers or {}), e.vs, e.ve)
                for p in RegexMatcher(e, follows, steps).after(tree, {begin}):
                    if p.last is not None:
                        ends = {"begin": place(e, order), "end": place(p.last, order)}
                        yield p.vs, p.ve, Row({**key, **ends, **p.registers})

    longest: dict[tuple[int, Row], int] = {}
    for vs, ve, payload in tuples():
        longest[vs, payload] = max(ve, longest.get((vs, payload), ve))
    return History((vs, ve, payload) for (vs, payload), ve in longest.items())


class RegexMatcher(NamedTuple):
    first: Event
    follows: Follows
    steps: Mapping[str, ReferenceStep]

    def after(self, tree: Tree, positions: set[Position]) -> set[Position]:
        """The positions to which the expression leads from any of these."""
        match tree:
            case str():
                return {q for p in positions for q in self.taken(tree, p)}
            case ("then", *parts):
                for part in parts:
                    positions = self.after(part, positions)
                return positions
            case ("or", *parts):
                return {p for part in parts for p in self.after(part, positions)}
            case ("repeat", part, least, most):
                return self.repeated(part, least, most, positions)
        raise TypeError(f"{tree!r} is not an expression")

    def repeated(self, part: Tree, least: int, most: int | None, positions: set[Position]) -> set[Position]:
        for _ in range(least):
            positions = self.after(part, positions)
        found, times = set(positions), least
        while positions and (most is None or times < most):
            positions = self.after(part, positions) - found
            found |= positions
            times += 1
        return found

    def taken(self, name: str, p: Position) -> Iterator[Position]:
        step = self.steps[name]
        for e in [self.first] if p.last is None else self.follows(p.last):
            vs, ve = max(p.vs, e.vs), min(p.ve, e.ve)
            if vs < ve and step.when(e.payload, p.registers):
                registers = Row({**p.registers, **step.set(e.payload, p.registers)})
                yield Position(e, registers, vs, ve)
