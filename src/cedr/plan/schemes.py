"""About which columns promises can come, for all nodes of a plan; each node derives it from its inputs."""

from collections.abc import Mapping

from cedr.plan.aspects.promises import Names, Schemes
from cedr.plan.node import Node, topological


def all_schemes(plan: Node) -> dict[int, Schemes]:
    """The schemes of every node, by its identity."""
    known: dict[int, Schemes] = {}
    for node in topological(plan):
        known[id(node)] = node.derive_schemes(*(known[id(i)] for i in node.inputs))
    return known


def reaching(plan: Node) -> dict[int, set[Names]]:
    """Of every node the schemes whose promises reach the end of the plan, on every path that leads there."""
    known = all_schemes(plan)
    found = {id(plan): set(known[id(plan)])}
    for node in reversed(topological(plan)):
        for port, input in enumerate(node.inputs):
            passing = {names for names in known[id(input)] if image(node, port, names, known).keys() & found[id(node)]}
            found[id(input)] = passing & found.get(id(input), passing)
    return found


def image(node: Node, port: int, names: Names, known: Mapping[int, Schemes]) -> Schemes:
    """What one scheme of an input becomes, when the other inputs promise what they can."""
    inputs = [known[id(i)] for i in node.inputs]
    inputs[port] = {names: inputs[port][names]}
    return node.derive_schemes(*inputs)


def settling(plan: Node) -> dict[int, set[str]]:
    """Of every node the columns about which promises would reach the end of the plan, if they came."""
    found = {id(plan): set(plan.schema)}
    for node in reversed(topological(plan)):
        wanted = {inner for out, inner in node.promised_columns.items() if out in found[id(node)]}
        for input, names in zip(node.inputs, node.promised_by_port, strict=True):
            useful = {name for name, first in names.items() if first in wanted}
            found[id(input)] = useful & found.get(id(input), useful)
    return found
