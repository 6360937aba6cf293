"""A loop as a node: `seed.iterate(lambda loop: ...)`.

What the body takes from outside becomes an input of the node, whatever it is made of; only what depends on the loop is
in it. There, operators must be *speculation friendly* (FFP, 3.3): speak without waiting, never move rows back in time,
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

from cedr.operators.aggregates import Max, Min
from cedr.operators.iterate.body import LOOP, outside
from cedr.operators.iterate.ffp import PROGRESS
from cedr.operators.iterate.selection import Selection
from cedr.operators.iterate.settings import Settings
from cedr.plan.node import Node, Speculative, topological
from cedr.plan.nodes.aggregate import Aggregate
from cedr.plan.nodes.align import Align
from cedr.plan.nodes.clip import Clip
from cedr.plan.nodes.finalize import Finalize
from cedr.plan.nodes.iterate import Iterate
from cedr.plan.nodes.join import Join
from cedr.plan.nodes.level import Level
from cedr.plan.nodes.lifetimes import Lifetime
from cedr.plan.nodes.lookup import Lookup
from cedr.plan.nodes.match import Match
from cedr.plan.nodes.merge import Merge
from cedr.plan.nodes.project import Output, Project, keep, renamed
from cedr.plan.nodes.select import Select
from cedr.plan.nodes.session import Session
from cedr.plan.nodes.sets import Coalesce, Difference, Distinct, Intersect
from cedr.plan.nodes.sort import Sort
from cedr.plan.nodes.source import Source
from cedr.plan.nodes.top_k import TopK
from cedr.plan.nodes.union import Union, check_same_columns
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


def chosen(end: Node) -> tuple[Node, Selection | None]:
    """What the body ends with says which rows are held; the rest of the body is below it."""
    while isinstance(end, Distinct | Coalesce):
        end = end.input
    if isinstance(end, Project) and isinstance(end.input, Aggregate) and only_renames(end):
        below, selection = chosen(end.input)
        names = {inner: shown for shown, inner in renamed(end).items()}
        return Project(below, end.outputs), selection and selection.called(names)
    if isinstance(end, Aggregate) and all(isinstance(a, Min | Max) for _, a in end.aggregates):
        if len(end.aggregates) > 1:
            raise QueryError(
                f"iterate: {shown(end)} at the end of a loop has {len(end.aggregates)} aggregates; the best row of a "
                "group is the best by one: use one min or max, or top_k(1, by=...), which keeps whole rows"
            )
        ((name, aggregate),) = end.aggregates
        columns = (*keep(end.by), Output((name,), pl.col(aggregate.column).alias(name)))
        best = Selection(end.by, (name,), (isinstance(aggregate, Max),))
        return Project(end.input, columns), best
    if isinstance(end, TopK) and end.k == 1 and end.rank is None:
        return end.input, Selection(end.by, end.order, end.descending)
    return end, None


def only_renames(node: Project) -> bool:
    """Whether all columns of the input are there, once each."""
    passed = renamed(node)
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
        problem = refusal(node, [self._depends(i) for i in node.inputs])
        if problem:
            raise QueryError(f"iterate: {shown(node)} cannot stand in a loop: {problem}")
        new = node.with_inputs(*(self.of(i) for i in node.inputs))
        return replace(new, latency="eager") if isinstance(new, Speculative) else new


# --- what may be in a loop -----------------------------------------------------------------------------------------

MOVES = "it moves lifetimes, so a row could be derived before what it comes from; use it on the inputs, before the loop"
WAITS = "it waits until the loop is done, and the loop waits for it; use it after the loop"
HIDES = "it tells a row once however often it is derived, so that rows which derive each other would never go away"

REFUSALS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    ((Lifetime, Session, Clip), MOVES),
    ((Align, Finalize, Level, Sort), WAITS),
    (Merge, f"{HIDES}; use union"),
    (Intersect, f"{HIDES}; use a join on all columns"),
    (
        Difference,
        "more in the loop must never mean less out of it, and copies do not count there; "
        'use difference(other, by=...) or join(how="anti") with a stream from outside on the right',
    ),
    (Match, "a pattern moves lifetimes and may forbid events; use it before or after the loop"),
    (
        TopK,
        "top_k(1, ...) may end a body, where it says which rows the loop holds; else more in the loop could mean "
        "less out of it",
    ),
    (
        Iterate,
        f"{HIDES}; derive both in one loop, with a column that tells them apart, or let it read other streams only",
    ),
)


def refusal(node: Node, of_loop: list[bool]) -> str | None:
    """Why a node may not be in a loop; `of_loop` says which inputs depend on it."""
    if isinstance(node, Select | Project | Union | Lookup):
        return None
    if isinstance(node, Join):
        return refused_join(node, of_loop)
    if isinstance(node, Aggregate):
        return refused_aggregate(node)
    return next((why for kind, why in REFUSALS if isinstance(node, kind)), "it is not known to be monotone")


def refused_join(node: Join, of_loop: list[bool]) -> str | None:
    if node.how == "inner" or (node.how in ("left", "semi", "anti") and of_loop == [True, False]):
        return None
    if node.how == "semi":
        return f"{HIDES}; use an inner join and select"
    return "more in the loop must never mean less out of it; only the left side may come from the loop"


def refused_aggregate(node: Aggregate) -> str:
    if all(isinstance(a, Min | Max) for _, a in node.aggregates):
        return "it may end a body, where it says which rows the loop holds; else rows would be told and taken back"
    return "its value changes when the loop holds more; only min or max may be in a loop, at the end of the body"


def shown(node: Node) -> str:
    from cedr.plan.explain import line

    return line(node)
