"""What became of a match that SEQUENCE or ATLEAST could make: taken, not selected, or its events consumed before.

The definition is `cedr.reference.patterns.selection`; this follows it step by step and remembers who decided.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from cedr.reference.patterns.instance import Instance
from cedr.reference.patterns.pattern import ReferencePattern, ReferenceScope
from cedr.reference.patterns.selection import keep_extreme, took_part
from cedr.reference.patterns.sequence import Ordered


@dataclass(frozen=True)
class Decision:
    """FIRST or LAST at one parameter: what was to choose from, in order, and what was chosen."""

    parameter: ReferencePattern
    choices: tuple[Instance, ...]
    chosen: Instance


@dataclass(frozen=True)
class Taken:
    decisions: tuple[Decision, ...]


@dataclass(frozen=True)
class RejectedBySelection:
    """Another match of the same completing event has the instance that FIRST or LAST selects."""

    decision: Decision
    own: Instance
    """What the match has there."""
    preferred: Instance
    """The match that is left at this parameter."""


@dataclass(frozen=True)
class ConsumedByMatch:
    contributor: Instance
    by: Instance
    """The match that used it up."""


Fate = Taken | RejectedBySelection | ConsumedByMatch


def fate(match: Instance, matches: list[Instance], parameters: Sequence[ReferencePattern]) -> Fate:
    """What became of one of the matches of an operator; `matches` are all that conditions allow."""
    users: dict[Any, Instance] = {}
    ordered = sorted(matches, key=completion)
    for complete, group in groupby(ordered, key=completion):
        completed = list(group)
        candidates = [m for m in completed if not any(c.id in users for c in m.cbt)]
        if complete == completion(match):
            used = [c for c in match.cbt if c.id in users]
            return ConsumedByMatch(used[0], users[used[0].id]) if used else chosen(match, candidates, parameters)
        for role, parameter in enumerate(parameters):
            if parameter.selection != "EACH":
                candidates = keep_extreme(candidates, role, parameter.selection == "LAST")
        for m in candidates:
            users |= {c.id: m for c, p in took_part(m, parameters) if p.consumption == "CONSUME"}
    raise LookupError(f"the match at {match.vs} is not among the {len(matches)} matches")


def possible(pattern: Ordered, scope: ReferenceScope) -> list[Instance]:
    """All matches of an operator that order, scope and conditions allow."""
    named = (i.called(pattern.var) for i in pattern.candidates(scope))
    return [i for i in named if scope.allows(pattern, i)]


def completion(match: Instance) -> Any:
    return match.cbt[-1].order


def chosen(
    match: Instance, candidates: list[Instance], parameters: Sequence[ReferencePattern]
) -> Taken | RejectedBySelection:
    """Walk the parameters from left to right, as long as the match is among those that are left."""
    decisions: list[Decision] = []
    for role, parameter in enumerate(parameters):
        if parameter.selection == "EACH":
            continue
        left = keep_extreme(candidates, role, parameter.selection == "LAST")
        there = {c.id: c for m in candidates for c, p in took_part(m, parameters) if p is parameters[role]}
        if there:
            choices = tuple(sorted(there.values(), key=lambda i: i.order))
            decision = Decision(parameter, choices, choices[-1 if parameter.selection == "LAST" else 0])
            if match not in left:
                own = match.cbt[match.roles.index(role)]
                return RejectedBySelection(decision, own, next(m for m in left if role in m.roles))
            decisions.append(decision)
        candidates = left
    return Taken(tuple(decisions))
