"""All nodes by name, and the two classes that matter to placement: those that keep state, and those that wait."""

from cedr.plan.consistency import Align, Finalize, Guard, Level
from cedr.plan.fused import Fused
from cedr.plan.joins import Clip, Join
from cedr.plan.lifetimes import AlterLifetime, Chop, Deletes, Hopping, Inserts, Lifetime, Moving, Shift, Slice, Sliding
from cedr.plan.node import Node, Unary, topological
from cedr.plan.patterns import Match
from cedr.plan.payloads import Project, Select
from cedr.plan.sessions import Session
from cedr.plan.sets import Coalesce, Difference, Distinct, Intersect, Union
from cedr.plan.snapshots import Aggregate, TopK
from cedr.plan.sorting import Sort
from cedr.plan.source import Source

STATEFUL = (Aggregate, Clip, Coalesce, Difference, Distinct, Intersect, Join, Match, Session, Sort, TopK)
"""Nodes whose operators remember rows."""

SPECULATIVE = (Aggregate, Coalesce, Difference, Distinct, Intersect, Join, Match, TopK)
"""Nodes that take a latency."""

__all__ = [
    "SPECULATIVE",
    "STATEFUL",
    "Aggregate",
    "Align",
    "AlterLifetime",
    "Chop",
    "Clip",
    "Coalesce",
    "Deletes",
    "Difference",
    "Distinct",
    "Finalize",
    "Fused",
    "Guard",
    "Hopping",
    "Inserts",
    "Intersect",
    "Join",
    "Level",
    "Lifetime",
    "Match",
    "Moving",
    "Node",
    "Project",
    "Select",
    "Session",
    "Shift",
    "Slice",
    "Sliding",
    "Sort",
    "Source",
    "TopK",
    "Unary",
    "Union",
    "topological",
]
