"""Stream iterators: (initial state, step, pass, prop, purge), run over sliced lists (sections 3.1 and 3.2).

For each slice, `step` processes the rows; then the punctuations of the slice allow more: `pass` emits further rows,
`prop` emits punctuations, and finally `purge` reduces the state. A binary iterator has these functions for each of its
inputs, over one state. States are values: no function modifies one.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cedr.temporal.punctuation import Punctuation, match, puncts, tups
from cedr.temporal.row import Row

Rows = list[Row]
Puncts = list[Punctuation]
State = Any
Slice = Sequence[Row | Punctuation]

Step = Callable[[Rows, State], tuple[Rows, State]]
Pass = Callable[[Puncts, State], Rows]
Prop = Callable[[Puncts, State], Puncts]
Purge = Callable[[Puncts, State], State]


def pass_t(_ps: Puncts, _state: State) -> Rows:
    return []


def prop_t(_ps: Puncts, _state: State) -> Puncts:
    return []


def purge_t(_ps: Puncts, state: State) -> State:
    return state


@dataclass(frozen=True)
class IteratorSide:
    """The functions of an iterator for one input. By default it never waits, promises nothing and forgets nothing."""

    step: Step
    pass_: Pass = pass_t
    prop: Prop = prop_t
    purge: Purge = purge_t

    def take(self, xs: Slice, state: State) -> tuple[list[Row | Punctuation], State]:
        ps = puncts(xs)
        out, state = self.step(tups(xs), state)
        return [*out, *self.pass_(ps, state), *self.prop(ps, state)], self.purge(ps, state)


@dataclass(frozen=True)
class UnaryIterator:
    initial: State
    side: IteratorSide


@dataclass(frozen=True)
class BinaryIterator:
    initial: State
    left: IteratorSide
    right: IteratorSide


def unary(iterator: UnaryIterator, slices: Iterable[Slice]) -> list[list[Row | Punctuation]]:
    """A slice of output for each slice of input."""
    state, result = iterator.initial, []
    for xs in slices:
        out, state = iterator.side.take(xs, state)
        result.append(out)
    return result


def binary(iterator: BinaryIterator, lefts: Iterable[Slice], rights: Iterable[Slice]) -> list[list[Row | Punctuation]]:
    """Two slices of output for each pair of slices, that of the left input first."""
    state, result = iterator.initial, []
    for left, right in zip(lefts, rights, strict=True):
        for side, xs in ((iterator.left, left), (iterator.right, right)):
            out, state = side.take(xs, state)
            result.append(out)
    return result


def grammatical(stream: Iterable[Row | Punctuation]) -> bool:
    """Whether no row comes after a punctuation that it matches."""
    punctuations: Puncts = []
    for x in stream:
        if isinstance(x, Punctuation):
            punctuations.append(x)
        elif any(match(x, p) for p in punctuations):
            return False
    return True
