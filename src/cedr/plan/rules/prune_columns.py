"""Columns nobody reads are dropped: unread results of select and agg, and unread columns before state is kept.

What a node needs of its input is what its users need of it, plus what it reads itself. Nodes that compare whole
payloads (distinct, coalesce, difference, intersect, top-k) need every column, and so does the result of the query.
Row-by-row nodes get no project of their own; it would only be fused away. Members of a union must have the same
columns, so where one of them was narrowed, all are.
"""

from dataclasses import replace
from functools import singledispatch

from cedr.plan.node import Node, topological
from cedr.plan.nodes import (
    STATEFUL,
    Aggregate,
    Automaton,
    Clip,
    Coalesce,
    Difference,
    Distinct,
    Fused,
    Intersect,
    Iterate,
    Join,
    Lookup,
    Match,
    Merge,
    MergeBy,
    Places,
    Project,
    Reach,
    Select,
    Session,
    Sort,
    TopK,
    Union,
)
from cedr.plan.nodes.project import keep
from cedr.plan.rewrite import rebuilt
from cedr.plan.schema import roots

Columns = set[str]


def prune_columns(plan: Node) -> Node:
    order = topological(plan)
    needed = needed_columns(plan, order)
    done: dict[int, Node] = {}
    for node in order:
        new = narrowed(rebuilt(node, done), needed[id(node)])
        if isinstance(new, STATEFUL):
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
        for input, columns in zip(node.inputs, reads(node, needed[id(node)]), strict=True):
            needed[id(input)] |= columns
    return needed


@singledispatch
def reads(node: Node, needed: Columns) -> list[Columns]:
    """What a node must get from each input to yield the needed columns."""
    return [needed] * len(node.inputs)


@reads.register(Select)
def _(node: Select, needed: Columns) -> list[Columns]:
    return [needed.union(*(roots(p, node.schema) for p in node.predicates))]


@reads.register(Union)
def _(node: Union, needed: Columns) -> list[Columns]:
    # one column of the same name stays in all members, even if rows are only counted
    return [needed or set(list(node.schema)[:1])] * len(node.inputs)


@reads.register(Reach)
def _(node: Reach, needed: Columns) -> list[Columns]:
    return [{node.start, node.end}, {node.node}]


@reads.register(Iterate)
def _(node: Iterate, needed: Columns) -> list[Columns]:
    return [set(member.schema) for member in node.members]


@reads.register(Project)
def _(node: Project, needed: Columns) -> list[Columns]:
    return [narrowed_project(node, needed).reads()]


@reads.register(Aggregate)
def _(node: Aggregate, needed: Columns) -> list[Columns]:
    return [narrowed_aggregate(node, needed).reads()]


@reads.register(Session)
def _(node: Session, needed: Columns) -> list[Columns]:
    return [needed | set(node.by)]


@reads.register(Sort)
def _(node: Sort, needed: Columns) -> list[Columns]:
    return [needed | set(node.by)]


@reads.register(Clip)
def _(node: Clip, needed: Columns) -> list[Columns]:
    return [needed | set(node.left_on), set(node.right_on)]


@reads.register(Join)
def _(node: Join, needed: Columns) -> list[Columns]:
    wanted = needed | node.residual_reads()
    left = {name for name in node.left.schema if name in wanted} | set(node.left_on)
    right = {name for name, shown in node.right_names.items() if shown in wanted} | set(node.right_on)
    # a column keeps its suffix only while the left side has one of the same name
    left |= {name for name in right if name in node.left.schema and node.right_names[name] is not None}
    return [left, right]


@reads.register(Match)
def _(node: Match, needed: Columns) -> list[Columns]:
    return node.reads()


@reads.register(Automaton)
def _(node: Automaton, needed: Columns) -> list[Columns]:
    return node.reads()


@reads.register(Lookup)
def _(node: Lookup, needed: Columns) -> list[Columns]:
    return [needed - set(node.added) | {node.left_on}]


@reads.register(Fused)
@reads.register(Places)
@reads.register(TopK)
@reads.register(Distinct)
@reads.register(Coalesce)
@reads.register(Difference)
@reads.register(Intersect)
@reads.register(Merge)
@reads.register(MergeBy)
def _(node: Node, needed: Columns) -> list[Columns]:
    return [set(i.schema) for i in node.inputs]


def narrowed(node: Node, needed: Columns) -> Node:
    """The node without results nobody needs."""
    if isinstance(node, Project):
        return narrowed_project(node, needed)
    return narrowed_aggregate(node, needed) if isinstance(node, Aggregate) else node


def narrowed_project(node: Project, needed: Columns) -> Project:
    outputs = tuple(o for o in node.outputs if needed & set(o.names)) or node.outputs[:1]
    return node if len(outputs) == len(node.outputs) else replace(node, outputs=outputs)


def narrowed_aggregate(node: Aggregate, needed: Columns) -> Aggregate:
    aggregates = tuple(a for a in node.aggregates if a[0] in needed) or node.aggregates[:1]
    return node if len(aggregates) == len(node.aggregates) else replace(node, aggregates=aggregates)


def above_projects(node: Node, needed: Columns) -> Node:
    """A node that keeps state, above inputs that have what it reads and no more."""
    inputs = [only(i, columns) for i, columns in zip(node.inputs, reads(node, needed), strict=True)]
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
