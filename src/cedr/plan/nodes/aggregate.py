"""Aggregate: one row for each snapshot of each group."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from cedr.plan.aggregates import SUMS, Max, Min
from cedr.plan.aspects import text
from cedr.plan.aspects.partitioning import PartitionRequirement, columns_as_keys, grouped_by
from cedr.plan.aspects.progress import (
    NodeContext,
    ProgressRequirements,
    RequiredPromise,
    to_emit,
)
from cedr.plan.aspects.promises import Schemes
from cedr.plan.aspects.properties import Properties, order_at
from cedr.plan.node import Columns, Node, Speculative, Unary, Work
from cedr.plan.schema import Schema, check_columns
from cedr.temporal.errors import QueryError


@dataclass(frozen=True, eq=False)
class Aggregate(Speculative, Unary):
    """One row per snapshot of each group: the group's columns, then the aggregates by name."""

    work = Work.STATEFUL

    by: tuple[str, ...]
    aggregates: tuple[tuple[str, Any], ...]

    @cached_property
    def schema(self) -> Schema:
        columns = self.input.schema
        check_columns(self.by, columns, f"group_by({', '.join(map(repr, self.by))})")
        if not self.aggregates:
            raise QueryError('agg() names no aggregate; write for example agg(n=cedr.count(), load=cedr.avg("load"))')
        results: Schema = {name: columns[name] for name in self.by}
        for name, aggregate in self.aggregates:
            if name in results:
                raise QueryError(f"agg({name}={aggregate}): {name!r} is a group column too; rename one")
            check_columns(aggregate.columns, columns, f"agg({name}={aggregate})")
            results[name] = aggregate.dtype(columns)
        return results

    def reads(self, needed: Columns) -> list[Columns]:
        kept = self.narrowed(needed).aggregates
        return [{*self.by, *(c for _, aggregate in kept for c in aggregate.columns)}]

    def narrowed(self, needed: Columns) -> "Aggregate":
        aggregates = tuple(a for a in self.aggregates if a[0] in needed) or self.aggregates[:1]
        return self if len(aggregates) == len(self.aggregates) else replace(self, aggregates=aggregates)

    def describe(self) -> str:
        return f"{type(self).__name__}{text.by(self.by)}: {self.describe_aggregates()}{text.latency(self.latency)}"

    def describe_aggregates(self) -> str:
        return ", ".join(f"{name}={aggregate}" for name, aggregate in self.aggregates)

    def describe_state(self, inputs: Sequence[Properties]) -> str:
        return text.bounded("end points and live rows of each group past the CTI", inputs)

    def derive_properties(self, *inputs: Properties) -> Properties:
        (p,) = inputs
        order, key = order_at(self.latency, p), frozenset(self.by)
        return Properties(**order, key=key, duplicate_free=True, finite=p.finite, remember=p.remember)

    @property
    def lifetimes_from(self) -> Node:
        return self.input

    def progress_requirements(self, context: NodeContext) -> ProgressRequirements:
        """Snapshots end when anything of their group begins or ends; sums of all rows that ever came are one row."""
        one_row = not self.by and all(isinstance(a, SUMS) for _, a in self.aggregates)
        forget = RequiredPromise((0,), span="one group") if one_row else self.until_settled(context)
        return ProgressRequirements(to_emit(self.latency, (0,), context), (forget,))

    def derive_schemes(self, *inputs: Schemes) -> Schemes:
        return self.passed_schemes(inputs)

    def partition_requirement(self) -> PartitionRequirement | None:
        return PartitionRequirement(columns_as_keys(self.by, self.input.schema), grouped_by(self.by))

    def loop_refusal(self, of_loop: list[bool]) -> str:
        if all(isinstance(a, Min | Max) for _, a in self.aggregates):
            return (
                "it may end a body, where it selects the rows that the loop holds; else rows would be retracted again"
            )
        return "its value changes when the loop holds more; only min or max may be in a loop, at the end of the body"


@dataclass(frozen=True, eq=False)
class PartialAggregate(Aggregate):
    """The aggregate of the rows at hand, whichever these are."""

    partial = True

    def partition_requirement(self) -> None:
        return None

    @property
    def passed_columns(self) -> dict[str, str]:
        return {}
