"""Punctuation: promises that certain elements will not follow (Tucker, Maier, Sheard, Fegaras).

A pattern describes values of an attribute (Table 1):

    ANY            every value
    Constant(c)    c
    Range(a, b)    from a to b, both included; None leaves a side open
    OneOf(cs)      the values listed
    NOTHING        none

A punctuation has a pattern for some attributes of the payload (the others are free) and a time: no later element whose
payload matches has its sync time before it. So `Cti(t)` is the punctuation about everything before t, and the one about
everything before infinity is the end of the stream. The rows that two punctuations both match are again described by a
punctuation (`combine`).

A missing value is a value: only ANY, `Constant(None)` and a list with None match it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cedr.temporal.errors import PayloadError
from cedr.temporal.row import Row, order_key, payload
from cedr.temporal.time import INF, as_time, show


@dataclass(frozen=True, slots=True)
class Wildcard:
    def __str__(self) -> str:
        return "*"


@dataclass(frozen=True, slots=True)
class Empty:
    def __str__(self) -> str:
        return "∅"


@dataclass(frozen=True, slots=True)
class Constant:
    value: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", payload(self.value))

    def __str__(self) -> str:
        return f"{self.value}"


@dataclass(frozen=True, slots=True)
class Range:
    """The values from `low` to `high`, both included; None means unbounded on that side."""

    low: Any = None
    high: Any = None

    def __str__(self) -> str:
        return f"[{'-∞' if self.low is None else self.low}, {'∞' if self.high is None else self.high}]"


@dataclass(frozen=True, slots=True)
class OneOf:
    """The values of a list."""

    values: frozenset[Any]

    def __init__(self, values: Iterable[Any]) -> None:
        object.__setattr__(self, "values", frozenset(payload(value) for value in values))

    def __str__(self) -> str:
        return f"{{{', '.join(str(v) for v in sorted(self.values, key=order_key))}}}"


Pattern = Wildcard | Empty | Constant | Range | OneOf
ANY = Wildcard()
NOTHING = Empty()


def as_pattern(value: Any) -> Pattern:
    """A pattern from user input: a pattern, `...` for any value, a list or set of values, or a constant."""
    if isinstance(value, Pattern):
        return simple(value)
    if value is ...:
        return ANY
    if isinstance(value, list | set | frozenset):
        return simple(OneOf(value))
    return Constant(value)


def simple(p: Pattern) -> Pattern:
    """The simplest pattern for the same values."""
    match p:
        case OneOf(values) if not values:
            return NOTHING
        case OneOf(values) if len(values) == 1:
            return Constant(next(iter(values)))
        case Range(None, None):
            return p  # every value but a missing one
        case Range(low, high) if low is not None and high is not None and not below(low, high):
            return NOTHING
        case Range(low, high) if low is not None and low == high:
            return Constant(low)
    return p


def below(low: Any, high: Any) -> bool:
    """`low <= high`, where the order of payloads decides."""
    return order_key(low) <= order_key(high)


def matches(value: Any, p: Pattern) -> bool:
    """Table 1."""
    match p:
        case Wildcard():
            return True
        case Constant(c):
            return value is c or bool(value == c)  # the one NaN is itself
        case Range(low, high):
            if value is None:
                return False
            return (low is None or below(low, value)) and (high is None or below(value, high))
        case OneOf(values):
            return value in values
    return False


def meet(p: Pattern, q: Pattern) -> Pattern:
    """The values that both patterns match."""
    match p, q:
        case (Wildcard(), other) | (other, Wildcard()):
            return other
        case (Empty(), _) | (_, Empty()):
            return NOTHING
        case (Constant(c), other) | (other, Constant(c)):
            return Constant(c) if matches(c, other) else NOTHING
        case (OneOf(values), other) | (other, OneOf(values)):
            return simple(OneOf(v for v in values if matches(v, other)))
        case (Range(a, b), Range(c, d)):
            low = a if c is None else c if a is None else max(a, c, key=order_key)
            high = b if d is None else d if b is None else min(b, d, key=order_key)
            return simple(Range(low, high))
    raise AssertionError((p, q))


def within(p: Pattern, q: Pattern) -> bool:
    """Whether q matches every value that p matches."""
    match p, q:
        case (Empty(), _) | (_, Wildcard()):
            return True
        case (Wildcard(), _) | (_, Empty()):
            return False
        case Constant(c), other:
            return matches(c, other)
        case OneOf(values), other:
            return all(matches(v, other) for v in values)
        case Range(a, b), Range(c, d):
            low = c is None or (a is not None and below(c, a))
            return low and (d is None or (b is not None and below(b, d)))
    return False


@dataclass(frozen=True, slots=True)
class Punctuation:
    """`patterns` by attribute, without those that any value matches; `before` is the time it reaches to."""

    patterns: Mapping[str, Pattern] = field(default_factory=dict)
    before: int = INF

    def __post_init__(self) -> None:
        patterns = {name: as_pattern(value) for name, value in sorted(self.patterns.items())}
        object.__setattr__(self, "patterns", Row({n: p for n, p in patterns.items() if p != ANY}))
        object.__setattr__(self, "before", as_time(self.before, "time a punctuation reaches to (before)"))

    def __str__(self) -> str:
        texts = [f"{name}={p}" for name, p in self.patterns.items()] or ["everything"]
        until = "" if self.before == INF else f" before {show(self.before)}"
        return f"no more {', '.join(texts)}{until}"

    def __getitem__(self, attribute: str) -> Pattern:
        return self.patterns.get(attribute, ANY)

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(self.patterns)

    @property
    def empty(self) -> bool:
        """Whether it matches no row, so that it promises nothing."""
        return NOTHING in self.patterns.values()

    def about(self, row: Any) -> bool:
        """Whether the payload matches."""
        if self.patterns and not isinstance(row, Mapping):
            raise PayloadError(f"{self} is about attributes, but the payload {row!r} is not a Row")
        return all(matches(row[name], p) for name, p in self.patterns.items())

    def forbids(self, row: Any, sync: int) -> bool:
        """Whether it excludes an element with this payload and sync time."""
        return sync < self.before and self.about(row)

    def covers(self, other: "Punctuation") -> bool:
        """Whether it excludes all elements that the other excludes."""
        if other.empty:
            return True
        return other.before <= self.before and all(within(other[name], p) for name, p in self.patterns.items())


def punctuation(before: int = INF, /, **patterns: Any) -> Punctuation:
    """`punctuation(zone=[1, 6], hour=Range(5, 8))`; `punctuation(100, key="a")`: a's events before 100."""
    return Punctuation(patterns, before)


# --- Table 2 ---------------------------------------------------------------------------------------------------------


def match(row: Any, p: Punctuation) -> bool:
    return p.about(row)


def nomatch(row: Any, p: Punctuation) -> bool:
    return not match(row, p)


def combine(p: Punctuation, q: Punctuation) -> Punctuation:
    """The punctuation that a row matches if and only if it matches both."""
    names = dict.fromkeys((*p.patterns, *q.patterns))
    return Punctuation({name: meet(p[name], q[name]) for name in names}, min(p.before, q.before))


def set_match(row: Any, ps: Iterable[Punctuation]) -> bool:
    """Whether the row matches one of them."""
    return any(match(row, p) for p in ps)


def set_nomatch(row: Any, ps: Iterable[Punctuation]) -> bool:
    return not set_match(row, ps)


def set_match_ts(rows: Iterable[Any], ps: Iterable[Punctuation]) -> list[Any]:
    """The rows that match one."""
    punctuations = list(ps)
    return [row for row in rows if set_match(row, punctuations)]


def set_nomatch_ts(rows: Iterable[Any], ps: Iterable[Punctuation]) -> list[Any]:
    """The rows that match none."""
    punctuations = list(ps)
    return [row for row in rows if set_nomatch(row, punctuations)]


def set_nomatch_ps(rows: Iterable[Any], ps: Iterable[Punctuation]) -> list[Punctuation]:
    """The punctuations that no row matches."""
    all_rows = list(rows)
    return [p for p in ps if not any(match(row, p) for row in all_rows)]


def tups(elements: Iterable[Any]) -> list[Any]:
    return [e for e in elements if not isinstance(e, Punctuation)]


def puncts(elements: Iterable[Any]) -> list[Punctuation]:
    return [e for e in elements if isinstance(e, Punctuation)]


def set_combine(ps: Iterable[Punctuation], qs: Iterable[Punctuation]) -> list[Punctuation]:
    """All combinations that are not empty."""
    others = list(qs)
    return [c for p in ps for q in others if not (c := combine(p, q)).empty]


def frontier(row: Any, ps: Iterable[Punctuation]) -> int | None:
    """The latest time before which elements with this payload are excluded; None when nothing is."""
    return max((p.before for p in ps if p.about(row)), default=None)
