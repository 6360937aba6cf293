"""Align and Finalize are dropped where they cannot matter.

Align      block 0; or the input is in order already; or an Align that waits as long is right below
Finalize   the input went through one that forgets no later; or nothing above keeps state and nothing is adjusted, then
           a Guard is enough. An adjust must be checked against its tuple even where no operator keeps any.
"""

from cedr.plan.node import Node, Work, topological
from cedr.plan.nodes import Align, Finalize, Guard, Source
from cedr.plan.properties import properties
from cedr.plan.rewrite import Shared, rewrite


def drop_align_and_finalize(plan: Node) -> Node:
    before_state = {id(n) for n in below_state(plan)}

    def drop(node: Node, shared: Shared) -> Node | None:
        if isinstance(node, Align):
            return drop_align(node, shared)
        if isinstance(node, Finalize):
            return drop_finalize(node)
        return None

    dropped = rewrite(plan, drop)
    if dropped is not plan:
        return dropped
    return rewrite(plan, lambda node, shared: guard_only(node, id(node) in before_state))


def drop_align(node: Align, shared: Shared) -> Node | None:
    known = properties(node.input)
    if node.block == 0 or (known.ordered and (node.flavour == "ordered" or known.insert_only)):
        return node.input
    below = node.input
    if isinstance(below, Align) and alike(node, below):
        if node.block <= below.block:
            return below
        if not shared(below):
            return node.with_inputs(below.input)
    return None


def alike(one: Align, two: Align) -> bool:
    """Whether they wait for the same things, if not as long."""
    return (one.flavour, one.by) == (two.flavour, two.by) and one.clock is two.clock is None


def drop_finalize(node: Finalize) -> Node | None:
    remembered = properties(node.input).remember
    return node.input if remembered is not None and remembered <= node.remember else None


def guard_only(node: Node, before_state: bool) -> Node | None:
    if not isinstance(node, Finalize) or before_state or counts_externals(node):
        return None
    if not properties(node.input).insert_only:
        return None
    return Guard(node.input, node.late)


def counts_externals(node: Node) -> bool:
    return any(isinstance(n, Source) and n.external for n in topological(node))


def below_state(plan: Node) -> list[Node]:
    """All nodes whose rows reach an operator with state."""
    found: dict[int, Node] = {}
    for node in reversed(topological(plan)):
        if node.work is Work.STATEFUL or id(node) in found:
            found.update((id(i), i) for i in node.inputs)
    return list(found.values())
