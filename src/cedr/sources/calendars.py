"""Calendars need real time, so they cannot be used with plain numbers without a unit."""

from collections.abc import Iterable

import polars as pl

from cedr.plan.fragment import Fragment
from cedr.plan.node import Node
from cedr.plan.nodes import Chop, Fused, Hopping
from cedr.sources.user_times import TimeType
from cedr.temporal.calendar import Calendar
from cedr.temporal.errors import QueryError


def calendar_in(fragments: Iterable[Fragment]) -> Calendar | None:
    """A calendar of the query, if it has one."""
    nodes: list[Node] = [step.node for fragment in fragments for step in fragment.steps]
    nodes += [step for node in nodes if isinstance(node, Fused) for step in node.steps]
    return next((n.calendar for n in nodes if isinstance(n, Hopping | Chop) and n.calendar is not None), None)


def check_calendar(calendar: Calendar | None, source: str, kind: TimeType | None) -> None:
    if calendar is not None and kind is not None and not isinstance(kind, pl.Datetime):
        raise QueryError(
            f"source {source!r} has whole numbers as times, and windows of {calendar} require their unit; "
            f'declare it, such as cedr.source({source!r}, ..., times=cedr.Times(unit="ms")), or use timestamps'
        )
