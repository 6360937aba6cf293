"""Versions: what a provider states about events, and may change (the bitemporal tables of the CEDR paper).

A version states that event `id` is valid during `[vs, ve)`. It holds for some *occurrence* time, which is the axis
of the stream; `id`, `vs` and `ve` travel as columns. A pattern over such streams looks, at each instant of occurrence
time, at the valid lifetimes held then.
"""

import polars as pl

from cedr.plan.node import Node
from cedr.plan.nodes.align import Align
from cedr.plan.nodes.finalize import Finalize
from cedr.plan.nodes.guard import Guard
from cedr.plan.nodes.level import Level
from cedr.plan.nodes.lifetimes import Slice
from cedr.plan.nodes.match import Match
from cedr.plan.nodes.project import project
from cedr.plan.nodes.select import Select
from cedr.plan.nodes.versions import Versions
from cedr.plan.patterns.spec import VERSION
from cedr.plan.schema import check_columns
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF, MIN


def versions(input: Node, id: str, vs: str, ve: str) -> Versions:
    """The rows of a stream as versions; these columns become the header."""
    taken = {"id": id, "vs": vs, "ve": ve}
    check_columns(taken.values(), input.schema, "versions()")
    others = [name for name in input.schema if name not in taken.values()]
    if clash := [name for name in others if name in VERSION]:
        argument = f"versions({clash[0]}={taken[clash[0]]!r})"
        raise QueryError(f"{argument}: the stream has a column {clash[0]!r} of another meaning; rename it")
    header = [pl.col(id).alias("id"), chronons(input, vs, MIN).alias("vs"), chronons(input, ve, INF).alias("ve")]
    return Versions(input, project(input, [*header, *map(pl.col, others)]).outputs)


def chronons(input: Node, column: str, when_missing: int) -> pl.Expr:
    kind = input.schema[column]
    if isinstance(kind, pl.Datetime):
        times = pl.col(column).dt.cast_time_unit("us")
    elif kind.is_integer():
        times = pl.col(column)
    else:
        raise QueryError(f"versions(): {column!r} is {kind}; the valid lifetime needs timestamps or whole numbers")
    return times.cast(pl.Int64).fill_null(when_missing)


def valid_during(input: Node, start: int, end: int) -> Node:
    """The versions whose valid lifetimes meet an interval, cut to it: the language's `#`."""
    cut = {"vs": pl.max_horizontal("vs", pl.lit(start)), "ve": pl.min_horizontal("ve", pl.lit(end))}
    columns = [cut[name].alias(name) if name in cut else pl.col(name) for name in input.schema]
    return Select(Versions(input, project(input, columns).outputs), (pl.col("vs") < pl.col("ve"),))


def contains_versions(plan: Node) -> bool:
    """Whether the rows of a plan are versions."""
    while isinstance(plan, Select | Level | Guard | Finalize | Align | Slice):
        plan = plan.input
    return isinstance(plan, Versions) or (isinstance(plan, Match) and plan.bitemporal)
