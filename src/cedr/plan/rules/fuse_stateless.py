"""Neighbouring where, select and windows become one step, which reads each chunk once."""

from cedr.plan.node import Node, Work
from cedr.plan.nodes import Fused
from cedr.plan.rewrite import Shared, rewrite


def fuse_stateless(plan: Node) -> Node:
    return rewrite(plan, fuse)


def fuse(node: Node, shared: Shared) -> Node | None:
    if node.work is not Work.FUSIBLE or shared(below := node.inputs[0]):
        return None
    if isinstance(below, Fused):
        return Fused(below.input, (*below.steps, node))
    if below.work is Work.FUSIBLE:
        return Fused(below.inputs[0], (below, node))
    return None
