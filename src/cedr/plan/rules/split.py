"""What the rules that push a select have in common: which predicates may go below, which must stay."""

from collections.abc import Callable, Collection

import polars as pl

from cedr.plan.node import Node
from cedr.plan.nodes.select import Select
from cedr.plan.schema import Schema, conjuncts, roots

Predicates = tuple[pl.Expr, ...]


def parts(select: Select) -> list[pl.Expr]:
    return [part for predicate in select.predicates for part in conjuncts(predicate)]


def reads_only(predicate: pl.Expr, columns: Collection[str], schema: Schema) -> bool:
    """Whether the predicate is about these columns. One about no column at all stays where it is."""
    read = roots(predicate, schema)
    return bool(read) and set(read) <= set(columns)


def split_select(select: Select, columns: Collection[str], push: Callable[[Predicates], Node]) -> Node | None:
    """`push` what reads these columns only, and keep the rest above; None when nothing can go."""
    all_parts = parts(select)
    pushed = [p for p in all_parts if reads_only(p, columns, select.schema)]
    if not pushed:
        return None
    kept = [p for p in all_parts if not any(p is q for q in pushed)]
    below = push(tuple(pushed))
    return Select(below, tuple(kept)) if kept else below
