"""How plans are displayed in notebooks (HTML) and in rich consoles."""

from html import escape
from textwrap import dedent
from typing import TYPE_CHECKING

from cedr.plan.node import Node
from cedr.plan.tree import tree
from cedr.temporal.notebook import html_table, pre

if TYPE_CHECKING:
    from rich.tree import Tree


def plan_html(plan: Node) -> str:
    schema = plan.schema
    return html_table(list(schema), [[escape(str(dtype)) for dtype in schema.values()]]) + pre(
        dedent("\n".join(tree(plan)))
    )


def plan_rich(plan: Node) -> "Tree":
    from rich.text import Text
    from rich.tree import Tree

    def grow(branch: Tree, node: Node) -> Tree:
        for below in node.inputs:
            grow(branch.add(Text(below.describe())), below)
        return branch

    return grow(Tree(Text(plan.describe())), plan)
