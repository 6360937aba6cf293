"""TopK: the first rows of each snapshot of each group."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from cedr.plan.aspects import text
from cedr.plan.aspects.partitioning import PartitionRequirement, columns_as_keys, grouped_by
from cedr.plan.aspects.progress import (
    NodeContext,
    ProgressRequirements,
    to_emit,
)
from cedr.plan.aspects.promises import Schemes
from cedr.plan.aspects.properties import Properties, order_at
from cedr.plan.node import Columns, Node, Speculative, Unary, Work
from cedr.plan.schema import Schema, check_columns
from cedr.temporal.errors import QueryError


@dataclass(frozen=True, eq=False)
class TopK(Speculative, Unary):
    """Of each snapshot of each group the k rows that come first; ties by payload."""

    work = Work.STATEFUL

    k: int
    order: tuple[str, ...]
    descending: tuple[bool, ...]
    by: tuple[str, ...] = ()
    rank: str | None = None

    @cached_property
    def schema(self) -> Schema:
        columns = self.input.schema
        check_columns(self.order, columns, f"top_k(by={list(self.order)})")
        check_columns(self.by, columns, f"group_by({', '.join(map(repr, self.by))})")
        if not isinstance(self.k, int) or self.k < 1:
            raise QueryError(f"top_k({self.k!r}): k must be a whole number, at least 1")
        if self.rank in columns:
            raise QueryError(f"top_k(rank={self.rank!r}): there is a column of that name; choose another")
        return {**columns, self.rank: pl.Int64()} if self.rank else columns

    def reads(self, needed: Columns) -> list[Columns]:
        return [set(self.input.schema)]

    def describe(self) -> str:
        rank = f", rank as {self.rank}" if self.rank else ""
        order = text.ordering(self.order, self.descending)
        head = f"{type(self).__name__} {self.k}{text.by(self.by)}"
        return f"{head} in order of {order}{rank}{text.latency(self.latency)}"

    def describe_state(self, inputs: Sequence[Properties]) -> str:
        return text.bounded("end points and live rows of each group past the CTI", inputs)

    def derive_properties(self, *inputs: Properties) -> Properties:
        (p,) = inputs
        key = frozenset({*self.by, self.rank}) if self.rank else frozenset(self.by) if self.k == 1 else None
        order = order_at(self.latency, p)
        return Properties(**order, key=key, duplicate_free=key is not None, finite=p.finite, remember=p.remember)

    @property
    def lifetimes_from(self) -> Node:
        return self.input

    def progress_requirements(self, context: NodeContext) -> ProgressRequirements:
        """Snapshots end when anything of their group begins or ends."""
        return ProgressRequirements(to_emit(self.latency, (0,), context), (self.until_settled(context),))

    def derive_schemes(self, *inputs: Schemes) -> Schemes:
        return self.passed_schemes(inputs)

    def partition_requirement(self) -> PartitionRequirement | None:
        return PartitionRequirement(columns_as_keys(self.by, self.input.schema), grouped_by(self.by))

    def loop_refusal(self, of_loop: list[bool]) -> str:
        return (
            "top_k(1, ...) may end a body, where it selects the rows that the loop holds; else more in the loop could "
            "mean less out of it"
        )


@dataclass(frozen=True, eq=False)
class PartialTopK(TopK):
    """The first rows of those at hand."""

    partial = True

    def partition_requirement(self) -> None:
        return None

    @property
    def passed_columns(self) -> dict[str, str]:
        return {}
