"""Global aggregates in two parts, so that not all rows must meet in one place.

    agg(n=count())  ->  agg(n=sum(n))(partial(n=count()))
    agg(a=avg(v))   ->  select(a=s/c)(agg(s=sum(s), c=sum(c))(partial(s=sum(v), c=count(v))))
    top_k(2)        ->  top_k(2)(partial top_k(2))

Each shard answers for its own rows; of these answers the whole is made. A partial answer has one row for each snapshot
of its shard, whatever the values, so no end point is lost and the snapshots of the whole stay as they are. Aggregates
that cannot be made of parts (stddev, first, last, quantile, functions of the user) stay whole, and so do all that
stand beside them: they need all rows in one place anyway.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

import polars as pl

from cedr.operators import aggregates as agg
from cedr.plan.node import Node
from cedr.plan.nodes import Aggregate, TopK
from cedr.plan.payloads import Output, Project, keep
from cedr.plan.rewrite import Shared, rewrite

Named = tuple[str, agg.Aggregate]


@dataclass(frozen=True, eq=False)
class PartialAggregate(Aggregate):
    """The aggregate of the rows at hand, whichever these are."""


@dataclass(frozen=True, eq=False)
class PartialTopK(TopK):
    """The first rows of those at hand."""


def aggregate_in_parts(plan: Node) -> Node:
    """The rule; it is used only for plans that are cut into stages."""
    return rewrite(plan, in_parts)


def in_parts(node: Node, shared: Shared) -> Node | None:
    if isinstance(node, PartialAggregate | PartialTopK) or not isinstance(node, Aggregate | TopK) or node.by:
        return None
    if isinstance(node.input, PartialAggregate | PartialTopK):
        return None
    return top_k_in_parts(node) if isinstance(node, TopK) else sums_in_parts(node)


def top_k_in_parts(node: TopK) -> Node:
    part = PartialTopK(node.input, node.k, node.order, node.descending, latency=node.latency, waits=node.waits)
    return replace(node, input=part)


def sums_in_parts(node: Aggregate) -> Node | None:
    parts: list[Named] = []
    wholes: list[Named] = []
    outputs: list[Output] = []
    taken = {name for name, _ in node.aggregates}
    for name, aggregate in node.aggregates:
        match aggregate:
            case agg.Stddev():  # a kind of Avg
                return None
            case agg.Count() | agg.Sum():
                parts.append((name, aggregate))
                wholes.append((name, agg.Sum(name)))
                outputs += keep([name])
            case agg.Min() | agg.Max():
                parts.append((name, aggregate))
                wholes.append((name, replace(aggregate, column=name)))
                outputs += keep([name])
            case agg.Avg(column):
                total, count = free_name(f"{name}_sum", taken), free_name(f"{name}_count", taken)
                taken |= {total, count}
                parts += [(total, agg.Sum(column)), (count, agg.Count(column))]
                wholes += [(total, agg.Sum(total)), (count, agg.Sum(count))]
                outputs.append(Output((name,), (pl.col(total) / pl.col(count)).alias(name)))
            case _:
                return None
    part = PartialAggregate(node.input, (), tuple(parts), latency=node.latency, waits=node.waits)
    whole = Aggregate(part, (), tuple(wholes), latency=node.latency, waits=node.waits)
    return whole if all(o.passes for o in outputs) else Project(whole, tuple(outputs))


def free_name(name: str, taken: Collection[str]) -> str:
    return name if name not in taken else free_name(f"{name}_", taken)
