"""Graph queries over edges that come, change and go: small loops, ready-made.

Each takes the edges as a stream of rows, and gives at every instant the answer for the edges that live then.

    cedr.reachability(links, sources).run(...)
"""

from typing import Any

import polars as pl

from cedr.operators.aggregates import Min
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
    """Pairs of nodes such that one or more edges lead from the first to the second.

    start, end   the columns of an edge's nodes, and of the result
    sources      pairs begin at these nodes only, which stand in its column `node`
    settled      tell only what CTIs have settled. Then there is no loop: how far each node is from each source is kept
                 and mended, which is much faster on large graphs
    loop         settings of `iterate`
    """
    if settled:
        if sources is None or loop:
            wrong = f"{', '.join(loop)} is about loops" if loop else "it needs sources, from which to look"
            raise QueryError(f"reachability(settled=True): {wrong}; without settled a loop is used")
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
    sources              paths begin at these nodes only, which stand in its column `node`
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
    """Every node that has an edge, with the smallest node it is connected with, whatever the direction of edges.

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
    """What led to what: chains of events each of which names its cause, with the columns `first`, `last` and `chain`.

    A chain lives while all its events do. It visits no event twice, so causes that go round in circles do no harm.

    event, cause   the columns that hold the name of an event, and of the one that caused it
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
