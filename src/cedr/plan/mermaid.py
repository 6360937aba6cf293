"""A plan as a Mermaid flowchart, for pages that draw such: sources on top, the answer at the bottom."""

from cedr.plan.node import Node, topological
from cedr.plan.nodes import Source


def mermaid(plan: Node, answer: str = "answer") -> str:
    names = {id(node): f"n{number}" for number, node in enumerate(topological(plan))}
    lines = ["flowchart TB"]
    for node in topological(plan):
        left, right = ('[("', '")]') if isinstance(node, Source) else ('["', '"]')
        lines.append(f"    {names[id(node)]}{left}{escaped(node.describe())}{right}")
        lines += [f"    {names[id(i)]} --> {names[id(node)]}" for i in node.inputs]
    return "\n".join([*lines, f'    {names[id(plan)]} --> answer(["{escaped(answer)}"])'])


def escaped(text: str) -> str:
    """Mermaid reads HTML's names of characters, with # for &."""
    codes = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "\n": " "}
    return "".join(codes.get(c, c) for c in text)
