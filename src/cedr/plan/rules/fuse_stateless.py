"""Neighbouring where, select and windows become one step, which reads each chunk once."""

from cedr.plan.node import Node
from cedr.plan.nodes import Fused, Project, Select
from cedr.plan.nodes.lifetimes import FUSIBLE
from cedr.plan.rewrite import Shared, rewrite

STEPS = (Select, Project, *FUSIBLE)


def fuse_stateless(plan: Node) -> Node:
    return rewrite(plan, fuse)


def fuse(node: Node, shared: Shared) -> Node | None:
    if not isinstance(node, STEPS) or shared(below := node.input):
        return None
    if isinstance(below, Fused):
        return Fused(below.input, (*below.steps, node))
    if isinstance(below, STEPS):
        return Fused(below.input, (below, node))
    return None
