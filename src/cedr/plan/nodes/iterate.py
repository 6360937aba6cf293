"""Iterate: a loop as a node; `cedr.plan.iteration` builds it."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from cedr.operators.iterate.settings import Settings
from cedr.plan.node import Node, topological
from cedr.plan.nodes.source import Source
from cedr.plan.schema import Schema


@dataclass(frozen=True, eq=False)
class Iterate(Node):
    """Rows derived from the first member, the seed, and from themselves, until nothing new is derived."""

    members: tuple[Node, ...]
    """The seed, then what the body takes from outside."""
    body: Node
    """Above sources named `loop`, `input 1` and so on."""
    settings: Settings

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.members

    @cached_property
    def schema(self) -> Schema:
        return self.members[0].schema

    def with_inputs(self, *inputs: Node) -> Self:
        return replace(self, members=inputs)

    @property
    def by(self) -> tuple[str, ...]:
        """Columns that at any instant belong to one row at most."""
        return self.settings.selection.by if self.settings.selection else tuple(self.schema)

    @property
    def names(self) -> list[str]:
        """What the members are called in messages: the sources they come from."""
        below = [[n.name for n in topological(m) if isinstance(n, Source)] for m in self.members]
        return [" and ".join(dict.fromkeys(names)) or "nothing" for names in below]
