"""The properties of all nodes of a plan; each node derives its own from those of its inputs."""

from cedr.plan.aspects.properties import Properties
from cedr.plan.node import Node, topological


def properties(plan: Node) -> Properties:
    return all_properties(plan)[id(plan)]


def all_properties(plan: Node) -> dict[int, Properties]:
    """The properties of every node, by its identity."""
    known: dict[int, Properties] = {}
    for node in topological(plan):
        known[id(node)] = node.derive_properties(*(known[id(i)] for i in node.inputs))
    return known
