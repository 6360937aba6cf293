"""Broadcast inputs: inputs of which every shard gets all rows, next to those that are partitioned.

    loop partitioned by a column of its seed     what its body reads from outside
    settled reachability, by source              the edges
    automaton, by key                            a table of transitions that changes

Operators that check and wait, and those without state, then run in every shard over the same rows. Others may require
their rows partitioned, so each such input gets operators of its own.
"""

from collections.abc import Iterable

from cedr.plan.node import Node, Work, topological
from cedr.plan.nodes import Source
from cedr.plan.rewrite import Shared, rewrite

STATELESS = (Work.FUSIBLE, Work.ROW_BY_ROW)
IN_ANY_SHARD = (*STATELESS, Work.ANY_SHARD)


def on_paths(order: Iterable[Node]) -> set[int]:
    """Sources, and the nodes without state between a source and the first stage."""
    found: set[int] = set()
    for node in order:
        if isinstance(node, Source) or (node.work in STATELESS and id(node.inputs[0]) in found):
            found.add(id(node))
    return found


def with_own_inputs(plan: Node) -> Node:
    """The plan in which broadcast inputs share no nodes above paths or state with the rest."""

    def change(node: Node, shared: Shared) -> Node | None:
        whole = node.broadcast_inputs
        if not whole:
            return None
        below = [n for i in whole for n in between(i)]
        done: dict[int, Node] = {}
        for n in below:
            done[id(n)] = n.with_inputs(*(done.get(id(i), i) for i in n.inputs))
        ports = node.partitioned_ports
        return node.with_inputs(*(i if p in ports else done.get(id(i), i) for p, i in enumerate(node.inputs)))

    return rewrite(plan, change)


def between(input: Node) -> list[Node]:
    """The nodes that run in every shard with an input, from the bottom up."""
    order = topological(input)
    paths = on_paths(order)
    found: dict[int, Node] = {}
    waiting = [input]
    while waiting:
        node = waiting.pop()
        if node.work in IN_ANY_SHARD and id(node) not in paths:
            found[id(node)] = node
            waiting += node.inputs
    return [node for node in order if id(node) in found]
