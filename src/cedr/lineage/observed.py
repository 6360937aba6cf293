"""A query, run once over given data, with everything that went into its pattern and came out of it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from cedr.columnar.chunk import NEW, VS, Chunk
from cedr.columnar.tally import VE, Tally
from cedr.kernels.ids import event_ids
from cedr.operators.patterns.events import content_of
from cedr.plan.fragment import Fragment, fragment_of
from cedr.plan.node import Node
from cedr.plan.nodes import Align, Finalize, Select, Slice
from cedr.plan.nodes.level import Level
from cedr.plan.nodes.match import Match
from cedr.plan.patterns.spec import ends_with_event
from cedr.plan.patterns.tree import AtLeast
from cedr.runtime.engine import Engine
from cedr.runtime.local import LocalRun
from cedr.temporal.errors import QueryError
from cedr.temporal.time import INF

EVENT = "_event"
"""The column that identifies events: the part of an event's id that does not depend on its type."""

OWN = "why: "
"""Prefix of the columns that are added to those of the query."""
MATCH_ID, LINEAGE = f"{OWN}Id", f"{OWN}cbt"

ABOVE = (Level, Align, Finalize, Select, Slice)
"""Nodes allowed between a pattern and the answer: they keep matches unchanged, or leave them out."""


class Listener(Engine):
    """An engine that keeps all chunks that go into its pattern and come out of it."""

    def __init__(self, fragment: Fragment, node: Match) -> None:
        super().__init__(fragment)
        patterns = (step.node.pattern if isinstance(step.node, Match) else None for step in fragment.steps)
        self.number = next(number for number, pattern in enumerate(patterns) if pattern is node.pattern)
        self.given: list[list[Chunk]] = [[] for _ in node.members]
        self.found: list[Chunk] = []

    def _process(self, number: int, port: int, chunk: Chunk) -> Chunk:
        out = super()._process(number, port, chunk)
        if number == self.number:
            self.given[port].append(chunk)
            self.found.append(out)
        return out


@dataclass(frozen=True)
class Observed:
    node: Match
    given: list[list[Chunk]]
    """The chunks of each port."""
    matches: pl.DataFrame
    """What the pattern found: start, end, the columns of OUTPUT, and the ids of the match and its variables."""
    answer: pl.DataFrame
    """The same, as far as it is in the answer of the query."""
    late: pl.DataFrame
    """The rows that were put aside, with `_vs`."""
    time_type: pl.DataType

    @cached_property
    def events(self) -> list[pl.DataFrame]:
        """The events of each port that are there in the end."""
        return [with_identity(history(chunks, m)) for chunks, m in zip(self.given, self.node.members, strict=True)]

    @cached_property
    def removed(self) -> list[pl.DataFrame]:
        """The events of each port that a correction took away, some of which may have come again."""
        return [pl.concat([c.rows for c in chunks]).filter(pl.col(NEW) == pl.col(VS)) for chunks in self.given]


def observe(plan: Node, data: Any) -> Observed:
    if isinstance(data, Iterator):
        raise QueryError(
            "why and why_not need the data as a whole; give a table or a list of elements, not an iterator"
        )
    node = pattern_of(plan)
    extended = with_lineage(node)
    fragment = fragment_of(Level(above(plan, node, extended)))
    run = LocalRun(fragment, patience=INF)
    run.engine = listener = Listener(fragment, extended)
    for _ in run.steps(data, close=True):
        pass
    late = pl.concat(run.late, how="diagonal_relaxed") if run.late else pl.DataFrame(schema={VS: pl.Int64})
    times = (i.time_type for i in run.ingests.values() if i.time_type is not None)
    return Observed(
        extended, listener.given, history(listener.found, extended), run.tally.table(), late, next(times, pl.Int64())
    )


def pattern_of(plan: Node) -> Match:
    """The pattern whose matches a plan emits."""
    node = plan
    while isinstance(node, ABOVE):
        node = node.input
    if not isinstance(node, Match):
        raise QueryError(
            f"why and why_not are about the matches of a pattern, but this query ends with {type(node).__name__}; call "
            "them on a stream that cedr.query made of a pattern such as SEQUENCE or UNLESS"
        )
    if node.bitemporal:
        raise QueryError(
            "why and why_not support one time axis, but this pattern is over events with valid and occurrence time; "
            "use the same pattern over a source of plain events, such as what is known at one occurrence time"
        )
    return node


def above(plan: Node, node: Match, new: Match) -> Node:
    """The plan with another pattern in the place of its own."""
    return new if plan is node else plan.with_inputs(above(plan.inputs[0], node, new))


def with_lineage(node: Match) -> Match:
    """The same matches, each with its id, its lineage and the ids of its variables.

    An event by itself has no id of its own as a match; ANY of it has.
    """
    if ends_with_event(node.pattern):
        node = replace(node, pattern=AtLeast(1, (node.pattern,), 1))
    header = [(MATCH_ID, pl.col("Id")), (LINEAGE, pl.col("cbt"))]
    variables = [(OWN + name, pl.col(f"{name}.Id")) for name in sorted(node.pattern.variables)]
    return replace(node, outputs=(*node.outputs, *header, *variables))


def history(chunks: list[Chunk], node: Node) -> pl.DataFrame:
    """What holds after all chunks: `_vs`, `_ve` and the payload."""
    tally = Tally(node.schema)
    for chunk in chunks:
        tally.add(chunk)
    return tally.table()


def with_identity(events: pl.DataFrame) -> pl.DataFrame:
    """Events numbered among equal ones, and the hash the operator has for them."""
    content = content_of(events[VS].to_numpy(), events.select(pl.exclude(VS, VE)))
    same = events.select(VS, pl.Series("content", content, dtype=pl.Int64))
    copy = same.select(pl.int_range(pl.len(), dtype=pl.Int64).over(VS, "content").alias("copy"))["copy"].to_numpy()
    return events.with_columns(pl.Series(EVENT, event_ids(content, copy), dtype=pl.Int64))
