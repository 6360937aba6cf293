"""where(group_by(k).agg(x)) -> group_by(k).agg(where(x)), for predicates over the group's columns.

A group is dropped as a whole, so the snapshots of the others stay as they are. The same holds for top-k and sessions.
"""

from cedr.plan.node import Node
from cedr.plan.nodes import Aggregate, Select, Session, TopK
from cedr.plan.rewrite import Shared, rewrite
from cedr.plan.rules.split import split_select


def push_select_below_aggregate(plan: Node) -> Node:
    return rewrite(plan, push)


def push(node: Node, shared: Shared) -> Node | None:
    if not isinstance(node, Select) or shared(below := node.input):
        return None
    if not isinstance(below, Aggregate | TopK | Session):
        return None
    return split_select(node, below.by, lambda pushed: below.with_inputs(Select(below.input, pushed)))
