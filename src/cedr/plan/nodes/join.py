"""Join: pairs of events of two streams with equal keys."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import polars as pl

from cedr.plan.node import Binary, Speculative
from cedr.plan.schema import Schema, check_columns, check_predicate, made_alike, roots, show_expression
from cedr.temporal.errors import QueryError

How = Literal["inner", "left", "full", "semi", "anti"]


@dataclass(frozen=True, eq=False)
class Join(Speculative, Binary):
    """Pairs with equal keys, for which `residual` holds, during the time both live; see `cedr.reference.join`."""

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
        """The columns of a pair, which `residual` speaks about."""
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

    def residual_reads(self) -> set[str]:
        return set() if self.residual is None else set(roots(self.residual, self.both))


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
