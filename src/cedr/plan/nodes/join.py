"""Join: pairs of events of two streams with equal keys."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import polars as pl

from cedr.columnar.sharding import can_be_key
from cedr.plan.aspects import text
from cedr.plan.aspects.loops import HIDES
from cedr.plan.aspects.partitioning import Keys, PartitionRequirement
from cedr.plan.aspects.progress import (
    AT_ONCE,
    ENDING,
    NodeContext,
    ProgressRequirements,
    RequiredPromise,
    to_emit_ends,
)
from cedr.plan.aspects.promises import Schemes
from cedr.plan.aspects.properties import Properties, shortest_memory
from cedr.plan.node import Binary, Columns, Speculative, Work, lifetimes
from cedr.plan.schema import Schema, check_columns, check_predicate, made_alike, roots, show_expression
from cedr.temporal.errors import QueryError

How = Literal["inner", "left", "full", "semi", "anti"]


@dataclass(frozen=True, eq=False)
class Join(Speculative, Binary):
    """Pairs with equal keys, for which `residual` holds, during the time both live; see `cedr.reference.join`."""

    work = Work.STATEFUL

    left_on: tuple[str, ...]
    right_on: tuple[str, ...]
    how: How = "inner"
    residual: pl.Expr | None = None
    suffix: str = "_right"

    @cached_property
    def schema(self) -> Schema:
        if self.how not in get_args(How):
            raise QueryError(f"join(how={self.how!r}): how must be one of {', '.join(get_args(How))}")
        check_keys("join", self.left.schema, self.right.schema, self.left_on, self.right_on)
        both = self.both
        if self.residual is not None:
            check_predicate(self.residual, both, f"join(where={show_expression(self.residual)})")
        return self.left.schema if self.how in ("semi", "anti") else both

    @cached_property
    def both(self) -> Schema:
        """The columns of a pair, which `residual` reads."""
        result = dict(self.left.schema)
        for name, kind in self.right.schema.items():
            shown = self.right_names[name]
            if shown is None:
                continue
            if shown in result:
                raise QueryError(f"join: both streams yield a column {shown!r}; rename one, or give another suffix")
            result[shown] = kind
        return result

    @cached_property
    def right_names(self) -> dict[str, str | None]:
        """How each column of the right side is called in a pair; None for keys, which the left side shows."""
        return {
            name: None if name in self.right_on else name + self.suffix if name in self.left.schema else name
            for name in self.right.schema
        }

    def reads(self, needed: Columns) -> list[Columns]:
        required = needed | (set() if self.residual is None else set(roots(self.residual, self.both)))
        left = {name for name in self.left.schema if name in required} | set(self.left_on)
        right = {name for name, shown in self.right_names.items() if shown in required} | set(self.right_on)
        # a column keeps its suffix only while the left side has one of the same name
        left |= {name for name in right if name in self.left.schema and self.right_names[name] is not None}
        return [left, right]

    def describe(self) -> str:
        residual = f" where {show_expression(self.residual)}" if self.residual is not None else ""
        latency = text.latency(self.latency if self.how != "inner" else None)
        return f"Join {self.how}{text.on(self.left_on, self.right_on)}{residual}{latency}"

    def describe_state(self, inputs: Sequence[Properties]) -> str:
        return text.bounded("rows of each side that live past the other side's CTI", inputs)

    def derive_properties(self, *inputs: Properties) -> Properties:
        left, right = inputs
        remember = shortest_memory(left, right)
        if self.how in ("semi", "anti"):
            finite = left.finite or (self.how == "semi" and right.finite)
            return Properties(key=left.key, duplicate_free=left.duplicate_free, finite=finite, remember=remember)
        if self.how == "inner":
            insert_only = left.insert_only and right.insert_only
            return Properties(insert_only=insert_only, finite=left.finite or right.finite, remember=remember)
        return Properties(finite=left.finite and (self.how == "left" or right.finite), remember=remember)

    def progress_requirements(self, context: NodeContext) -> ProgressRequirements:
        """A row waits for partners until the other side has reached its end; without a partner also for its own."""
        left, right = context.inputs
        if self.how == "inner":
            of_left = RequiredPromise((1,), not left.finite, lifetimes(self.left), ENDING)
            of_right = RequiredPromise((0,), not right.finite, lifetimes(self.right), ENDING)
            return ProgressRequirements(AT_ONCE, (of_left, of_right))
        results = "rows without a partner" if self.how in ("left", "full") else ""
        emit = to_emit_ends(self.latency, (0, 1), context)
        return ProgressRequirements(emit, (self.until_settled(context),), results)

    def derive_schemes(self, *inputs: Schemes) -> Schemes:
        return self.passed_schemes(inputs)

    def partition_requirement(self) -> PartitionRequirement:
        return joined_on(self.left_on, self.right_on, self.left.schema)

    def loop_refusal(self, of_loop: list[bool]) -> str | None:
        if self.how == "inner" or (self.how in ("left", "semi", "anti") and of_loop == [True, False]):
            return None
        if self.how == "semi":
            return f"{HIDES}; use an inner join and select"
        return "more in the loop must never mean less out of it; only the left side may come from the loop"


def check_keys(what: str, left: Schema, right: Schema, left_on: Sequence[str], right_on: Sequence[str]) -> None:
    check_columns(left_on, left, f"{what}, left stream")
    check_columns(right_on, right, f"{what}, right stream")
    if len(left_on) != len(right_on):
        raise QueryError(
            f"{what}: left_on has {len(left_on)} columns, right_on {len(right_on)}; they pair up one to one"
        )
    for l, r in zip(left_on, right_on, strict=True):  # noqa: E741
        if left[l] != right[r]:
            raise QueryError(
                f"{what}: key {l!r} is {left[l]} on the left, but {r!r} is {right[r]} on the right; "
                f"make them alike, for example with with_columns({made_alike(r, right[r], left[l])}) on the right"
            )


def joined_on(left_on: Sequence[str], right_on: Sequence[str], left: Schema) -> PartitionRequirement:
    keys = [pair for pair in zip(left_on, right_on, strict=True) if can_be_key(left[pair[0]])]
    return PartitionRequirement(list[Keys](keys), f"joined on {text.pairs(left_on, right_on)}")
