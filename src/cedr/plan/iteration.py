"""A loop as a node: `seed.iterate(lambda loop: ...)`.

What the body takes from outside becomes an input of the node, whatever it is made of; only what depends on the loop is
in it. There, operators must be *speculation friendly* (FFP, 3.3): emit without waiting, never move rows back in time,
and derive no less when the loop holds more. And they must let every derivation through, or a row that came from two
would not be withdrawn when one goes; so `distinct` in the body is left out: what a loop holds is a set anyway.

    where, select, union                          yes
    join                                          inner; left, semi and anti if only the left side is from the loop
    distinct, coalesce                            needless, left out
    group_by(..).agg(x=min or max), top_k(1)      at the end: of each group the loop holds the best row only
    windows, sessions, clip, patterns, sort, ..   refused: they move lifetimes, or wait
    difference, intersect, other aggregates       refused: not monotone, or they hide derivations
"""

from dataclasses import replace

import polars as pl

from cedr.plan.aggregates import Max, Min
from cedr.plan.loop import LOOP, PROGRESS, LoopSelection, Settings, outside
from cedr.plan.node import Node, Speculative, topological
from cedr.plan.nodes.aggregate import Aggregate
from cedr.plan.nodes.iterate import Iterate
from cedr.plan.nodes.project import Output, Project, keep
from cedr.plan.nodes.sets import Coalesce, Distinct
from cedr.plan.nodes.source import Source
from cedr.plan.nodes.top_k import TopK
from cedr.plan.nodes.union import check_same_columns
from cedr.temporal.errors import QueryError


def loop_of(seed: Node) -> Source:
    """What the body gets to work with."""
    return Source(LOOP, tuple(seed.schema.items()))


def iterate(seed: Node, loop: Source, end: Node, settings: Settings) -> Iterate:
    """The loop over `seed` whose body goes from `loop` to `end`."""
    settings = checked(settings)
    order = topological(end)
    if loop not in order:
        raise QueryError("iterate: the body does not use the loop it was given; without it, union is enough")
    inside = within(order, loop)
    end, selection = chosen(end)
    check_same_columns("iterate: the seed (left) and what the body derives (right)", seed.schema, end.schema)
    members: list[Node] = [seed]
    body = Rebuilding(inside, members).of(end)
    if list(body.schema) != list(seed.schema):
        body = Project(body, tuple(keep(list(seed.schema))))
    return Iterate(tuple(members), body, replace(settings, selection=selection))


def checked(settings: Settings) -> Settings:
    if settings.progress not in PROGRESS:
        raise QueryError(f"iterate(progress={settings.progress!r}): it is one of {', '.join(map(repr, PROGRESS))}")
    for name in ("max_iterations", "iterations_per_chunk"):
        value = getattr(settings, name)
        if not isinstance(value, int) or value < 1:
            raise QueryError(f"iterate({name}={value!r}): it must be a whole number, at least 1")
    return settings


def within(order: list[Node], loop: Source) -> set[int]:
    """The nodes that depend on the loop."""
    inside = {id(loop)}
    for node in order:
        if any(id(i) in inside for i in node.inputs):
            inside.add(id(node))
    return inside


def chosen(end: Node) -> tuple[Node, LoopSelection | None]:
    """The end of the body selects the rows that are held; the rest of the body is below it."""
    while isinstance(end, Distinct | Coalesce):
        end = end.input
    if isinstance(end, Project) and isinstance(end.input, Aggregate) and only_renames(end):
        below, selection = chosen(end.input)
        names = {inner: shown for shown, inner in end.passed_columns.items()}
        return Project(below, end.outputs), selection and selection.called(names)
    if isinstance(end, Aggregate) and all(isinstance(a, Min | Max) for _, a in end.aggregates):
        if len(end.aggregates) > 1:
            raise QueryError(
                f"iterate: {end.describe()} at the end of a loop has {len(end.aggregates)} aggregates; the best row of "
                "a group is the best by one: use one min or max, or top_k(1, by=...), which keeps whole rows"
            )
        ((name, aggregate),) = end.aggregates
        columns = (*keep(end.by), Output((name,), pl.col(aggregate.column).alias(name)))
        best = LoopSelection(end.by, (name,), (isinstance(aggregate, Max),))
        return Project(end.input, columns), best
    if isinstance(end, TopK) and end.k == 1 and end.rank is None:
        return end.input, LoopSelection(end.by, end.order, end.descending)
    return end, None


def only_renames(node: Project) -> bool:
    """Whether all columns of the input are there, once each."""
    passed = node.passed_columns
    return len(passed) == len(node.outputs) and sorted(passed.values()) == sorted(node.input.schema)


class Rebuilding:
    """The body above sources, one for each thing from outside, which become members."""

    def __init__(self, inside: set[int], members: list[Node]) -> None:
        self.inside, self.members = inside, members
        self.outside: dict[int, Node] = {}
        self.done: dict[int, Node] = {}

    def of(self, node: Node) -> Node:
        if id(node) not in self.done:
            self.done[id(node)] = self._build(node) if self._depends(node) else self._enter(node)
        return self.done[id(node)]

    def _depends(self, node: Node) -> bool:
        return id(node) in self.inside or any(self._depends(i) for i in node.inputs)

    def _enter(self, node: Node) -> Node:
        self.members.append(node)
        return Source(outside(len(self.members) - 1), tuple(node.schema.items()))

    def _build(self, node: Node) -> Node:
        if not node.inputs:
            return node
        if isinstance(node, Distinct | Coalesce):
            return self.of(node.input)
        problem = node.loop_refusal([self._depends(i) for i in node.inputs])
        if problem:
            raise QueryError(f"iterate: {node.describe()} cannot be used in a loop: {problem}")
        new = node.with_inputs(*(self.of(i) for i in node.inputs))
        return replace(new, latency="eager") if isinstance(new, Speculative) else new
