"""where(join(x, y)) -> join(where(x), where(y)), each predicate to the side whose columns it reads.

    side     inner  left  full  semi  anti    clip
    left     yes    yes   no    yes   yes     yes
    right    yes    no    no    -     -       -
    keys     both   both  both  both  both    both

A predicate over the keys alone restricts both sides, because partners have equal keys.
"""

from collections.abc import Collection

import polars as pl

from cedr.plan.node import Node
from cedr.plan.nodes import Clip, Join, Select
from cedr.plan.rewrite import Shared, rewrite
from cedr.plan.rules.split import parts, reads_only


def push_select_below_join(plan: Node) -> Node:
    return rewrite(plan, push)


def push(node: Node, shared: Shared) -> Node | None:
    if not isinstance(node, Select) or not isinstance(below := node.input, Join | Clip) or shared(below):
        return None
    left_columns, right_columns = pushable(below)
    to_left: list[pl.Expr] = []
    to_right: list[pl.Expr] = []
    kept: list[pl.Expr] = []
    for p in parts(node):
        if reads_only(p, left_columns, node.schema):
            to_left.append(p)
            if below.left_on == below.right_on and reads_only(p, below.left_on, node.schema):
                to_right.append(p)
        elif reads_only(p, right_columns, node.schema):
            to_right.append(p)
        else:
            kept.append(p)
    if not to_left and not to_right:
        return None
    result = below.with_inputs(selected(below.left, to_left), selected(below.right, to_right))
    return selected(result, kept)


def pushable(node: Join | Clip) -> tuple[Collection[str], Collection[str]]:
    """The columns of the result whose predicates may be checked on the left, and on the right."""
    if isinstance(node, Clip):
        return node.left.schema, ()
    if node.how == "full":
        return (node.left_on if node.left_on == node.right_on else ()), ()
    right = [name for name, shown in node.right_names.items() if shown == name] if node.how == "inner" else []
    return node.left.schema, right


def selected(node: Node, predicates: list[pl.Expr]) -> Node:
    return Select(node, tuple(predicates)) if predicates else node
