"""The binary stream iterators. A state holds rows and punctuations of both inputs: (lts, rts, lps, rps)."""

from collections.abc import Callable, Sequence
from typing import Any

from cedr.reference.punctuated import tables
from cedr.reference.punctuated.iterator import BinaryIterator, IteratorSide, Puncts, Rows, Slice, State, binary, unary
from cedr.reference.punctuated.unary import distinct, once
from cedr.temporal.punctuation import (
    Punctuation,
    set_combine,
    set_match_ts,
    set_nomatch_ps,
    set_nomatch_ts,
)
from cedr.temporal.row import Row

NOTHING_YET: State = ([], [], [], [])
Output = list[list[Row | Punctuation]]


def difference(lefts: Sequence[Slice], rights: Sequence[Slice]) -> Output:
    """`sdiff` of section 3.2, as printed. A row of the left input leaves when the right one excludes it."""

    def lstep(ts: Rows, st: State) -> tuple[Rows, State]:
        lts, rts, lps, rps = st
        return [], ([*ts, *lts], rts, lps, rps)

    def rstep(ts: Rows, st: State) -> tuple[Rows, State]:
        lts, rts, lps, rps = st
        return [], (lts, [*ts, *rts], lps, rps)

    def rpass(ps: Puncts, st: State) -> Rows:
        lts, rts, _, rps = st
        return set_match_ts(minus(lts, rts), [*ps, *rps])

    def lprop(ps: Puncts, st: State) -> Puncts:
        lts, _, lps, _ = st
        return set_nomatch_ps(lts, [*ps, *lps])

    def lpurge(ps: Puncts, st: State) -> State:
        lts, rts, lps, rps = st
        return lts, rts, minus([*ps, *lps], lprop(ps, st)), rps

    def rpurge(ps: Puncts, st: State) -> State:
        lts, rts, lps, rps = st
        new = [*ps, *rps]
        return set_nomatch_ts(lts, new), rts, lps, new

    left, right = IteratorSide(lstep, prop=lprop, purge=lpurge), IteratorSide(rstep, rpass, purge=rpurge)
    return unary(distinct(), binary(BinaryIterator(NOTHING_YET, left, right), lefts, rights))


def union(lefts: Sequence[Slice], rights: Sequence[Slice]) -> Output:
    """Each row once. Promises that both inputs make are passed on, and the state about them is dropped."""

    def step(ts: Rows, st: State) -> tuple[Rows, State]:
        return ts, st

    return unary(distinct(), binary(mirrored(step, prop=promised_by_both, purge=remember), lefts, rights))


def intersect(lefts: Sequence[Slice], rights: Sequence[Slice]) -> Output:
    """Rows that came on both sides, once.

    A row is forgotten when the other input excludes it, which is A.4 with its two sets no longer exchanged for their
    complements.
    """

    def step(ts: Rows, st: State) -> tuple[Rows, State]:
        lts, rts, lps, rps = st
        return [t for t in ts if t in rts], ([*ts, *lts], rts, lps, rps)

    def purge(ps: Puncts, st: State) -> State:
        lts, rts, lps, rps = remember(ps, st)
        return set_nomatch_ts(lts, rps), set_nomatch_ts(rts, lps), lps, rps

    return unary(distinct(), binary(mirrored(step, prop=promised_by_both, purge=purge), lefts, rights))


def join(lefts: Sequence[Slice], rights: Sequence[Slice], keys: Sequence[str]) -> Output:
    """Pairs with equal keys, emitted at once.

    A row is forgotten when the other input excludes all its partners: a punctuation about keys alone that it matches.
    A punctuation is passed on when no row that matches it is held, as then no pair can contain one.
    """

    def step(ts: Rows, st: State) -> tuple[Rows, State]:
        lts, rts, lps, rps = st
        return tables.join(ts, rts, keys), ([*ts, *lts], rts, lps, rps)

    def prop(ps: Puncts, st: State) -> Puncts:
        lts, rts, lps, rps = purge(ps, st)
        return [*set_nomatch_ps(lts, lps), *set_nomatch_ps(rts, rps)]

    def purge(ps: Puncts, st: State) -> State:
        lts, rts, lps, rps = remember(ps, st)
        return set_nomatch_ts(lts, about_keys(rps)), set_nomatch_ts(rts, about_keys(lps)), lps, rps

    def about_keys(ps: Puncts) -> Puncts:
        return [p for p in ps if set(p.attributes) <= set(keys)]

    return unary(once(), binary(mirrored(step, prop, purge), lefts, rights))


# --- what they share -------------------------------------------------------------------------------------------------


def mirrored(
    step: Callable[[Rows, State], tuple[Rows, State]],
    prop: Callable[[Puncts, State], Puncts],
    purge: Callable[[Puncts, State], State],
) -> BinaryIterator:
    """Both sides have the same functions; each sees itself as the left one."""

    def turned_step(ts: Rows, st: State) -> tuple[Rows, State]:
        out, new = step(ts, turned(st))
        return out, turned(new)

    right = IteratorSide(
        turned_step,
        prop=lambda ps, st: prop(ps, turned(st)),
        purge=lambda ps, st: turned(purge(ps, turned(st))),
    )
    return BinaryIterator(NOTHING_YET, IteratorSide(step, prop=prop, purge=purge), right)


def turned(st: State) -> State:
    lts, rts, lps, rps = st
    return rts, lts, rps, lps


def remember(ps: Puncts, st: State) -> State:
    lts, rts, lps, rps = st
    return lts, rts, [*lps, *ps], rps


def promised_by_both(ps: Puncts, st: State) -> Puncts:
    """What follows from new punctuations of this side and all of the other."""
    _, _, _, rps = st
    return set_combine(ps, rps)


def minus(xs: list[Any], ys: list[Any]) -> list[Any]:
    """All of `xs` that are not in `ys`."""
    return [x for x in xs if x not in ys]
