"""Columns nobody reads are dropped: unread results of select and agg, and unread columns before state is kept.

What a node needs of its input is what its users need of it, plus what it reads itself. Nodes that compare whole
payloads (distinct, coalesce, difference, intersect, top-k) need every column, and so does the result of the query.
Row-by-row nodes get no project of their own; it would only be fused away. Members of a union must have the same
columns, so where one of them was narrowed, all are.
"""

from cedr.plan.node import Columns, Node, Work, topological
from cedr.plan.nodes import Project, Union
from cedr.plan.nodes.project import keep
from cedr.plan.rewrite import rebuilt


def prune_columns(plan: Node) -> Node:
    order = topological(plan)
    needed = needed_columns(plan, order)
    done: dict[int, Node] = {}
    for node in order:
        new = rebuilt(node, done).narrowed(needed[id(node)])
        if new.work is Work.STATEFUL:
            new = above_projects(new, needed[id(node)])
        elif isinstance(new, Union):
            new = of_same_columns(new)
        done[id(node)] = new
    return done[id(plan)]


def needed_columns(plan: Node, order: list[Node]) -> dict[int, Columns]:
    """For every node the columns that any of its users reads."""
    needed: dict[int, Columns] = {id(node): set() for node in order}
    needed[id(plan)] = set(plan.schema)
    for node in reversed(order):
        for input, columns in zip(node.inputs, node.reads(needed[id(node)]), strict=True):
            needed[id(input)] |= columns
    return needed


def above_projects(node: Node, needed: Columns) -> Node:
    """A node that keeps state, above inputs that have what it reads and no more."""
    inputs = [only(i, columns) for i, columns in zip(node.inputs, node.reads(needed), strict=True)]
    changed = any(new is not old for new, old in zip(inputs, node.inputs, strict=True))
    return node.with_inputs(*inputs) if changed else node


def of_same_columns(node: Union) -> Union:
    """The union of the columns that all members have kept: those that its users read are among them."""
    common = set.intersection(*(set(member.schema) for member in node.members))
    members = [only(member, common) for member in node.members]
    changed = any(new is not old for new, old in zip(members, node.members, strict=True))
    return node.with_inputs(*members) if changed else node


def only(node: Node, columns: Columns) -> Node:
    """The node with these columns alone; at least one stays, so that rows can be counted."""
    names = [name for name in node.schema if name in columns] or list(node.schema)[:1]
    return node if len(names) == len(node.schema) else Project(node, tuple(keep(names)))
