"""All nodes by name; each module holds a node with everything a plan knows about it."""

from cedr.plan.node import Node, Speculative, Unary, topological
from cedr.plan.nodes.aggregate import Aggregate, PartialAggregate
from cedr.plan.nodes.align import Align
from cedr.plan.nodes.automaton import Automaton
from cedr.plan.nodes.clip import Clip
from cedr.plan.nodes.finalize import Finalize
from cedr.plan.nodes.fused import Fused
from cedr.plan.nodes.guard import Guard
from cedr.plan.nodes.iterate import Iterate
from cedr.plan.nodes.join import Join
from cedr.plan.nodes.level import Level
from cedr.plan.nodes.lifetimes import (
    AlterLifetime,
    Chop,
    Deletes,
    Hopping,
    Inserts,
    Lifetime,
    Moving,
    Shift,
    Slice,
    Sliding,
)
from cedr.plan.nodes.lookup import Lookup
from cedr.plan.nodes.match import Match
from cedr.plan.nodes.merge import Merge, MergeBy
from cedr.plan.nodes.places import Places
from cedr.plan.nodes.project import Project
from cedr.plan.nodes.reach import Reach
from cedr.plan.nodes.select import Select
from cedr.plan.nodes.session import Session
from cedr.plan.nodes.sets import Coalesce, Difference, Distinct, Intersect
from cedr.plan.nodes.sort import Sort
from cedr.plan.nodes.source import Source
from cedr.plan.nodes.top_k import PartialTopK, TopK
from cedr.plan.nodes.union import Union
from cedr.plan.nodes.versions import Versions

__all__ = [
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
    "PartialAggregate",
    "PartialTopK",
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
    "Versions",
    "topological",
]
