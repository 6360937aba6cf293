"""What all plan nodes share.

A node is frozen data: what the user asked for, and its inputs. Two uses of the same node object are one computation
(a diamond, a self-join), so nodes compare by identity. Meaning, cost and text live elsewhere: `properties`, `rules`,
`physical` and `explain` each have one function per node.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

from cedr.operators.base import Latency
from cedr.plan.schema import Schema


@dataclass(frozen=True, eq=False)
class Node:
    @property
    def inputs(self) -> tuple["Node", ...]:
        return ()

    @cached_property
    def schema(self) -> Schema:
        """Names and types of the payload; computing it checks the node."""
        raise NotImplementedError

    def with_inputs(self, *inputs: "Node") -> Self:
        """The same node above other inputs."""
        assert not inputs
        return self


@dataclass(frozen=True, eq=False)
class Unary(Node):
    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @cached_property
    def schema(self) -> Schema:
        return self.input.schema

    def with_inputs(self, *inputs: Node) -> Self:
        return replace(self, input=inputs[0])


@dataclass(frozen=True, eq=False)
class Binary(Node):
    left: Node
    right: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    @cached_property
    def schema(self) -> Schema:
        return self.left.schema

    def with_inputs(self, *inputs: Node) -> Self:
        return replace(self, left=inputs[0], right=inputs[1])


@dataclass(frozen=True, eq=False)
class Speculative(Node):
    """What nodes have in common whose operators tell results before they are sure.

    `waits`: rows come only when CTIs or promises have settled them, so that a row says nothing about progress.
    """

    latency: Latency | None = field(default=None, kw_only=True)
    waits: bool = field(default=False, kw_only=True)


def topological(plan: Node) -> list[Node]:
    """Every node once, inputs before their users."""
    found: dict[int, Node] = {}
    waiting: list[tuple[Node, bool]] = [(plan, False)]
    while waiting:
        node, inputs_done = waiting.pop()
        if id(node) in found:
            continue
        if inputs_done:
            found[id(node)] = node
        else:
            waiting.append((node, True))
            waiting += [(i, False) for i in reversed(node.inputs)]
    return list(found.values())
