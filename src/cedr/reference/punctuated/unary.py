"""The unary stream iterators, with the rules of appendix A."""

from collections.abc import Callable, Sequence
from typing import Any

from cedr.reference.punctuated import tables
from cedr.reference.punctuated.iterator import IteratorSide, Puncts, Rows, State, UnaryIterator
from cedr.temporal.punctuation import (
    Constant,
    OneOf,
    Pattern,
    Range,
    set_match_ts,
    set_nomatch_ps,
    set_nomatch_ts,
)
from cedr.temporal.row import Row
from cedr.temporal.time import INF


def select(predicate: Callable[[Row], bool]) -> UnaryIterator:
    """It has no state and passes every punctuation on: a row that is excluded from the input is not in the output."""
    return UnaryIterator(None, IteratorSide(lambda ts, st: (tables.select(ts, predicate), st), prop=lambda ps, _: ps))


def project(names: Sequence[str]) -> UnaryIterator:
    """A punctuation about a dropped column implies nothing for the others: other rows may have equal projections."""
    return UnaryIterator(
        None,
        IteratorSide(
            lambda ts, st: (tables.project(ts, names), st),
            prop=lambda ps, _: [p for p in ps if set(p.attributes) <= set(names)],
        ),
    )


def distinct() -> UnaryIterator:
    """The state contains the rows seen so far, without those that a punctuation excludes (A.3)."""

    def step(ts: Rows, seen: Rows) -> tuple[Rows, State]:
        new = [t for t in tables.distinct(ts) if t not in seen]
        return new, [*seen, *new]

    return UnaryIterator([], IteratorSide(step, prop=lambda ps, _: ps, purge=lambda ps, seen: set_nomatch_ts(seen, ps)))


def once() -> UnaryIterator:
    """Every row, and each punctuation once."""

    def purge(ps: Puncts, emitted: Puncts) -> State:
        return [*emitted, *ps]

    def prop(ps: Puncts, emitted: Puncts) -> Puncts:
        return [p for p in ps if p not in emitted]

    return UnaryIterator([], IteratorSide(lambda ts, st: (ts, st), prop=prop, purge=purge))


def group_by(keys: Sequence[str], **aggregates: Callable[[Sequence[Row]], Any]) -> UnaryIterator:
    """A group is emitted and forgotten when a punctuation matches all of its rows (A.1, A.2).

    The columns of the output are the keys and the aggregates, so punctuations about keys are passed on, after the
    groups they close.
    """

    def about_groups(ps: Puncts) -> Puncts:
        return [p for p in ps if set(p.attributes) <= set(keys)]

    def step(ts: Rows, held: Rows) -> tuple[Rows, State]:
        return [], [*held, *ts]

    def pass_(ps: Puncts, held: Rows) -> Rows:
        return tables.group_by(set_match_ts(held, about_groups(ps)), keys, **aggregates)

    def purge(ps: Puncts, held: Rows) -> State:
        return set_nomatch_ts(held, about_groups(ps))

    return UnaryIterator([], IteratorSide(step, pass_, lambda ps, _: about_groups(ps), purge))


def sort(by: str, least: int) -> UnaryIterator:
    """Sort by a column of whole numbers, the smallest of which is `least`.

    A row is emitted when everything up to its number is excluded, a punctuation when no row that matches it is held.
    """

    def step(ts: Rows, state: State) -> tuple[Rows, State]:
        held, promised, waiting = state
        return [], ([*held, *ts], promised, waiting)

    def ready(ps: Puncts, state: State) -> Rows:
        held, promised, _ = state
        return tables.sort([t for t in held if t[by] < reached(by, least, [*promised, *ps])], by)

    def prop(ps: Puncts, state: State) -> Puncts:
        held, _, waiting = state
        gone = ready(ps, state)
        return set_nomatch_ps([t for t in held if t not in gone], [*waiting, *ps])

    def purge(ps: Puncts, state: State) -> State:
        held, promised, waiting = state
        gone, emitted = ready(ps, state), prop(ps, state)
        left = [p for p in [*waiting, *ps] if p not in emitted]
        return [t for t in held if t not in gone], [*promised, *ps], left

    return UnaryIterator(([], [], []), IteratorSide(step, ready, prop, purge))


def reached(by: str, least: int, ps: Puncts) -> int:
    """The first whole number that is not excluded."""
    patterns = [p[by] for p in ps if p.attributes == (by,)]
    if any(not p.attributes for p in ps):
        return INF  # the stream has ended
    number = least
    while number < INF and (ends := [end for p in patterns if (end := end_from(number, p)) is not None]):
        number = max(ends)
    return number


def end_from(number: int, p: Pattern) -> int | None:
    """The first number after `number` that does not match the pattern, if `number` does."""
    match p:
        case Constant(value) if value == number:
            return number + 1
        case OneOf(values) if number in values:
            return number + 1
        case Range(low, high) if (low is None or low <= number) and (high is None or number <= high):
            return INF if high is None else int(high) + 1
    return None
