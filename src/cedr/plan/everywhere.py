"""Inputs that every shard gets whole: what a node reads beside the rows by which it is spread.

    loop spread by a column of its seed     what its body reads beside
    settled reachability, by source         the edges
    automaton, by key                       a table of transitions that changes

Operators that check and wait, and those without state, then run in every shard over the same rows. Others may want
their rows spread, so each such input gets operators of its own.
"""

from collections.abc import Iterable

from cedr.plan.loop_keys import loop_keys
from cedr.plan.node import Node, topological
from cedr.plan.nodes import Align, Automaton, Finalize, Fused, Guard, Iterate, Lifetime, Project, Reach, Select, Union
from cedr.plan.nodes.source import Source
from cedr.plan.rewrite import Shared, rewrite

STATELESS = (Select, Project, Fused, Lifetime)
"""Nodes that look at one row at a time and keep nothing."""
IN_ANY_SHARD = (*STATELESS, Align, Finalize, Guard, Union)


def spread_ports(node: Node) -> tuple[int, ...]:
    """The inputs whose rows are spread; every shard gets the others whole."""
    if isinstance(node, Iterate):
        return loop_keys(node).ports
    if isinstance(node, Reach):
        return (1,)
    return (0,) if isinstance(node, Automaton) else tuple(range(len(node.inputs)))


def spread_inputs(node: Node) -> list[Node]:
    return [node.inputs[port] for port in spread_ports(node)]


def broadcast_inputs(node: Node) -> list[Node]:
    ports = spread_ports(node)
    return [i for port, i in enumerate(node.inputs) if port not in ports]


def on_paths(order: Iterable[Node]) -> set[int]:
    """Sources, and the nodes without state that follow one on its way to the first stage."""
    found: set[int] = set()
    for node in order:
        if isinstance(node, Source) or (isinstance(node, STATELESS) and id(node.input) in found):
            found.add(id(node))
    return found


def with_own_inputs(plan: Node) -> Node:
    """The plan with nodes of their own between paths, or state, and inputs that every shard gets."""

    def change(node: Node, shared: Shared) -> Node | None:
        whole = broadcast_inputs(node)
        if not whole:
            return None
        below = [n for i in whole for n in between(i)]
        done: dict[int, Node] = {}
        for n in below:
            done[id(n)] = n.with_inputs(*(done.get(id(i), i) for i in n.inputs))
        ports = spread_ports(node)
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
        if isinstance(node, IN_ANY_SHARD) and id(node) not in paths:
            found[id(node)] = node
            waiting += node.inputs
    return [node for node in order if id(node) in found]
