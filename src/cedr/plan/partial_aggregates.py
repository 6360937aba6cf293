"""Global aggregates in two parts, so that not all rows must meet in one place.

    agg(n=count())  ->  agg(n=sum(n))(partial(n=count()))
    agg(a=avg(v))   ->  agg(a=whole(a))(partial(a=exact sum and count of v))
    top_k(2)        ->  top_k(2)(partial top_k(2))

Each shard answers for its own rows; of these answers the whole is made. A partial answer has one row for each snapshot
of its shard, whatever the values, so no end point is lost and the snapshots of the whole stay as they are. Aggregates
that cannot be made of parts (first, last, quantile, functions of the user) stay whole, and so do all that are computed
with them: they need all rows in one place anyway. Sums travel exactly, so the whole is rounded once, as without parts.
"""

from dataclasses import replace

from cedr.plan import aggregates as agg
from cedr.plan.node import Node
from cedr.plan.nodes import Aggregate, PartialAggregate, PartialTopK, TopK
from cedr.plan.rewrite import Shared, rewrite

Named = tuple[str, agg.ColumnAggregate]


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
    schema = node.input.schema
    parts: list[Named] = []
    wholes: list[Named] = []
    for name, aggregate in node.aggregates:
        match aggregate:
            case agg.Count():
                parts.append((name, aggregate))
                wholes.append((name, agg.Sum(name)))
            case agg.Min() | agg.Max():
                parts.append((name, aggregate))
                wholes.append((name, replace(aggregate, column=name)))
            case agg.Sum(column) | agg.Avg(column):
                parts.append((name, agg.Partial(column, aggregate)))
                wholes.append((name, agg.Whole(name, aggregate, aggregate.input_type(schema))))
            case _:
                return None
    part = PartialAggregate(node.input, (), tuple(parts), latency=node.latency, waits=node.waits)
    return Aggregate(part, (), tuple(wholes), latency=node.latency, waits=node.waits)
