"""where(select(x)) -> select(where(x)), for predicates over columns the select passes on unchanged."""

from cedr.plan.node import Node
from cedr.plan.nodes import Project, Select
from cedr.plan.rewrite import Shared, rewrite
from cedr.plan.rules.split import split_select


def push_select_below_project(plan: Node) -> Node:
    return rewrite(plan, push)


def push(node: Node, shared: Shared) -> Node | None:
    if not isinstance(node, Select) or not isinstance(below := node.input, Project) or shared(below):
        return None
    return split_select(node, below.passed, lambda pushed: below.with_inputs(Select(below.input, pushed)))
