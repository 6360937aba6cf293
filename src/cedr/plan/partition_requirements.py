"""Which columns rows must have in common to be in the same shard: what each node wishes, and what becomes of it.

A node that lets rows meet names the columns they meet by. A column that two inputs have in common has a name in each,
so a wish is a list of names by input, the first of which is the name in the output, too (but for patterns, whose
outputs are named by the user):

    group_by("a", "b")                       [("a",), ("b",)]
    join(left_on="a", right_on="x")          [("a", "x")]
    agg() of all rows, join without keys     []                  all rows must be in one shard
    where, select, windows, union, align     None                nothing; here wishes of later nodes pass

Any part of a wish that is not empty will do. Rows that are apart by `a` are apart by `a, b` as well. Inputs that every
shard gets whole (`everywhere`) have no part in a wish.
"""

from collections.abc import Iterable
from functools import singledispatch
from typing import NamedTuple

from cedr.columnar.sharding import can_be_key
from cedr.plan.everywhere import on_paths, spread_inputs, spread_ports
from cedr.plan.loop_keys import loop_keys
from cedr.plan.node import Node, topological
from cedr.plan.nodes import (
    Aggregate,
    Automaton,
    Clip,
    Coalesce,
    Difference,
    Distinct,
    Fused,
    Intersect,
    Iterate,
    Join,
    Match,
    Merge,
    MergeBy,
    PartialAggregate,
    PartialTopK,
    Places,
    Project,
    Reach,
    Session,
    Sort,
    TopK,
    Union,
)
from cedr.plan.nodes.project import renamed

Keys = tuple[str, ...]
Wish = list[Keys]

Part = tuple[frozenset[str], ...] | None
"""How rows are spread: by the hash of some columns, each with all the names it has by now, maybe none. (): they are all
in shard 0. None: in some other way, but what is said about one tuple is said in one shard."""


class Demand(NamedTuple):
    """What later nodes wish of the rows of a node: some of these keys; (): one shard."""

    keys: Keys
    wisher: Node


@singledispatch
def wish(node: Node) -> Wish | None:
    """By which columns the rows of a node meet."""
    return None


@wish.register(PartialAggregate)
@wish.register(PartialTopK)
def _(node: Node) -> None:
    return None


@wish.register(Aggregate)
@wish.register(TopK)
@wish.register(Session)
def _(node: Aggregate | TopK | Session) -> Wish:
    return [(name,) for name in keys_among(node.by, node.input)]


@wish.register
def _(node: Sort) -> Wish:
    return []


@wish.register
def _(node: Iterate) -> Wish:
    return loop_keys(node).keys


@wish.register
def _(node: Reach) -> Wish:
    return [(name,) for name in keys_among([node.node], node.right)]


@wish.register(Distinct)
@wish.register(Coalesce)
@wish.register(Difference)
@wish.register(Intersect)
@wish.register(Merge)
@wish.register(MergeBy)
def _(node: Node) -> Wish:
    return [(name,) * len(node.inputs) for name in keys_among(node.schema, node)]


@wish.register(Join)
@wish.register(Clip)
def _(node: Join | Clip) -> Wish:
    possible = set(keys_among(node.left_on, node.left))
    return [pair for pair in zip(node.left_on, node.right_on, strict=True) if pair[0] in possible]


@wish.register
def _(node: Automaton) -> Wish:
    return [(name,) for name in keys_among(node.by, node.events)]


@wish.register
def _(node: Places) -> Wish:
    return [(name,) for name in keys_among(node.by, node.input)]


@wish.register
def _(node: Match) -> Wish:
    by_port = node.keys_by_port or [() for _ in node.members]
    kinds = node.members[0].schema
    return [key for key in zip(*by_port, strict=True) if can_be_key(kinds[key[0]])]


def keys_among(names: Iterable[str], node: Node) -> list[str]:
    return [name for name in names if can_be_key(node.schema[name])]


# --- names on their way through a node -----------------------------------------------------------------------------


def passed(node: Node) -> dict[str, str]:
    """The columns that pass a node unchanged: their names in the output, and in the input(s)."""
    if isinstance(node, PartialAggregate | PartialTopK):
        return {}
    if isinstance(node, Project):
        return renamed(node)
    if isinstance(node, Fused):
        names = {name: name for name in node.schema}
        for step in reversed(node.steps):
            below = passed(step)
            names = {shown: below[name] for shown, name in names.items() if name in below}
        return names
    if isinstance(node, Match):
        return node.shown_keys
    if isinstance(node, Reach):
        return {node.start: node.node}
    kept = node.schema if (keys := wish(node)) is None else [key[0] for key in keys]
    return {name: name for name in kept}


def carried(node: Node, parts: list[Part]) -> Part:
    """How the output of a node is spread, when its inputs are spread like this."""
    if not all(part == () for part in parts) and isinstance(node, PartialAggregate | PartialTopK):
        return None
    part = in_common(parts) if isinstance(node, Union) else parts[spread_ports(node)[0]]
    names = passed(node)
    return part and tuple(frozenset(shown for shown, name in names.items() if name in column) for column in part)


def in_common(parts: list[Part]) -> Part:
    """Rows that are spread in several ways, seen together."""
    first = parts[0]
    for part in parts[1:]:
        if first is None or part is None or len(first) != len(part):
            return None
        first = tuple(one & two for one, two in zip(first, part, strict=True))
    return first


def chosen(part: Part, names: Keys) -> Keys | None:
    """By which of these names rows are spread, if they are: one for each column of the hash."""
    if part is None:
        return None
    found = [next((name for name in names if name in column), None) for column in part]
    keys = tuple(name for name in found if name is not None)
    return keys if len(keys) == len(part) else None


# --- wishes of a whole plan ----------------------------------------------------------------------------------------


class PartitionRequirements:
    """What every node of a plan is asked for by those above it, narrowed so that one way of spreading serves many."""

    def __init__(self, plan: Node) -> None:
        order = topological(plan)
        self.demands: dict[int, Demand] = {}
        self._possible = possible_keys(order)
        for node in reversed(order):
            for input, asked in zip(spread_inputs(node), self._of_inputs(node), strict=True):
                if asked:
                    self._ask(input, asked)

    def demand(self, node: Node) -> Demand | None:
        """What is asked of the rows of a node; None when nobody asks."""
        return self.demands.get(id(node))

    def wish(self, node: Node) -> Wish | None:
        """The node's own wish, as far as its inputs can fulfil it without moving rows and later nodes share it."""
        keys = wish(node)
        if not keys:
            return keys
        keys = usable(node, keys, self._possible) or keys
        demand = self.demand(node)
        below = passed(node)
        shared = [key for name in demand.keys for key in keys if key[0] == below.get(name)] if demand else []
        return shared or keys

    def _of_inputs(self, node: Node) -> list[Demand | None]:
        keys = self.wish(node)
        if keys is not None:
            return [Demand(tuple(key[i] for key in keys), node) for i in range(len(spread_ports(node)))]
        demand = self.demand(node)
        if demand and demand.keys:
            below = passed(node)
            demand = demand._replace(keys=tuple(below[name] for name in demand.keys if name in below))
            demand = demand if demand.keys else None
        elif isinstance(node, PartialAggregate | PartialTopK):
            demand = None
        return [demand] * len(node.inputs)

    def _ask(self, node: Node, asked: Demand) -> None:
        known = self.demands.get(id(node))
        if known is None or not known.keys:
            self.demands[id(node)] = asked
            return
        both = tuple(name for name in known.keys if name in asked.keys)
        self.demands[id(node)] = known._replace(keys=both) if both else known


def possible_keys(order: list[Node]) -> dict[int, set[str]]:
    """By which columns the rows of each node can be spread without moving them after the state below it."""
    possible: dict[int, set[str]] = {}
    paths = on_paths(order)
    for node in order:
        keys = wish(node)
        if id(node) in paths:  # what is computed on a path is there before rows are spread
            possible[id(node)] = set(keys_among(node.schema, node))
        elif keys is not None:
            spread = {key[0] for key in usable(node, keys, possible) or keys}
            possible[id(node)] = {shown for shown, name in passed(node).items() if name in spread}
        else:
            below = set.intersection(*(possible[id(i)] for i in node.inputs))
            possible[id(node)] = {shown for shown, name in passed(node).items() if name in below}
    return possible


def usable(node: Node, keys: Wish, possible: dict[int, set[str]]) -> Wish:
    """The keys of a wish by which all inputs can be spread."""
    inputs = spread_inputs(node)
    return [key for key in keys if all(name in possible[id(i)] for name, i in zip(key, inputs, strict=True))]
