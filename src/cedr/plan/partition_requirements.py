"""How the rows of each node of a plan should be partitioned: what each node requires, and what later nodes share.

A node states its own requirement (`cedr.plan.aspects.partitioning`); nodes without one pass on those of later nodes.
"""

from typing import NamedTuple

from cedr.plan.aspects.partitioning import Keys, columns_as_keys
from cedr.plan.broadcast import on_paths
from cedr.plan.node import Node, topological
from cedr.plan.nodes import Union

Partitioning = tuple[frozenset[str], ...] | None
"""How rows are partitioned: by the hash of some columns, each with all its current names, maybe none. (): they are all
in shard 0. None: in some other way, but all rows of one tuple are in one shard."""


class Demand(NamedTuple):
    """What a later node requires of the rows of a node: any of these keys; (): one shard."""

    keys: Keys
    node: Node


def carried(node: Node, parts: list[Partitioning]) -> Partitioning:
    """How the output of a node is partitioned, when its inputs are partitioned like this."""
    if node.partial and not all(part == () for part in parts):
        return None
    part = in_common(parts) if isinstance(node, Union) else parts[node.partitioned_ports[0]]
    names = node.passed_columns
    return part and tuple(frozenset(shown for shown, name in names.items() if name in column) for column in part)


def in_common(parts: list[Partitioning]) -> Partitioning:
    """The partitioning that several inputs have in common."""
    first = parts[0]
    for part in parts[1:]:
        if first is None or part is None or len(first) != len(part):
            return None
        first = tuple(one & two for one, two in zip(first, part, strict=True))
    return first


def chosen(part: Partitioning, names: Keys) -> Keys | None:
    """By which of these names rows are partitioned, if they are: one for each column of the hash."""
    if part is None:
        return None
    found = [next((name for name in names if name in column), None) for column in part]
    keys = tuple(name for name in found if name is not None)
    return keys if len(keys) == len(part) else None


# --- requirements of a whole plan ----------------------------------------------------------------------------------


class PartitionRequirements:
    """What later nodes require of every node of a plan, narrowed so that one partitioning serves many."""

    def __init__(self, plan: Node) -> None:
        order = topological(plan)
        self.demands: dict[int, Demand] = {}
        self._possible = possible_keys(order)
        for node in reversed(order):
            for input, demand in zip(node.partitioned_inputs, self._of_inputs(node), strict=True):
                if demand:
                    self._add(input, demand)

    def demand(self, node: Node) -> Demand | None:
        """What later nodes require of the rows of a node; None if they require nothing."""
        return self.demands.get(id(node))

    def keys(self, node: Node) -> list[Keys] | None:
        """The keys a node requires, as far as its inputs have them without moving rows and later nodes share them."""
        keys = keys_of(node)
        if not keys:
            return keys
        keys = usable(node, keys, self._possible) or keys
        demand = self.demand(node)
        below = node.passed_columns
        shared = [key for name in demand.keys for key in keys if key[0] == below.get(name)] if demand else []
        return shared or keys

    def _of_inputs(self, node: Node) -> list[Demand | None]:
        keys = self.keys(node)
        if keys is not None:
            return [Demand(tuple(key[i] for key in keys), node) for i in range(len(node.partitioned_ports))]
        demand = self.demand(node)
        if demand and demand.keys:
            below = node.passed_columns
            demand = demand._replace(keys=tuple(below[name] for name in demand.keys if name in below))
            demand = demand if demand.keys else None
        elif node.partial:
            demand = None
        return [demand] * len(node.inputs)

    def _add(self, node: Node, demand: Demand) -> None:
        known = self.demands.get(id(node))
        if known is None or not known.keys:
            self.demands[id(node)] = demand
            return
        both = tuple(name for name in known.keys if name in demand.keys)
        self.demands[id(node)] = known._replace(keys=both) if both else known


def keys_of(node: Node) -> list[Keys] | None:
    requirement = node.partition_requirement()
    return None if requirement is None else requirement.keys


def possible_keys(order: list[Node]) -> dict[int, set[str]]:
    """By which columns the rows of each node can be partitioned without moving them after the state below it."""
    possible: dict[int, set[str]] = {}
    paths = on_paths(order)
    for node in order:
        keys = keys_of(node)
        if id(node) in paths:  # what is computed on a path is there before rows are partitioned
            possible[id(node)] = {name for (name,) in columns_as_keys(node.schema, node.schema)}
        elif keys is not None:
            spread = {key[0] for key in usable(node, keys, possible) or keys}
            possible[id(node)] = {shown for shown, name in node.passed_columns.items() if name in spread}
        else:
            below = set.intersection(*(possible[id(i)] for i in node.inputs))
            possible[id(node)] = {shown for shown, name in node.passed_columns.items() if name in below}
    return possible


def usable(node: Node, keys: list[Keys], possible: dict[int, set[str]]) -> list[Keys]:
    """The keys by which all inputs can be partitioned."""
    inputs = node.partitioned_inputs
    return [key for key in keys if all(name in possible[id(i)] for name, i in zip(key, inputs, strict=True))]
