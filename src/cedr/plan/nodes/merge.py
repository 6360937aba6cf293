"""Logical merge as a node, and which algorithm its inputs allow (LMerge, IV-G).

    what is known of all members                            algorithm
    ordered, insert-only, one event at any instant          R0
    ordered, insert-only                                    R2
    no payload twice at any instant                         R3
    nothing                                                 R4

R1 requires that events with equal starts come in the same order from every member. No operator promises that, so it
must be requested by name; R2 costs little more. R0 and R2 emit every event as soon as they can; other policies need R3
or R4.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self, get_args

import polars as pl

from cedr.plan.aspects import text
from cedr.plan.aspects.loops import HIDES
from cedr.plan.aspects.partitioning import PartitionRequirement, columns_as_keys
from cedr.plan.aspects.progress import (
    AT_ONCE,
    NodeContext,
    ProgressRequirements,
    RequiredPromise,
)
from cedr.plan.aspects.promises import CTI, CTI_ONLY, Schemes
from cedr.plan.aspects.properties import Properties, shortest_memory
from cedr.plan.merge_policy import Policy, Wrong
from cedr.plan.node import Columns, Node, Unary, Work
from cedr.plan.nodes.union import check_same_columns
from cedr.plan.schema import Schema, check_columns
from cedr.temporal.errors import QueryError

ALGORITHMS = ("R0", "R1", "R2", "R3", "R3-", "R4")
IN_ORDER = ("R0", "R1", "R2")
FIRST = Policy()


@dataclass(frozen=True, eq=False)
class Merge(Node):
    """Members with the same history, as one stream of it."""

    work = Work.STATEFUL

    members: tuple[Node, ...]
    policy: Policy = FIRST
    algorithm: str | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.members

    @cached_property
    def schema(self) -> Schema:
        if self.algorithm not in (None, *ALGORITHMS):
            raise QueryError(f"merge: algorithm is {self.algorithm!r}; it is one of {', '.join(map(repr, ALGORITHMS))}")
        if self.algorithm in IN_ORDER and self.policy.emits != "first":
            raise QueryError(
                f"merge: {self.algorithm} emits an event as soon as one input has it, but the policy is "
                f"{self.policy.emits!r}; leave algorithm out, or use 'R3' or 'R4'"
            )
        for other in self.members[1:]:
            check_same_columns("merge", self.members[0].schema, other.schema)
        return self.members[0].schema

    def with_inputs(self, *inputs: Node) -> Self:
        return type(self)(inputs, self.policy, self.algorithm)

    def reads(self, needed: Columns) -> list[Columns]:
        return [set(i.schema) for i in self.inputs]

    def describe(self) -> str:
        return f"Merge, {self.policy}"

    def describe_state(self, inputs: Sequence[Properties]) -> str:
        algorithm, why = choose(inputs, self.policy, self.algorithm)
        keeps = {
            "R0": "nothing but the highest start",
            "R1": "how many events each has emitted at the highest start",
            "R2": "the events at the highest start",
        }
        kept = keeps.get(algorithm) or text.bounded("events past the CTI, each once", inputs)
        return f"{algorithm}, as {why}; {kept}"

    def derive_properties(self, *inputs: Properties) -> Properties:
        """What several emit together may overlap for a while, until the ends are repaired."""
        finite, remember = all(p.finite for p in inputs), shortest_memory(*inputs)
        if choose(inputs, self.policy, self.algorithm).algorithm not in IN_ORDER:
            return Properties(finite=finite, remember=remember)
        keys = {p.key for p in inputs}
        return Properties(
            ordered=True,
            insert_only=True,
            key=keys.pop() if len(keys) == 1 else None,
            duplicate_free=all(p.duplicate_free for p in inputs),
            finite=finite,
            remember=remember,
        )

    def progress_requirements(self, context: NodeContext) -> ProgressRequirements | None:
        """An event is kept until it is settled; inserts in order leave nothing to settle."""
        if choose(context.inputs, self.policy, self.algorithm).algorithm in IN_ORDER:
            return None
        ports = tuple(range(len(self.members)))
        emit = RequiredPromise(ports) if self.policy.emits == "half-frozen" else AT_ONCE
        return ProgressRequirements(emit, (self.until_settled(context),))

    def derive_schemes(self, *inputs: Schemes) -> Schemes:
        """It understands CTIs only. One input that reports them is enough, unless it waits for the slowest."""
        report = [CTI in schemes for schemes in inputs]
        enough = all(report) if self.policy.progress == "slowest" else any(report)
        return CTI_ONLY if enough else {}

    @property
    def promised_columns(self) -> dict[str, str]:
        return {}

    def partition_requirement(self) -> PartitionRequirement:
        keys = columns_as_keys(self.schema, self.schema, len(self.inputs))
        return PartitionRequirement(keys, "Merge compares whole payloads")

    def loop_refusal(self, of_loop: list[bool]) -> str:
        return f"{HIDES}; use union"


@dataclass(frozen=True, eq=False)
class MergeBy(Unary):
    """Copies of one history in one stream, identified by a column; `join` holds the time from which each is complete.

    Copies come and go, so the algorithm is R3 or R4, whatever their order.
    """

    work = Work.STATEFUL

    column: str
    join: str | None = None
    policy: Policy = FIRST
    algorithm: str | None = None
    wrong: Wrong = "raise"

    @cached_property
    def schema(self) -> Schema:
        columns, what = self.input.schema, f"merge_by({self.column!r})"
        check_columns([self.column], columns, what)
        if columns[self.column] != pl.String():
            raise QueryError(f"{what}: the column is {columns[self.column]}; names of copies are texts, cast it to str")
        if self.join is not None:
            check_columns([self.join], columns, f"{what}, join={self.join!r}")
            if columns[self.join] != pl.Int64():
                raise QueryError(f"{what}: join={self.join!r} is {columns[self.join]}; join times are whole numbers")
        if self.algorithm not in (None, "R3", "R4"):
            raise QueryError(f"{what}: algorithm is {self.algorithm!r}; it is 'R3' or 'R4', as copies come and go")
        if self.wrong not in get_args(Wrong):
            raise QueryError(f"{what}: wrong is {self.wrong!r}; it is one of {', '.join(map(repr, get_args(Wrong)))}")
        left = {name: kind for name, kind in columns.items() if name not in (self.column, self.join)}
        if not left:
            raise QueryError(f"{what}: there is no other column, so there is nothing to merge")
        return left

    def chosen(self, known: Properties) -> "Choice":
        if self.algorithm:
            return Choice(self.algorithm, "it was requested")
        if known.duplicate_free:
            return Choice("R3", "copies come and go; no payload twice at a time")
        return Choice("R4", "copies come and go; a payload may be there twice")

    def reads(self, needed: Columns) -> list[Columns]:
        return [set(i.schema) for i in self.inputs]

    def describe(self) -> str:
        join = f", complete from {self.join}" if self.join else ""
        wrong = ", wrong ones detached" if self.wrong == "detach" else ""
        return f"MergeBy {self.column}{join}, {self.policy}{wrong}"

    def describe_state(self, inputs: Sequence[Properties]) -> str:
        algorithm, why = self.chosen(inputs[0])
        return f"{algorithm}, as {why}; {text.bounded('events past the CTI of the fastest copy, each once', inputs)}"

    def derive_properties(self, *inputs: Properties) -> Properties:
        return Properties(finite=inputs[0].finite, remember=inputs[0].remember)

    def progress_requirements(self, context: NodeContext) -> ProgressRequirements:
        """It follows the progress of any copy, by CTIs or promises about it."""
        emit = RequiredPromise((0,)) if self.policy.emits == "half-frozen" else AT_ONCE
        return ProgressRequirements(emit, (RequiredPromise((0,)),))

    def derive_schemes(self, *inputs: Schemes) -> Schemes:
        """Promises about copies, or CTIs of the whole, become its CTIs."""
        return CTI_ONLY if any(set(names) <= self.promised_by_port[0].keys() for names in inputs[0]) else {}

    @property
    def promised_by_port(self) -> list[dict[str, str]]:
        return [{name: name for name in (self.column, self.join) if name}]

    @property
    def promised_columns(self) -> dict[str, str]:
        return {}

    def partition_requirement(self) -> PartitionRequirement:
        return PartitionRequirement(columns_as_keys(self.schema, self.schema), "MergeBy compares whole payloads")


class Choice(NamedTuple):
    algorithm: str
    why: str


def choose(members: Sequence[Properties], policy: Policy = FIRST, algorithm: str | None = None) -> Choice:
    """The simplest algorithm that what is known of the members allows, and why."""
    if algorithm:
        return Choice(algorithm, "it was requested")
    if all(p.perfect for p in members) and policy.emits == "first":
        if all(p.key == frozenset() for p in members):
            return Choice("R0", "inserts in order, one event at a time")
        return Choice("R2", "inserts in order")
    if all(p.duplicate_free for p in members):
        return Choice("R3", f"{what_lacks(members, policy)}; no payload twice at a time")
    return Choice("R4", f"{what_lacks(members, policy)}; a payload may be there twice")


def what_lacks(members: Sequence[Properties], policy: Policy) -> str:
    """Why a simpler algorithm will not do."""
    if not all(p.insert_only for p in members):
        return "there may be adjusts"
    if not all(p.ordered for p in members):
        return "order is not known"
    return f"the policy is {policy}"
