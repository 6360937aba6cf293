"""Iterate: a loop as a node; `cedr.plan.iteration` builds it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from cedr.plan.aspects import text
from cedr.plan.aspects.loops import HIDES
from cedr.plan.aspects.partitioning import PartitionRequirement
from cedr.plan.aspects.progress import (
    AT_ONCE,
    NodeContext,
    ProgressRequirements,
)
from cedr.plan.aspects.promises import CTI, CTI_ONLY, Schemes
from cedr.plan.aspects.properties import Properties, shortest_memory
from cedr.plan.loop import Settings
from cedr.plan.loop_keys import LoopKeys, loop_keys
from cedr.plan.node import (
    Columns,
    Node,
    Work,
    topological,
)
from cedr.plan.nodes.source import Source
from cedr.plan.schema import Schema
from cedr.plan.tree import tree


@dataclass(frozen=True, eq=False)
class Iterate(Node):
    """Rows derived from the first member, the seed, and from themselves, until nothing new is derived."""

    work = Work.STATEFUL

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

    @cached_property
    def loop_keys(self) -> LoopKeys:
        """The columns by which it can be partitioned."""
        return loop_keys(self.schema, self.body, len(self.members), self.settings.selection)

    def reads(self, needed: Columns) -> list[Columns]:
        return [set(member.schema) for member in self.members]

    def describe(self) -> str:
        held = f", holds {self.settings.selection}" if self.settings.selection else ""
        return f"Iterate, progress by {self.settings.progress}{held}"

    def details(self) -> list[str]:
        return [line.removeprefix("  ") for line in tree(self.body)]

    def describe_state(self, inputs: Sequence[Properties]) -> str:
        return text.bounded("derivations and what the body remembers, past what is definite", inputs)

    def derive_properties(self, *inputs: Properties) -> Properties:
        """Rows are emitted before the loop is done, and retracted."""
        finite, remember = all(p.finite for p in inputs), shortest_memory(*inputs)
        return Properties(key=frozenset(self.by), duplicate_free=True, finite=finite, remember=remember)

    def progress_requirements(self, context: NodeContext) -> ProgressRequirements:
        return ProgressRequirements(AT_ONCE, (self.until_settled(context),))

    def derive_schemes(self, *inputs: Schemes) -> Schemes:
        """It understands CTIs only."""
        return CTI_ONLY if all(CTI in schemes for schemes in inputs) else {}

    def partition_requirement(self) -> PartitionRequirement:
        found = self.loop_keys
        return PartitionRequirement(
            found.keys,
            f"the loop keeps {', '.join(key[0] for key in found.keys)} in all it derives",
            found.ports,
            "any row of the loop may need it",
            f"the loop runs in one shard, because {found.why_not}" if found.why_not else "",
        )

    def loop_refusal(self, of_loop: list[bool]) -> str:
        return f"{HIDES}; derive both in one loop, with a column that separates them, or let it read other streams only"
