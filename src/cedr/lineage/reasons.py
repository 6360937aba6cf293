"""Reasons why given events make no match. Each is a fact about events that can be checked by itself."""

from dataclasses import dataclass

import polars as pl

from cedr.lineage import selection
from cedr.lineage.definition import TracedEventType
from cedr.reference.patterns.atmost import ReferenceAtMost
from cedr.reference.patterns.instance import Instance
from cedr.reference.patterns.negation import ReferenceNegation
from cedr.reference.patterns.pattern import ReferencePattern
from cedr.reference.patterns.predicates import ReferenceCondition
from cedr.reference.patterns.sequence import Ordered


@dataclass(frozen=True)
class NoSuchEvent:
    """No event of this type is as described; what comes closest to it."""

    leaf: TracedEventType
    described: dict[str, object]
    put_aside: tuple[str, ...] = ()
    """The messages of late rows like it."""
    removed: int = 0
    """How many like it a correction took away."""
    of_other_type: pl.DataFrame | None = None
    nearest: Instance | None = None


@dataclass(frozen=True)
class NothingNear:
    """No event of this type has the key of the given events and lies near them."""

    leaf: TracedEventType
    nearest: Instance | None


@dataclass(frozen=True)
class WrongOrder:
    """`later` would have to start after `earlier`, and does not."""

    pattern: Ordered
    earlier: Instance
    later: Instance


@dataclass(frozen=True)
class TooFar:
    """First and last are further apart than the scope, by this much; `chain` are all of them."""

    pattern: Ordered | ReferenceAtMost
    chain: tuple[Instance, ...]
    by: int


@dataclass(frozen=True)
class Falsified:
    """These conditions, evaluated at this pattern, are not true of the instance."""

    pattern: ReferencePattern
    conditions: tuple[ReferenceCondition, ...]
    instance: Instance


@dataclass(frozen=True)
class Negated:
    """`threat` starts after `after` and before `before`."""

    pattern: ReferenceNegation
    instance: Instance
    threat: Instance
    after: int
    before: int


@dataclass(frozen=True)
class TooMany:
    """ATMOST: from `start` to `end`, while the given events count, there are never fewer than these."""

    pattern: ReferenceAtMost
    events: tuple[Instance, ...]
    start: int
    end: int


@dataclass(frozen=True)
class TooFewParameters:
    """ATLEAST: more parameters were named than can take part, or fewer have any events."""

    pattern: Ordered
    named: tuple[str, ...]
    present: int


@dataclass(frozen=True)
class NotSelected:
    pattern: Ordered
    match: Instance
    fate: selection.RejectedBySelection


@dataclass(frozen=True)
class Consumed:
    pattern: Ordered
    match: Instance
    fate: selection.ConsumedByMatch


@dataclass(frozen=True)
class LeftOut:
    """The pattern matches, but what follows it in the query (a slice, a filter) leaves the match out."""

    start: int
    end: int


Reason = (
    NoSuchEvent
    | NothingNear
    | WrongOrder
    | TooFar
    | Falsified
    | Negated
    | TooMany
    | TooFewParameters
    | NotSelected
    | Consumed
    | LeftOut
)
