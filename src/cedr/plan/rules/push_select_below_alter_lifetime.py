"""where(window(x)) -> window(where(x)): a predicate sees the payload, a change of lifetime the times."""

from cedr.plan.node import Node
from cedr.plan.nodes import Level, Lifetime, Select
from cedr.plan.rewrite import Shared, rewrite


def push_select_below_alter_lifetime(plan: Node) -> Node:
    return rewrite(plan, push)


def push(node: Node, shared: Shared) -> Node | None:
    if not isinstance(node, Select) or not isinstance(below := node.input, Lifetime | Level) or shared(below):
        return None
    return below.with_inputs(Select(below.input, node.predicates))
