"""A plan as one engine runs it: one step per node, inputs before users, shared nodes once.

A fragment is plain data and can be sent elsewhere; the engine makes its operators (`cedr.physical`).
"""

from dataclasses import dataclass, replace
from typing import Any

from cedr.plan.aspects.properties import Properties
from cedr.plan.node import Node, topological
from cedr.plan.nodes.level import Level
from cedr.plan.nodes.source import Source
from cedr.plan.optimizer import RULES, Rule, optimize
from cedr.plan.schema import Schema
from cedr.temporal.consistency import Consistency
from cedr.temporal.errors import QueryError

Input = int | str
"""The number of a step, or the name of a source."""


@dataclass(frozen=True)
class PhysicalStep:
    """A node with what is known of its inputs, and where its ports get their rows."""

    node: Node
    known: tuple[Properties, ...]
    inputs: tuple[Input, ...]

    @property
    def name(self) -> str:
        return type(self.node).__name__


@dataclass(frozen=True)
class Fragment:
    """A plan that one engine runs."""

    steps: tuple[PhysicalStep, ...]
    output: Input
    sources: dict[str, Source]
    schema: Schema
    query: Level | None = None
    """What it answers; None for a part of a staged plan."""
    rules: tuple[Rule, ...] = RULES

    def at_level(self, consistency: Consistency) -> "Fragment":
        """The same query at another level."""
        if self.query is None:
            raise QueryError("a part of a query in stages has no level of its own; start the query at the new level")
        written = self.query.input if self.query.moved else self.query
        return fragment_of(Level(written, consistency, moved=True), self.rules)


def fragment_of(query: Level, rules: tuple[Rule, ...] = RULES) -> Fragment:
    """The fragment for a query, whose plan starts with its level."""
    plan = optimize(query, rules).plan
    fragment, _ = fragment_from(topological(plan), plan)
    return replace(fragment, query=query, rules=rules)


def fragment_from(order: list[Node], output: Node) -> tuple[Fragment, dict[int, Input]]:
    """The fragment of these nodes, inputs before users; and where the rows of each node come out, by its identity."""
    known: dict[int, Properties] = {}
    steps: list[PhysicalStep] = []
    sources: dict[str, Source] = {}
    numbers: dict[int, Input] = {}
    for node in order:
        of_inputs = [known[id(i)] for i in node.inputs]
        known[id(node)] = node.derive_properties(*of_inputs)
        if isinstance(node, Source):
            numbers[id(node)] = add_source(node, sources)
            continue
        numbers[id(node)] = len(steps)
        steps.append(PhysicalStep(node, tuple(of_inputs), tuple(numbers[id(i)] for i in node.inputs)))
    return Fragment(tuple(steps), numbers[id(output)], sources, dict(output.schema)), numbers


def add_source(node: Source, sources: dict[str, Source]) -> str:
    known = sources.setdefault(node.name, node)
    if known is not node and vars_of(known) != vars_of(node):
        raise QueryError(
            f"two different sources are called {node.name!r}; give one another name, or use the same source twice"
        )
    return node.name


def vars_of(source: Source) -> dict[str, Any]:
    """All that makes a source what it is; expressions are compared by their text."""
    found = {name: value for name, value in vars(source).items() if name in Source.__dataclass_fields__}
    return found | {"expressions": [text for text, _ in source.expressions]}
