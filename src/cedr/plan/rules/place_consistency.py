"""Levels become Finalize and Align below the first operator with state of each path, and latencies of operators.

    with_consistency(agg(where(source)))  ->  agg(Align(block)(Finalize(remember)(where(source))))

Below the first state, because from there on order and promises matter; not lower, so that rows dropped on the way
never have to be held. Only counts of external CTIs must be checked before any row is dropped, so a source that has
them is finalised at once. A path without any state is treated at its top. Where levels are nested the outermost counts.

Operators with several inputs emit when one of them has progressed, and sessions begin in the past; so a query that
blocks for ever has another Align at its top, where the answer is not in order anyway. A sort waits by itself, and an
Align above it would put its rows in the order of time.

Where every path below an operator has an Align that waits for ever, rows come when they are settled, and an operator
must not take them for progress: those of one input may be far ahead of another.

Rows held by an Align are also released by promises about some of their columns. `by` names them: of the promises that
come so far, those that reach the end of the query through all operators above. Others would set rows free about which
nothing final can be emitted before the CTI comes.
"""

from dataclasses import replace
from typing import Literal, NamedTuple

from cedr.plan.aspects.promises import CTI
from cedr.plan.latency import Latency
from cedr.plan.node import Node, Work, topological
from cedr.plan.nodes import Align, Finalize, Level, Match, Project, Select, Sort, Source, Speculative
from cedr.plan.nodes.align import Flavour
from cedr.plan.properties import properties
from cedr.plan.rewrite import rebuilt
from cedr.plan.schemes import all_schemes, reaching
from cedr.temporal.consistency import MIDDLE, Consistency
from cedr.temporal.time import INF


class RequestedLevel(NamedTuple):
    consistency: Consistency | None = None
    latency: Latency | None = None
    flavour: Flavour | None = None
    written: Consistency | None = None
    """The level in the query, whatever level it was moved to while it runs."""

    def below(self, level: Level) -> "RequestedLevel":
        """What counts below a level: its settings where none are above."""
        return RequestedLevel(
            self.consistency or level.consistency,
            self.latency or level.latency,
            self.flavour or level.flavour,
            self.written or (None if level.moved else level.consistency),
        )


def place_consistency(plan: Node) -> Node:
    """Applies once: a query's plan starts with a `Level`, and none is left."""
    if not isinstance(plan, Level):
        return plan
    placed = released_by_promises(waiting(LevelPlacement(plan).place(plan, RequestedLevel())))
    requested = requested_at_top(plan)
    waits = requested.consistency is not None and requested.consistency.block == INF
    if not waits or properties(placed).ordered or sorted_by_value(placed):
        return placed
    return released_by_promises(Align(placed, INF, requested.flavour or "ordered"))


def waiting(plan: Node) -> Node:
    """The plan with every operator knowing whether its rows are settled when they come."""
    settled: dict[int, bool] = {}
    done: dict[int, Node] = {}
    for node in topological(plan):
        below = bool(node.inputs) and all(settled[id(i)] for i in node.inputs)
        settled[id(node)] = below or (isinstance(node, Align) and node.block == INF)
        new = rebuilt(node, done)
        done[id(node)] = replace(new, waits=True) if below and isinstance(new, Speculative) else new
    return done[id(plan)]


def released_by_promises(plan: Node) -> Node:
    """The plan with every Align knowing the promises it may release rows by."""
    arriving, reached = all_schemes(plan), reaching(plan)
    done: dict[int, Node] = {}
    for node in topological(plan):
        new = rebuilt(node, done)
        if isinstance(node, Align) and isinstance(new, Align):
            schemes = arriving[id(node.input)].keys() & reached[id(node)] - {CTI}
            new = replace(new, by=tuple(sorted(schemes))) if schemes != set(new.by) else new
        done[id(node)] = new
    return done[id(plan)]


def sorted_by_value(plan: Node) -> bool:
    """Whether the answer leaves in the order of a sort."""
    while isinstance(plan, Select | Project):
        plan = plan.input
    return isinstance(plan, Sort)


def requested_at_top(plan: Node) -> RequestedLevel:
    requested = RequestedLevel()
    while isinstance(plan, Level):
        requested, plan = requested.below(plan), plan.input
    return requested


class LevelPlacement:
    def __init__(self, plan: Node) -> None:
        self.keeps_state: dict[int, bool] = {}
        for node in topological(plan):
            below = any(self.keeps_state[id(i)] for i in node.inputs)
            self.keeps_state[id(node)] = below or node.work is Work.STATEFUL
        self.placed: dict[tuple[int, RequestedLevel, bool], Node] = {}

    def place(self, node: Node, requested: RequestedLevel, covered: bool = False) -> Node:
        """`covered`: a Finalize and Align are above already. Shared nodes stay shared where they get the same level."""
        key = (id(node), requested, covered)
        if key not in self.placed:
            self.placed[key] = self._place(node, requested, covered)
        return self.placed[key]

    def _place(self, node: Node, requested: RequestedLevel, covered: bool) -> Node:
        if isinstance(node, Level):
            return self.place(node.input, requested.below(node), covered)
        if not self.keeps_state[id(node)] and not covered:
            return self._cover(node, requested)
        if isinstance(node, Speculative) and node.latency is None:
            node = replace(node, latency=requested.latency or usual_latency(node, requested))
        inputs = [self.place(i, requested, covered) for i in node.inputs]
        if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
            node = node.with_inputs(*inputs)
        if isinstance(node, Source) and node.external:
            return Finalize(node, (requested.consistency or MIDDLE).remember, node.late)
        return node

    def _cover(self, node: Node, requested: RequestedLevel) -> Node:
        inner = innermost(node, requested)
        level = inner.consistency or MIDDLE
        raises = any(isinstance(n, Source) and n.late == "raise" for n in topological(node))
        placed = self.place(node, requested, covered=True)
        finalized = finalize_below_align(placed, level.remember, "raise" if raises else "collect")
        return Align(finalized, level.block, inner.flavour or "ordered")


def usual_latency(node: Speculative, requested: RequestedLevel) -> Latency:
    """How early an operator emits if the query does not set it. A pattern of a query that never blocks answers at once.

    It does not change while the query runs, whatever level it is moved to: operators go on with the state they have.
    """
    return "eager" if isinstance(node, Match) and (requested.written or MIDDLE).block == 0 else "perfect"


def finalize_below_align(node: Node, remember: int, late: Literal["collect", "raise"]) -> Node:
    """An Align the user wrote relies on valid rows too."""
    if isinstance(node, Align):
        return node.with_inputs(finalize_below_align(node.input, remember, late))
    return Finalize(node, remember, late)


def innermost(node: Node, requested: RequestedLevel) -> RequestedLevel:
    """What counts for a path without state: the levels written inside it included."""
    for n in reversed(topological(node)):
        if isinstance(n, Level):
            requested = requested.below(n)
    return requested
