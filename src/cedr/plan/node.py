"""What all plan nodes share, and what a plan asks of them.

A node is frozen data: what the user asked for, and its inputs. Two uses of the same node object are one computation
(a diamond, a self-join), so nodes compare by identity.

Everything a plan knows about a node is a method of its class, so that the optimizer, the analysis, the partitioning and
`explain` ask the node. What has no safe default is abstract: a node that lacks an answer cannot be created. The types
of the answers are in `aspects`; only the operators that run nodes are elsewhere, in `physical`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import ClassVar, Self

from cedr.plan.aspects.partitioning import PartitionRequirement
from cedr.plan.aspects.progress import ENDING, NodeContext, ProgressRequirements, RequiredPromise
from cedr.plan.aspects.promises import Schemes, called, combined, renamed
from cedr.plan.aspects.properties import Properties
from cedr.plan.aspects.text import NO_STATE
from cedr.plan.latency import Latency
from cedr.plan.schema import Schema
from cedr.temporal.duration import RealLength, show_duration

Columns = set[str]


class Work(Enum):
    """What an operator does with rows: this decides where it can run and what it can be merged with."""

    FUSIBLE = "one row in, at most one row out, at times that are functions of its times"
    ROW_BY_ROW = "looks at one row at a time and keeps nothing"
    ANY_SHARD = "checks, delays or collects rows, in any shard"
    STATEFUL = "remembers rows"
    OTHER = "none of these"


@dataclass(frozen=True, eq=False)
class Node(ABC):
    work: ClassVar[Work]
    partial: ClassVar[bool] = False
    """Whether it answers for the rows of a shard, and another node combines the answers."""
    lengths: tuple[RealLength, ...] = field(default=(), kw_only=True, repr=False)
    """Lengths with a unit that are plain numbers in the expressions of this node or of the inputs that were compiled
    with it. In a polars expression they cannot be found."""

    @property
    def inputs(self) -> tuple["Node", ...]:
        return ()

    def with_inputs(self, *inputs: "Node") -> Self:
        """The same node above other inputs."""
        assert not inputs
        return self

    # --- columns -------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """Names and types of the payload; computing it checks the node."""

    @abstractmethod
    def reads(self, needed: Columns) -> list[Columns]:
        """The columns it requires of each input to produce the needed ones."""

    def narrowed(self, needed: Columns) -> "Node":
        """The node without results that nobody needs."""
        return self

    @property
    def passed_columns(self) -> dict[str, str]:
        """The columns that pass unchanged: their names in the output, and in the (first) input."""
        requirement = self.partition_requirement()
        kept = self.schema if requirement is None else [key[0] for key in requirement.keys]
        return {name: name for name in kept}

    # --- text for explain ----------------------------------------------------------------------------------------

    @abstractmethod
    def describe(self) -> str:
        """The node in one line."""

    def details(self) -> list[str]:
        """Lines below it, for what does not fit into one."""
        return []

    @abstractmethod
    def describe_state(self, inputs: Sequence[Properties]) -> str:
        """What its operator remembers."""

    # --- rows ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def derive_properties(self, *inputs: Properties) -> Properties:
        """What is known about its rows."""

    @property
    def keeps_lifetimes(self) -> bool:
        """Whether rows leave with the lifetimes they had."""
        return False

    @property
    def window(self) -> int | None:
        """The length of the lifetimes it gives to rows, if it does."""
        return None

    @property
    def lifetimes_from(self) -> "Node | None":
        """The input whose rows live at least as long as its own."""
        return None

    # --- progress ------------------------------------------------------------------------------------------------

    @abstractmethod
    def progress_requirements(self, context: NodeContext) -> ProgressRequirements | None:
        """Which promises it requires; None if it keeps no rows."""

    @abstractmethod
    def derive_schemes(self, *inputs: Schemes) -> Schemes:
        """About which columns its output can carry promises.

        A promise passes a node when it is about columns that pass it and, where rows are combined, about columns by
        which they are combined. Where there are several inputs, all must promise: what one promises about some columns
        counts as far as the others promise it about these columns or fewer.
        """

    def passed_schemes(self, inputs: Sequence[Schemes]) -> Schemes:
        """The answer of a node to which nothing else applies."""
        names: dict[str, list[str]] = {}
        for out, inner in self.promised_columns.items():
            names.setdefault(inner, []).append(out)
        return called(self.common_schemes(inputs), names)

    def common_schemes(self, inputs: Sequence[Schemes], ports: Iterable[int] | None = None) -> Schemes:
        """What all inputs, or those of some ports, promise together, by the names of the first input."""
        columns = self.promised_by_port
        chosen = range(len(inputs)) if ports is None else ports
        return combined([renamed(inputs[port], columns[port]) for port in chosen])

    @property
    def promised_by_port(self) -> list[dict[str, str]]:
        """The columns of each input about which promises are understood, and their names in the first input."""
        requirement = self.partition_requirement()
        if requirement is None:
            return [{name: name for name in i.schema} for i in self.inputs]
        if len(self.partitioned_ports) < len(self.inputs):  # nodes with broadcast inputs understand CTIs only
            return [{} for _ in self.inputs]
        return [{key[port]: key[0] for key in requirement.keys} for port in range(len(self.inputs))]

    @property
    def promised_columns(self) -> dict[str, str]:
        """The columns of the output about which there can be promises, and their names in the first input."""
        return self.passed_columns

    # --- shards --------------------------------------------------------------------------------------------------

    @abstractmethod
    def partition_requirement(self) -> PartitionRequirement | None:
        """By which columns its rows must be partitioned; None if any shard can take any row."""

    @property
    def partitioned_ports(self) -> tuple[int, ...]:
        """The inputs whose rows are partitioned; every shard gets all rows of the others."""
        requirement = self.partition_requirement()
        ports = requirement.ports if requirement else None
        return tuple(range(len(self.inputs))) if ports is None else ports

    @property
    def partitioned_inputs(self) -> list["Node"]:
        return [self.inputs[port] for port in self.partitioned_ports]

    @property
    def broadcast_inputs(self) -> list["Node"]:
        ports = self.partitioned_ports
        return [i for port, i in enumerate(self.inputs) if port not in ports]

    # --- loops ---------------------------------------------------------------------------------------------------

    def loop_refusal(self, of_loop: list[bool]) -> str | None:
        """Why it cannot be in the body of a loop; `of_loop` states which inputs depend on the loop."""
        return "it is not known to be monotone"

    # --- what several nodes answer -------------------------------------------------------------------------------

    def until_settled(self, context: NodeContext) -> RequiredPromise:
        """Rows are kept until nothing about them can change."""
        finite = all(known.finite for known in context.inputs)
        span = " and ".join(dict.fromkeys(map(lifetimes, self.inputs)))
        return RequiredPromise(tuple(range(len(self.inputs))), not finite, span, ENDING)


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
class Independent(Unary):
    """Nodes that never combine rows: any shard can take any row, and promises about columns that pass remain true."""

    def reads(self, needed: Columns) -> list[Columns]:
        return [needed]

    def partition_requirement(self) -> None:
        return None

    def derive_schemes(self, *inputs: Schemes) -> Schemes:
        return self.passed_schemes(inputs)


@dataclass(frozen=True, eq=False)
class RowByRow(Independent):
    """Nodes that look at one row at a time and keep nothing."""

    work = Work.ROW_BY_ROW

    def describe_state(self, inputs: Sequence[Properties]) -> str:
        return NO_STATE

    def progress_requirements(self, context: NodeContext) -> None:
        return None


@dataclass(frozen=True, eq=False)
class Speculative(Node):
    """Nodes whose operators can emit results before they are final.

    `waits`: rows arrive only when CTIs or promises have settled them, so a row is not a sign of progress.
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


def lifetimes(node: Node) -> str:
    """How long the rows of a node live, if a window right below it gives them their lifetimes."""
    below: Node | None = node
    while below is not None:
        if below.window is not None:
            return f"windows of {show_duration(below.window)}"
        below = below.lifetimes_from
    return "lifetimes that end"
