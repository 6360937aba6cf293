"""All nodes by name, and those that keep state."""

from cedr.plan.automata import Automaton
from cedr.plan.automata.places import Places
from cedr.plan.consistency import Align, Finalize, Guard, Level
from cedr.plan.fused import Fused
from cedr.plan.iteration import Iterate
from cedr.plan.joins import Clip, Join
from cedr.plan.lifetimes import AlterLifetime, Chop, Deletes, Hopping, Inserts, Lifetime, Moving, Shift, Slice, Sliding
from cedr.plan.lookup import Lookup
from cedr.plan.merging import Merge, MergeBy
from cedr.plan.node import Node, Speculative, Unary, topological
from cedr.plan.patterns import Match
from cedr.plan.payloads import Project, Select
from cedr.plan.reach import Reach
from cedr.plan.sessions import Session
from cedr.plan.sets import Coalesce, Difference, Distinct, Intersect, Union
from cedr.plan.snapshots import Aggregate, TopK
from cedr.plan.sorting import Sort
from cedr.plan.source import Source

STATEFUL = (
    Aggregate,
    Automaton,
    Clip,
    Coalesce,
    Difference,
    Distinct,
    Intersect,
    Iterate,
    Join,
    Match,
    Merge,
    MergeBy,
    Places,
    Reach,
    Session,
    Sort,
    TopK,
)
"""Nodes whose operators remember rows."""

__all__ = [
    "STATEFUL",
    "Aggregate",
    "Align",
    "AlterLifetime",
    "Automaton",
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
    "Iterate",
    "Join",
    "Level",
    "Lifetime",
    "Lookup",
    "Match",
    "Merge",
    "MergeBy",
    "Moving",
    "Node",
    "Places",
    "Project",
    "Reach",
    "Select",
    "Session",
    "Shift",
    "Slice",
    "Sliding",
    "Sort",
    "Source",
    "Speculative",
    "TopK",
    "Unary",
    "Union",
    "topological",
]
