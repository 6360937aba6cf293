"""The oracle: the definition of every operator, as plain functions of canonical histories.

Deliberately slow: each function reads like its definition, and fast code is correct when it agrees with it.
"""

from cedr.reference.aggregate import *  # noqa: F403 its `__all__` is the list
from cedr.reference.aggregate import __all__ as aggregates
from cedr.reference.alter_lifetime import alter_lifetime, of_length, shift
from cedr.reference.bitemporal import per_occurrence
from cedr.reference.chop import chop
from cedr.reference.clip import clip
from cedr.reference.coalesce import coalesce
from cedr.reference.difference import difference
from cedr.reference.distinct import distinct
from cedr.reference.fixed_point import fixed_point
from cedr.reference.intersect import intersect
from cedr.reference.join import anti_join, inner_join, join, semi_join
from cedr.reference.project import project
from cedr.reference.select import select
from cedr.reference.session import session
from cedr.reference.slice import slice_occurrence, slice_valid
from cedr.reference.snapshot import snapshot
from cedr.reference.sort import sort
from cedr.reference.top_k import top_k
from cedr.reference.union import union
from cedr.reference.windows import calendar_windows, deletes, hopping, inserts, moving, sliding, tumbling, window_of

__all__ = [
    "alter_lifetime",
    "anti_join",
    "calendar_windows",
    "chop",
    "clip",
    "coalesce",
    "deletes",
    "difference",
    "distinct",
    "fixed_point",
    "hopping",
    "inner_join",
    "inserts",
    "intersect",
    "join",
    "moving",
    "of_length",
    "per_occurrence",
    "project",
    "select",
    "semi_join",
    "session",
    "shift",
    "slice_occurrence",
    "slice_valid",
    "sliding",
    "snapshot",
    "sort",
    "top_k",
    "tumbling",
    "union",
    "window_of",
    *aggregates,
]
