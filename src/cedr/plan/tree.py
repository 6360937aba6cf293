"""A plan as lines of text, from the result down, inputs indented below their user.

A node with several users is printed once and numbered, `#1`; the others refer to it.
"""

from collections import Counter
from collections.abc import Callable

from cedr.plan.node import Node, topological


def tree(
    plan: Node, note: Callable[[Node], str] = lambda node: "", below: Callable[[Node], list[str]] = lambda node: []
) -> list[str]:
    users = Counter(id(i) for node in topological(plan) for i in node.inputs)
    numbers: dict[int, int] = {}
    lines: list[str] = []

    def show(node: Node, depth: int) -> None:
        indent = "  " * depth
        if id(node) in numbers:
            lines.append(f"{indent}see #{numbers[id(node)]}")
            return
        mark = ""
        if users[id(node)] > 1:
            numbers[id(node)] = len(numbers) + 1
            mark = f"#{numbers[id(node)]} "
        lines.append(f"{indent}{mark}{node.describe()}{note(node)}")
        lines.extend(f"{indent}  | {detail}" for detail in below(node))
        for i in node.inputs:
            show(i, depth + 1)

    show(plan, 1)
    return lines
