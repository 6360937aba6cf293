"""where(union(x, y)) -> union(where(x), where(y)), and so for all nodes that treat each payload apart.

Union, difference, intersect, distinct and coalesce compare whole payloads, so a payload that is dropped above may
as well be dropped in every input.
"""

from cedr.plan.node import Node
from cedr.plan.nodes import Select, Union
from cedr.plan.nodes.sets import PayloadComparison
from cedr.plan.rewrite import Shared, rewrite


def push_select_below_union(plan: Node) -> Node:
    return rewrite(plan, push)


def push(node: Node, shared: Shared) -> Node | None:
    if not isinstance(node, Select) or shared(below := node.input):
        return None
    if not isinstance(below, Union | PayloadComparison):
        return None
    return below.with_inputs(*(Select(i, node.predicates) for i in below.inputs))
