"""Graph queries by their textbook definitions, per snapshot: a search, not a fixed point. An oracle for the oracle.

Edges are rows with `start`, `end` and, for distances, `length`.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cedr.reference.distinct import distinct
from cedr.reference.fixed_point.snapshots import common_snapshots
from cedr.temporal import History, Row

Edges = list[Row]


def reachable(edges: History, sources: History | None = None) -> History:
    """Pairs (start, end) such that a path of one or more edges leads from a source, or any node, to end."""

    def found(now: Edges, roots: set[Any]) -> Iterator[Row]:
        for root in roots:
            yield from (Row(start=root, end=node) for node in search([root], lambda n: heads(now, n)))

    return per_snapshot(found, edges, sources)


def distances(edges: History, sources: History | None = None) -> History:
    """(start, end, length) of the shortest path of one or more edges."""

    def found(now: Edges, roots: set[Any]) -> Iterator[Row]:
        for root in roots:
            shortest: dict[Any, Any] = {}
            for _ in range(len(now)):  # Bellman-Ford
                for e in now:
                    before = 0 if e.start == root else None
                    lengths = [d for d in (before, shortest.get(e.start)) if d is not None]
                    if lengths:
                        length = min(lengths) + e.length
                        shortest[e.end] = min(length, shortest.get(e.end, length))
            yield from (Row(start=root, end=node, length=length) for node, length in shortest.items())

    return per_snapshot(found, edges, sources)


def components(edges: History) -> History:
    """(node, component): the smallest node that edges, taken both ways, connect a node with."""

    def found(now: Edges, roots: set[Any]) -> Iterator[Row]:
        both = [*now, *(Row(start=e.end, end=e.start) for e in now)]
        for node in {e.start for e in both}:
            yield Row(node=node, component=min(search([node], lambda n: heads(both, n))))

    return per_snapshot(found, edges, None)


def per_snapshot(found: Callable[[Edges, set[Any]], Iterable[Row]], edges: History, sources: History | None) -> History:
    """The rows found between any two neighbouring end points; by default every node with an edge is a source."""
    result = []
    for time, (links, nodes) in common_snapshots(edges, sources or History()):
        now = [e.payload for e in links]
        roots = {e.start for e in now} if sources is None else {e.payload.node for e in nodes}
        result += [(time.start, time.end, row) for row in found(now, roots)]
    return distinct(History(result))


def heads(edges: Edges, node: Any) -> list[Any]:
    return [e.end for e in edges if e.start == node]


def search(begin: list[Any], step: Callable[[Any], list[Any]]) -> set[Any]:
    """Everything reachable in one or more steps."""
    seen: set[Any] = set()
    waiting = list(begin)
    while waiting:
        for node in step(waiting.pop()):
            if node not in seen:
                seen.add(node)
                waiting.append(node)
    return seen
