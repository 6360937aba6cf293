"""Lengths with a unit in a query whose times are plain numbers: 5 minutes of what?

Whole numbers as times have no unit unless the source has one, so such a length could be wrong by a factor of 1,000
without anybody noticing. Elements, whose times are microseconds by definition, are not concerned.
"""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from cedr.plan.node import Node, topological
from cedr.plan.nodes.source import Source
from cedr.temporal.duration import RealLength
from cedr.temporal.errors import QueryError

OF_THE_WALL = ("idle",)
"""Lengths by the clock on the wall, whatever the times of the source are."""


def check_lengths(source: Source, plan: Node) -> None:
    """For a source whose times are whole numbers without a unit."""
    found = next((length for node in topological(plan) for length in lengths(node, source)), None)
    if found is not None:
        raise QueryError(
            f"source {source.name!r}: its times (vs={source.vs!r}) are whole numbers without a unit, but the query has "
            f'the length {found.text!r}; declare what the numbers count, such as unit="ms" (s, ms, us or ns), or write '
            "all lengths as plain numbers of the same ticks"
        )


def lengths(node: Node, source: Source) -> Iterator[RealLength]:
    """Those of a node; those of another source matter when its own times come."""
    if isinstance(node, Source) and node is not source and node.name != source.name:
        return
    for f in fields(node):
        if f.name not in OF_THE_WALL:
            yield from inside(getattr(node, f.name))


def inside(value: Any) -> Iterator[RealLength]:
    if isinstance(value, RealLength):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from inside(part)
    elif is_dataclass(value) and not isinstance(value, Node | type):
        for f in fields(value):
            yield from inside(getattr(value, f.name))
