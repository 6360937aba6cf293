"""`why_not`: what prevents events that the user has in mind from being a match."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import polars as pl

from cedr.columnar.chunk import VS
from cedr.columnar.tally import VE
from cedr.lineage import reasons
from cedr.lineage.definition import TracedEventType
from cedr.lineage.diagnosis import Diagnosis, Named, counting
from cedr.lineage.missing import described, no_such_event, nothing_near
from cedr.lineage.nearby import IDS, Nearby
from cedr.lineage.observed import LINEAGE, OWN, observe
from cedr.lineage.reason_text import reason_lines
from cedr.lineage.reasons import Reason
from cedr.lineage.rendering import Renderer
from cedr.lineage.why import Why, explained
from cedr.plan.node import Node
from cedr.reference.patterns.instance import Instance
from cedr.reference.patterns.pattern import ReferencePattern, ReferenceScope
from cedr.temporal.errors import CedrError, QueryError

MOST = 50
"""Maximum number of events that may fit the description of a variable."""

Events = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class WhyNot:
    """Why there is no match; prints as text. If there is one after all, `match` is its `Why`, without reasons."""

    reasons: tuple[Reason, ...]
    match: Why | None
    text: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def why_not(plan: Node, data: Any, events: Events) -> WhyNot:
    """Why the events described, by variable, are in no match of the answer to the data."""
    observed = observe(plan, data)
    nearby = Nearby(observed)
    leaves = {x: leaf_named(x, nearby) for x in events}
    if not leaves:
        raise QueryError('why_not: name an event you have in mind, such as why_not(data, x={"Machine_Id": "web1"})')
    found = {x: nearby.instances(leaf, described(leaf, events[x], nearby)) for x, leaf in leaves.items()}
    absent = [no_such_event(leaf, events[x], nearby) for x, leaf in leaves.items() if not found[x]]
    if absent:
        inputs = {r.leaf.kind: [r.nearest] for r in absent if r.nearest}
        return answered(absent, Renderer(nearby, ReferenceScope(inputs, ids=IDS)))
    for x, instances in found.items():
        check_few(x, instances, leaves[x])
    named = {x: frozenset(i.id for i in instances) for x, instances in found.items()}
    scope = nearby.scope((leaf, i) for x, leaf in leaves.items() for i in found[x])
    render = Renderer(nearby, scope)
    if (rows := containing(observed.answer, named, nearby.pattern)).height:
        match = explained(observed, rows)
        return WhyNot((), match, f"there is a match with these events\n{match}")
    if (rows := containing(observed.matches, named, nearby.pattern)).height:
        return answered([reasons.LeftOut(rows[VS][0], rows[VE][0])], render)
    return answered([diagnosed(nearby, scope, named)], render)


def diagnosed(nearby: Nearby, scope: ReferenceScope, named: Named) -> Reason:
    reason = Diagnosis(nearby.pattern, scope, named).reason(nearby.pattern)
    if reason is None:
        raise CedrError(
            "these events are a match by the definitions of cedr.reference.patterns, but not in the answer; the "
            "operator and its definition disagree, which is a mistake in cedr: please report it with query and data"
        )
    return nothing_near(reason, scope, named, nearby) if isinstance(reason, reasons.NothingNear) else reason


def answered(found: list[Any], render: Renderer) -> WhyNot:
    nearest = [(r.leaf.kind, r.nearest) for r in found if isinstance(r, reasons.NothingNear) and r.nearest]
    inputs = {**render.scope.inputs, **{kind: [i] for kind, i in nearest}}
    render = replace(render, scope=replace(render.scope, inputs=inputs))
    lines = [line for reason in found for line in reason_lines(reason, render)]
    return WhyNot(tuple(found), None, "\n".join(["no match, because", *(f"  {line}" for line in lines)]))


def containing(matches: pl.DataFrame, named: Named, pattern: ReferencePattern) -> pl.DataFrame:
    """The matches in which each variable is one of these events."""
    counted = {p.var for whole in counting(pattern) for p, _ in whole.walk()}
    for x, ids in named.items():
        expected = pl.lit(list(ids), pl.List(pl.Int64))
        if x in counted:
            of_events = pl.col(LINEAGE).list.eval(pl.element().struct.field("id"))
            matches = matches.filter(of_events.list.set_intersection(expected).list.len() > 0)
        else:
            matches = matches.filter(pl.col(OWN + x).is_in(list(ids)))
    return matches


# --- invalid descriptions ------------------------------------------------------------------------------------------


def leaf_named(variable: str, nearby: Nearby) -> TracedEventType:
    """The event type of a variable that can be in a match."""
    inside = list(taking_part(nearby.pattern))
    variables = {p.var: p for p in inside if p.var and isinstance(p, TracedEventType)}
    if variable in variables:
        return variables[variable]
    if any(p.var == variable for p in inside):
        raise QueryError(f"why_not: {variable} is an operator; name events in it: {', '.join(variables)}")
    if any(p.var == variable for p, _ in nearby.pattern.walk()):
        raise QueryError(
            f"why_not: {variable} is negated, so no match has it; name the events that should have made the match: "
            f"{', '.join(variables)}"
        )
    near = get_close_matches(variable, variables, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise QueryError(f"why_not: there is no variable {variable}{hint} (variables: {', '.join(variables) or 'none'})")


def taking_part(pattern: ReferencePattern) -> list[ReferencePattern]:
    return [pattern, *(inner for p in (*pattern.positive, *pattern.counted) for inner in taking_part(p))]


def check_few(variable: str, instances: list[Instance], leaf: TracedEventType) -> None:
    if len(instances) > MOST:
        raise QueryError(
            f"why_not: the description of {variable} fits {len(instances)} events of type {leaf}, more than "
            f"{MOST}; add a column or its start: {variable}={{..., 'vs': ...}}"
        )
