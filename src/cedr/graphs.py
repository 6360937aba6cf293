"""Ready-made graph queries over changing edges, most of them short loops.

Each takes the edges as a stream of rows; at every instant the result is that of the edges alive then.

    cedr.reachability(links, sources).run(...)
"""

from typing import Any

import polars as pl

from cedr.plan.aggregates import Min
from cedr.plan.nodes.reach import Reach
from cedr.stream import Stream
from cedr.temporal.errors import QueryError


def reachability(
    edges: Stream,
    sources: Stream | None = None,
    *,
    start: str = "start",
    end: str = "end",
    node: str = "node",
    settled: bool = False,
    **loop: Any,
) -> Stream:
    """Pairs of nodes connected by a path of one or more edges from the first to the second.

    start, end   the columns of an edge's nodes, and of the result
    sources      a stream with the start nodes in its column `node`; by default pairs start anywhere
    settled      emit only results that CTIs have made final. This uses no loop: the distance of each node from each
                 source is stored and updated, which is much faster on large graphs
    loop         settings of `iterate`
    """
    if settled:
        if sources is None or loop:
            wrong = f"{', '.join(loop)} is a setting of loops" if loop else "it requires sources, the start nodes"
            raise QueryError(f"reachability(settled=True): {wrong}; leave settled out to use a loop")
        return Stream(Reach(edges.plan, sources.plan, start, end, node))
    hops = edges.select(_start=start, _end=end)
    paths = beginning_at(sources, node, hops.select(**{start: pl.col("_start"), end: pl.col("_end")}), start)
    return paths.iterate(
        lambda known: known.join(hops, left_on=end, right_on="_start").select(start, **{end: pl.col("_end")}), **loop
    )


def shortest_paths(
    edges: Stream,
    sources: Stream | None = None,
    *,
    start: str = "start",
    end: str = "end",
    length: str = "length",
    node: str = "node",
    **loop: Any,
) -> Stream:
    """Pairs of nodes with the length of the shortest path of one or more edges between them.

    start, end, length   the columns of an edge, and of the result; lengths must not be negative
    sources              a stream with the start nodes in its column `node`; by default paths start anywhere
    loop                 settings of `iterate`
    """
    hops = edges.select(_start=start, _end=end, _length=length)
    first = hops.select(**{start: pl.col("_start"), end: pl.col("_end"), length: pl.col("_length")})
    longer = {end: pl.col("_end"), length: pl.col(length) + pl.col("_length")}
    return beginning_at(sources, node, first, start).iterate(
        lambda known: (
            known.join(hops, left_on=end, right_on="_start")
            .select(start, **longer)
            .group_by(start, end)
            .agg(**{length: Min(length)})
        ),
        **loop,
    )


def connected_components(edges: Stream, *, start: str = "start", end: str = "end", **loop: Any) -> Stream:
    """Every node that has an edge, with the smallest node it is connected to; the direction of edges does not matter.

    The result has the columns `node` and `component`; `loop` are settings of `iterate`.
    """
    there, back = edges.select(_one=start, _two=end), edges.select(_one=end, _two=start)
    both = there.union(back)
    return both.select(node="_one", component="_one").iterate(
        lambda known: (
            known.join(both, left_on="node", right_on="_one")
            .select("component", node="_two")
            .group_by("node")
            .agg(component=Min("component"))
        ),
        **loop,
    )


def causality_chains(events: Stream, *, event: str = "event", cause: str = "cause", **loop: Any) -> Stream:
    """Chains of events that each name their cause, with the columns `first`, `last` and `chain`.

    A chain is alive while all its events are. It contains no event twice, so cycles of causes are harmless.

    event, cause   the columns with the name of an event, and of the event that caused it
    loop           settings of `iterate`
    """
    steps = events.where(pl.col(event) != pl.col(cause)).select(_cause=cause, _event=event)
    seed = steps.select(first="_cause", last="_event", chain=pl.concat_list("_cause", "_event"))
    return seed.iterate(
        lambda known: (
            known.join(steps, left_on="last", right_on="_cause")
            .where(~pl.col("chain").list.contains(pl.col("_event")))
            .select("first", last="_event", chain=pl.concat_list("chain", "_event"))
        ),
        **loop,
    )


def beginning_at(sources: Stream | None, node: str, paths: Stream, start: str) -> Stream:
    return paths if sources is None else paths.join(sources, left_on=start, right_on=node, how="semi")
