"""How a rule walks a plan: bottom-up, each node once, shared nodes staying shared."""

from collections import Counter
from collections.abc import Callable

from cedr.plan.node import Node, topological

Shared = Callable[[Node], bool]
"""Whether a node has several users."""

Change = Callable[[Node, Shared], Node | None]
"""Given a node whose inputs are done: what replaces it, or None."""


def rewrite(plan: Node, change: Change) -> Node:
    """The plan with `change` tried on every node; the same object when nothing changed.

    A rule that moves work below an input must ask whether that input is shared: the other users want it as it is.
    """
    order = topological(plan)
    users = Counter(id(i) for node in order for i in node.inputs)
    done: dict[int, Node] = {}
    shared: dict[int, Node] = {}
    for node in order:
        new = rebuilt(node, done)
        result = change(new, lambda n: id(n) in shared) or new
        done[id(node)] = result
        if users[id(node)] > 1:
            shared[id(result)] = result
    return done[id(plan)]


def rebuilt(node: Node, done: dict[int, Node]) -> Node:
    """The node above the new versions of its inputs."""
    inputs = [done[id(i)] for i in node.inputs]
    if all(new is old for new, old in zip(inputs, node.inputs, strict=True)):
        return node
    return node.with_inputs(*inputs)
