"""Regular expression to transition table, by the construction of Glushkov: one state for each place of a step.

An event that takes the step at a place leads into the state of that place, from the states of the places that may
precede it. So there are no transitions without an event, and `{n,m}` is expanded into copies of the expression.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from cedr.syntax.automata import tree
from cedr.syntax.errors import LanguageError

START = "start"
MOST_PLACES = 1000
"""Maximum number of places; more come only from mistyped numbers in braces."""

Places = tuple[int, ...]


class Subexpression(NamedTuple):
    """A part of the expression: where it may begin and end, and whether it may be empty."""

    first: Places
    last: Places
    empty: bool


@dataclass
class Positions:
    """Steps by their places, counted from 0, and the places that may follow each."""

    steps: list[str] = field(default_factory=list)
    follow: list[set[int]] = field(default_factory=list)
    first: Places = ()
    last: Places = ()

    def state(self, place: int) -> str:
        return f"{self.steps[place]} {place + 1}"

    def transitions(self) -> Iterator[tuple[str, str, str]]:
        for place in self.first:
            yield START, self.steps[place], self.state(place)
        for before, after in enumerate(self.follow):
            for place in sorted(after):
                yield self.state(before), self.steps[place], self.state(place)

    @property
    def final(self) -> tuple[str, ...]:
        return tuple(map(self.state, self.last))


def positions_of(expression: tree.Regex) -> Positions:
    made = Positions()
    whole = built(expression, made)
    if whole.empty:
        problem = "the expression also matches an empty sequence; it must contain at least one step"
        raise LanguageError(problem, expression.at)
    made.first, made.last = whole.first, whole.last
    return made


def built(expression: tree.Regex, into: Positions) -> Subexpression:
    match expression:
        case tree.RegexStep(name):
            place = len(into.steps)
            if place == MOST_PLACES:
                raise LanguageError(f"expanded, the expression has more than {MOST_PLACES} steps", expression.at)
            into.steps.append(name)
            into.follow.append(set())
            return Subexpression((place,), (place,), False)
        case tree.RegexSequence(parts):
            return joined([built(part, into) for part in parts], into)
        case tree.RegexChoice(parts):
            found = [built(part, into) for part in parts]
            first = tuple(place for f in found for place in f.first)
            last = tuple(place for f in found for place in f.last)
            return Subexpression(first, last, any(f.empty for f in found))
        case tree.RegexRepeat(part, least, most):
            return repeated(part, least, most, into)
    raise TypeError(f"{type(expression).__name__} is not a regular expression")


def joined(parts: list[Subexpression], into: Positions) -> Subexpression:
    whole = Subexpression((), (), True)
    for part in parts:
        for before in whole.last:
            into.follow[before].update(part.first)
        whole = Subexpression(
            whole.first + part.first if whole.empty else whole.first,
            whole.last + part.last if part.empty else part.last,
            whole.empty and part.empty,
        )
    return whole


def repeated(expression: tree.Regex, least: int, most: int | None, into: Positions) -> Subexpression:
    times = max(least, 1) if most is None else most
    copies = [built(expression, into) for _ in range(times)]
    if most is None:  # the last copy may repeat
        for before in copies[-1].last:
            into.follow[before].update(copies[-1].first)
    return joined([c._replace(empty=c.empty or number >= least) for number, c in enumerate(copies)], into)
